#include "tools/mpc-opt/interpret_pass.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiler/dialect/dialect.h"
#include "compiler/interpreter/interpreter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace mpc::opt {
namespace {

DenseElementsAttr FloatElements(RankedTensorType type, FloatType element, const std::vector<double>& values) {
  SmallVector<APFloat> elements;
  for (const double value : values) {
    APFloat& rounded = elements.emplace_back(value);
    bool loses_bits = false;
    rounded.convert(element.getFloatSemantics(), APFloat::rmNearestTiesToEven, &loses_bits);
  }
  return DenseElementsAttr::get(type, elements);
}

DenseElementsAttr IntegerElements(RankedTensorType type, const std::vector<double>& values) {
  const unsigned width = type.getElementTypeBitWidth();
  SmallVector<APInt> elements;
  for (const double value : values) {
    // Of one bit, 1 is no signed number.
    elements.emplace_back(width, static_cast<std::uint64_t>(static_cast<std::int64_t>(value)), /*isSigned=*/width > 1);
  }
  return DenseElementsAttr::get(type, elements);
}

DenseElementsAttr Elements(RankedTensorType type, const std::vector<double>& values) {
  if (const auto element = dyn_cast<FloatType>(type.getElementType())) return FloatElements(type, element, values);
  return IntegerElements(type, values);
}

void ReturnConstants(func::FuncOp function, const std::vector<reference::Tensor>& results) {
  Block& body = function.getBody().front();
  body.clear();
  OpBuilder builder = OpBuilder::atBlockEnd(&body);
  SmallVector<mlir::Value> constants;
  for (const auto& [type, result] : llvm::zip_equal(function.getResultTypes(), results)) {
    const DenseElementsAttr elements = Elements(cast<RankedTensorType>(type), result.values);
    constants.push_back(ConstantOp::create(builder, function.getLoc(), type, elements));
  }
  func::ReturnOp::create(builder, function.getLoc(), constants);
}

class InterpretPass : public PassWrapper<InterpretPass, OperationPass<ModuleOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(InterpretPass)

  StringRef getArgument() const override { return "mpc-interpret"; }
  StringRef getName() const override { return "InterpretPass"; }
  StringRef getDescription() const override {
    return "Runs each function without arguments with the reference functions; it then returns what came out";
  }

  void getDependentDialects(DialectRegistry& registry) const override {
    registry.insert<MpcDialect, func::FuncDialect>();
  }

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal() || function.getNumArguments() > 0) continue;
      const absl::StatusOr<std::vector<reference::Tensor>> results = interpret(function, {});
      if (!results.ok()) {
        function.emitError(std::string(results.status().message()));
        return signalPassFailure();
      }
      ReturnConstants(function, *results);
    }
  }
};

}  // namespace

void RegisterInterpretPass() {
  registerPass([]() -> std::unique_ptr<Pass> { return std::make_unique<InterpretPass>(); });
}

}  // namespace mpc::opt
