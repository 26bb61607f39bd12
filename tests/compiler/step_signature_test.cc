// Results of a step find the arguments whose new values they are, by name.
#include "compiler/dialect/step_signature.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace mpc
