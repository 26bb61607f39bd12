// Results of a step find the arguments whose new values they are, by name.
#include "compiler/dialect/step_signature.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/dialect/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

namespace mpc {
namespace {

constexpr const char* kStep = R"(
func.func @step(%x: tensor<2xf32> {mpc.state = #mpc.state<input, "w">},
                %w: tensor<2xf32> {mpc.state = #mpc.state<parameter, "w">},
                %v: tensor<2xf32> {mpc.state = #mpc.state<slot, "v", of = "w">},
                %s: tensor<2xf32> {mpc.state = #mpc.state<statistic, "s">}, %plain: tensor<2xf32>)
    -> (tensor<2xf32> {mpc.state = #mpc.state<output, "w">}, tensor<2xf32> {mpc.state = #mpc.state<slot, "v">},
        tensor<2xf32> {mpc.state = #mpc.state<parameter, "w">}, tensor<2xf32>) attributes {mpc.step} {
  return %x, %w, %v, %plain : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}
)";

class StepSignatureTest : public ::testing::Test {
 protected:
  StepSignatureTest() {
    context_.loadDialect<MpcDialect, mlir::func::FuncDialect>();
    module_ = mlir::parseSourceString<mlir::ModuleOp>(kStep, mlir::ParserConfig(&context_));
  }

  mlir::func::FuncOp Step() { return *module_->getOps<mlir::func::FuncOp>().begin(); }

  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

TEST_F(StepSignatureTest, AResultOfStateIsTheNewValueOfTheArgumentOfItsName) {
  const StepSignature signature(Step());
  EXPECT_EQ(signature.argumentOf(1), 2u);
  EXPECT_EQ(signature.argumentOf(2), 1u);
  EXPECT_EQ(signature.resultOf(1), 2u);
  EXPECT_EQ(signature.resultOf(2), 1u);
}

TEST_F(StepSignatureTest, DataAndStateThatIsOnlyReadHaveNoOther) {
  const StepSignature signature(Step());
  EXPECT_EQ(signature.argumentOf(0), std::nullopt) << "an output has the name of a parameter";
  EXPECT_EQ(signature.argumentOf(3), std::nullopt) << "neither role nor name";
  for (const unsigned argument : {0u, 3u, 4u}) EXPECT_EQ(signature.resultOf(argument), std::nullopt) << argument;
}

TEST_F(StepSignatureTest, RolesAndNamesAreReadFromTheFunctionThatAnArgumentBelongsTo) {
  EXPECT_EQ(roleOf(Step().getArgument(1)), Role::kParameter);
  EXPECT_EQ(nameOf(Step().getArgument(1)), "w");
  EXPECT_EQ(stateOf(Step().getArgument(2)).getOf(), "w");
  EXPECT_EQ(stateOf(Step().getArgument(4)), nullptr);
  EXPECT_EQ(roleOf(Step().getArgument(4)), std::nullopt);
  EXPECT_EQ(nameOf(Step().getArgument(4)), "");
  EXPECT_TRUE(isInput(roleOf(Step().getArgument(4))));
  EXPECT_FALSE(isState(roleOf(Step().getArgument(4))));
}

TEST(Roles, EachHasOneNameThatIsReadBack) {
  for (std::size_t i = 0; i < kRoleNames.size(); ++i) {
    const Role role = static_cast<Role>(i);
    EXPECT_EQ(ParseRole(RoleName(role)), role);
  }
  EXPECT_EQ(ParseRole("paramter"), std::nullopt);
  EXPECT_EQ(ParseRole(""), std::nullopt);
  EXPECT_FALSE(IsState(Role::kRecord));
  EXPECT_TRUE(IsState(Role::kParameter));
  EXPECT_TRUE(IsState(Role::kAccumulator));
}

/// A step that calls the first of `count` sequences, each of which calls the next one. The last one calls what
/// `last_calls` names, if anything.
std::string NestedSequences(int count, const std::string& last_calls) {
  std::string text;
  const auto add = [&text](const std::string& head, const std::string& callee) {
    absl::StrAppend(&text, "func.func ", head, "(%x: tensor<2xf32>) -> tensor<2xf32>",
                    head == "@step" ? "" : " attributes {mpc.sequence}", " {\n");
    absl::StrAppend(&text, callee.empty() ? "%y = mpc.relu %x" : "%y = mpc.repeat @" + callee + "(%x) {count = 1}",
                    callee.empty() ? " : tensor<2xf32>" : " : (tensor<2xf32>) -> tensor<2xf32>",
                    "\nreturn %y : tensor<2xf32>\n}\n");
  };
  add("@step", "s0");
  for (int i = 0; i < count; ++i) {
    add(absl::StrCat("private @s", i), i + 1 < count ? absl::StrCat("s", i + 1) : last_calls);
  }
  return text;
}

// Taking each call's callees anew, this would take more than an hour.
TEST_F(StepSignatureTest, SequencesInEachOtherAreVerifiedInTimeLinearInTheirNumber) {
  constexpr int kCount = 8000;
  auto module = mlir::parseSourceString<mlir::ModuleOp>(NestedSequences(kCount, ""), mlir::ParserConfig(&context_));
  ASSERT_TRUE(module);
  auto called = withCalled(module->lookupSymbol<mlir::func::FuncOp>("step"));
  ASSERT_EQ(called.size(), kCount + 1u);
  EXPECT_EQ(called[1].getSymName(), "s0") << "callers first";
  EXPECT_EQ(called.back().getSymName(), "s7999");
  auto all = calleesFirst(llvm::to_vector(module->getOps<mlir::func::FuncOp>()));
  EXPECT_TRUE(llvm::equal(llvm::reverse(all), called));
}

TEST_F(StepSignatureTest, ASequenceThatCallsItselfThroughManyIsRefused) {
  std::string errors;
  const mlir::ScopedDiagnosticHandler handler(&context_, [&errors](mlir::Diagnostic& diagnostic) {
    absl::StrAppend(&errors, diagnostic.str());
    return mlir::success();
  });
  EXPECT_FALSE(mlir::parseSourceString<mlir::ModuleOp>(NestedSequences(1000, "s5"), mlir::ParserConfig(&context_)));
  EXPECT_EQ(errors, "'mpc.repeat' op calls 's5', which calls 's999' again");
}

}  // namespace
}  // namespace mpc
