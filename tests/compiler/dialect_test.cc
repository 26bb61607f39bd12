// Every operation, from the table of cases: it builds, verifies, prints, and reads back as it was.
#include "compiler/dialect/dialect.h"

#include <gtest/gtest.h>

#include <set>

#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/operation_attributes.h"
#include "mlir/IR/Verifier.h"
#include "tests/compiler/op_case_module.h"

namespace mpc {
namespace {

using op_cases::AllOpCases;
using op_cases::OpCase;

class Dialect : public testing::Test {
 protected:
  std::unique_ptr<mlir::MLIRContext> Context = makeContext();
};

mlir::Operation& operationOf(mlir::ModuleOp Module) {
  return Module.lookupSymbol<mlir::func::FuncOp>("forward").getBody().front().front();
}

TEST_F(Dialect, EveryCaseBuildsPrintsParsesAndVerifies) {
  for (const OpCase& Case : AllOpCases()) {
    SCOPED_TRACE(Case.name);
    for (DType Dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      if (Dtype != DType::kF32 && !Case.low) continue;
      auto Module = forwardModule(*Context, Case, Dtype);
      ASSERT_TRUE(llvm::succeeded(mlir::verify(*Module)));
      std::string Text = printed(*Module);
      auto Read = parseModule(*Context, Text);
      ASSERT_TRUE(Read) << Text;
      EXPECT_EQ(printed(*Read), Text);
    }
  }
}

TEST_F(Dialect, InferredShapesAreThoseOfTheCases) {
  for (const OpCase& Case : AllOpCases()) {
    SCOPED_TRACE(Case.name);
    auto Module = forwardModule(*Context, Case, DType::kF32);
    mlir::Operation& Op = operationOf(*Module);
    auto Inferring = llvm::cast<ShapeInferenceOpInterface>(Op);
    auto Types = Inferring.inferTypes(Op.getOperandTypes(), Op.getAttrDictionary());
    ASSERT_TRUE(bool(Types)) << llvm::toString(Types.takeError());
    ASSERT_EQ(Types->size(), Case.results.size());
    for (std::size_t Index = 0; Index < Types->size(); ++Index)
      EXPECT_EQ(toTensorSpec((*Types)[Index]).shape, Case.results[Index].shape);
  }
}

TEST_F(Dialect, AttributesReachKernelsAsTheCasesGaveThem) {
  for (const OpCase& Case : AllOpCases()) {
    SCOPED_TRACE(Case.name);
    auto Module = forwardModule(*Context, Case, DType::kF32);
    Attributes Seen = kernelAttributes(&operationOf(*Module));
    for (const auto& [Name, Value] : Case.attributes.entries()) {
      const AttributeValue* Found = Seen.Find(Name);
      ASSERT_NE(Found, nullptr) << Name;
      if (const double* Number = std::get_if<double>(&Value))
        EXPECT_EQ(std::get<double>(*Found), double(float(*Number))) << Name;  // scalar attributes are f32
      else
        EXPECT_TRUE(*Found == Value) << Name;
    }
  }
}

TEST_F(Dialect, TableCoversEveryOperation) {
  // Checked in tests/lit/dialect: they have regions, symbols or an attribute for a value.
  // A case has one operation, but a start needs a wait.
  std::set<std::string> Seen{
      "mpc.all_reduce_start", "mpc.all_reduce_wait", "mpc.backward", "mpc.constant",       "mpc.custom_vjp",
      "mpc.fusion",           "mpc.guarded_update",  "mpc.repeat",   "mpc.value_and_grad", "mpc.yield"};
  for (const OpCase& Case : AllOpCases()) Seen.insert("mpc." + Case.op);
  for (mlir::RegisteredOperationName Name : Context->getRegisteredOperationsByDialect("mpc"))
    EXPECT_TRUE(Seen.count(Name.getStringRef().str())) << Name.getStringRef().str() << " has no case";
}

TEST_F(Dialect, ScopeRoundTrips) {
  const char* Text = R"(
    func.func @forward(%x: tensor<2xf32>) -> tensor<2xf32> {
      %y = mpc.relu %x {mpc.scope = #mpc.scope<"lenet5/conv1", network, pin = f16>}
          : (tensor<2xf32>) -> tensor<2xf32>
      return %y : tensor<2xf32>
    })";
  auto Module = parseModule(*Context, Text);
  ASSERT_TRUE(Module);
  ScopeAttr Scope = scopeOf(&operationOf(*Module));
  ASSERT_TRUE(Scope);
  EXPECT_EQ(Scope.getPath().str(), "lenet5/conv1");
  EXPECT_TRUE(Scope.getNetwork());
  EXPECT_TRUE(Scope.getPin().isF16());
  auto Read = parseModule(*Context, printed(*Module));
  ASSERT_TRUE(Read);
  EXPECT_EQ(printed(*Read), printed(*Module));
}

}  // namespace
}  // namespace mpc
