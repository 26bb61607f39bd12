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
  std::unique_ptr<mlir::MLIRContext> Context = MakeContext();
};

mlir::Operation& OperationOf(mlir::ModuleOp module) {
  return module.lookupSymbol<mlir::func::FuncOp>("forward").getBody().front().front();
}

TEST_F(Dialect, EveryCaseBuildsPrintsParsesAndVerifies) {
  for (const OpCase& op_case : AllOpCases()) {
    SCOPED_TRACE(op_case.name);
    for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      if (dtype != DType::kF32 && !op_case.low) continue;
      auto module = ForwardModule(*Context, op_case, dtype);
      ASSERT_TRUE(llvm::succeeded(mlir::verify(*module)));
      std::string text = printed(*module);
      auto read = ParseModule(*Context, text);
      ASSERT_TRUE(read) << text;
      EXPECT_EQ(printed(*read), text);
    }
  }
}

TEST_F(Dialect, InferredShapesAreThoseOfTheCases) {
  for (const OpCase& op_case : AllOpCases()) {
    SCOPED_TRACE(op_case.name);
    auto module = ForwardModule(*Context, op_case, DType::kF32);
    mlir::Operation& op = OperationOf(*module);
    auto inferring = llvm::cast<ShapeInferenceOpInterface>(op);
    auto types = inferring.inferTypes(op.getOperandTypes(), op.getAttrDictionary());
    ASSERT_TRUE(bool(types)) << llvm::toString(types.takeError());
    ASSERT_EQ(types->size(), op_case.results.size());
    for (std::size_t index = 0; index < types->size(); ++index)
      EXPECT_EQ(toTensorSpec((*types)[index]).shape, op_case.results[index].shape);
  }
}

TEST_F(Dialect, AttributesReachKernelsAsTheCasesGaveThem) {
  for (const OpCase& op_case : AllOpCases()) {
    SCOPED_TRACE(op_case.name);
    auto module = ForwardModule(*Context, op_case, DType::kF32);
    Attributes seen = kernelAttributes(&OperationOf(*module));
    for (const auto& [Name, Value] : op_case.attributes.entries()) {
      const AttributeValue* found = seen.Find(Name);
      ASSERT_NE(found, nullptr) << Name;
      if (const double* number = std::get_if<double>(&Value))
        EXPECT_EQ(std::get<double>(*found), double(float(*number))) << Name;  // scalar attributes are f32
      else
        EXPECT_TRUE(*found == Value) << Name;
    }
  }
}

TEST_F(Dialect, TableCoversEveryOperation) {
  // Checked in tests/lit/dialect: they have regions, symbols or an attribute for a value.
  // A case has one operation, but a start needs a wait.
  std::set<std::string> seen{
      "mpc.all_reduce_start", "mpc.all_reduce_wait", "mpc.backward", "mpc.constant",       "mpc.custom_vjp",
      "mpc.fusion",           "mpc.guarded_update",  "mpc.repeat",   "mpc.value_and_grad", "mpc.yield"};
  for (const OpCase& op_case : AllOpCases()) seen.insert("mpc." + op_case.op);
  for (mlir::RegisteredOperationName name : Context->getRegisteredOperationsByDialect("mpc"))
    EXPECT_TRUE(seen.count(name.getStringRef().str())) << name.getStringRef().str() << " has no case";
}

TEST_F(Dialect, ScopeRoundTrips) {
  const char* text = R"(
    func.func @forward(%x: tensor<2xf32>) -> tensor<2xf32> {
      %y = mpc.relu %x {mpc.scope = #mpc.scope<"lenet5/conv1", network, pin = f16>}
          : (tensor<2xf32>) -> tensor<2xf32>
      return %y : tensor<2xf32>
    })";
  auto module = ParseModule(*Context, text);
  ASSERT_TRUE(module);
  ScopeAttr scope = scopeOf(&OperationOf(*module));
  ASSERT_TRUE(scope);
  EXPECT_EQ(scope.getPath().str(), "lenet5/conv1");
  EXPECT_TRUE(scope.getNetwork());
  EXPECT_TRUE(scope.getPin().isF16());
  auto read = ParseModule(*Context, printed(*module));
  ASSERT_TRUE(read);
  EXPECT_EQ(printed(*read), printed(*module));
}

}  // namespace
}  // namespace mpc
