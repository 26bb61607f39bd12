#include "tests/compiler/isolated_region.h"

#include <random>

#include "compiler/dialect/attribute_conversion.h"
#include "mlir/IR/IRMapping.h"

namespace mpc::test {

IsolatedRegion::IsolatedRegion(FusionOp fusion) : module(mlir::ModuleOp::create(fusion.getLoc())) {
  mlir::OpBuilder builder(module->getBodyRegion());
  const auto type = builder.getFunctionType(fusion->getOperandTypes(), fusion->getResultTypes());
  auto function = mlir::func::FuncOp::create(builder, fusion.getLoc(), "region", type);
  builder.setInsertionPointToStart(function.addEntryBlock());
  mlir::IRMapping mapping;
  mapping.map(fusion.getInputs(), function.getArguments());
  mlir::Operation* copy = builder.clone(*fusion, mapping);
  mlir::func::ReturnOp::create(builder, fusion.getLoc(), copy->getResults());
}

mlir::func::FuncOp IsolatedRegion::function() const { return module->lookupSymbol<mlir::func::FuncOp>("region"); }

FusionOp IsolatedRegion::fusion() const { return *function().getOps<FusionOp>().begin(); }

std::vector<reference::Tensor> IsolatedRegion::RandomInputs(std::uint64_t seed) const {
  std::mt19937_64 random(seed);
  std::vector<reference::Tensor> inputs;
  for (const mlir::Type type : function().getArgumentTypes()) {
    reference::Tensor tensor;
    tensor.spec = toTensorSpec(mlir::cast<mlir::RankedTensorType>(type));
    for (std::int64_t i = 0; i < tensor.spec.num_elements(); ++i) {
      const double value = tensor.spec.dtype == DType::kBool ? std::uniform_int_distribution<int>(0, 1)(random)
                           : IsFloating(tensor.spec.dtype)   ? std::normal_distribution<double>(0, 1)(random)
                                                             : std::uniform_int_distribution<int>(0, 2)(random);
      tensor.values.push_back(reference::RoundTo(tensor.spec.dtype, reference::RoundTo(DType::kF32, value)));
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

}  // namespace mpc::test
