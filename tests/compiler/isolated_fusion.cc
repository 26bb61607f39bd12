#include "tests/compiler/isolated_fusion.h"

#include <limits>
#include <random>
#include <utility>

#include "compiler/dialect/attribute_conversion.h"
#include "mlir/IR/IRMapping.h"

namespace mpc::test {

// A copy of \p fusion, which yields \p more as well, in a function of its own.
static mlir::OwningOpRef<mlir::ModuleOp> Isolate(FusionOp fusion, mlir::ValueRange more) {
  const mlir::Location loc = fusion.getLoc();
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(loc);
  llvm::SmallVector<mlir::Type> results(fusion->getResultTypes());
  llvm::append_range(results, more.getTypes());
  mlir::OpBuilder builder(module->getBodyRegion());
  auto function =
      mlir::func::FuncOp::create(builder, loc, "region", builder.getFunctionType(fusion->getOperandTypes(), results));
  builder.setInsertionPointToStart(function.addEntryBlock());
  auto copy = FusionOp::create(builder, loc, results, function.getArguments());
  mlir::IRMapping mapping;
  fusion.getBody().cloneInto(&copy.getBody(), mapping);
  mlir::Operation* yield = copy.getBody().front().getTerminator();
  for (mlir::Value value : more) yield->insertOperands(yield->getNumOperands(), mapping.lookup(value));
  mlir::func::ReturnOp::create(builder, loc, copy->getResults());
  return module;
}

IsolatedFusion::IsolatedFusion(FusionOp fusion) : module(Isolate(fusion, {})) {}

IsolatedFusion IsolatedFusion::WithReductions() const {
  mlir::Block& body = fusion().getBody().front();
  llvm::SmallVector<mlir::Value> more;
  for (mlir::Operation& op : body.without_terminator()) {
    auto fusible = mlir::dyn_cast<FusibleOpInterface>(op);
    if (!fusible || fusible.getReductions().empty()) continue;
    for (mlir::Value result : op.getResults()) {
      if (!llvm::is_contained(body.getTerminator()->getOperands(), result)) more.push_back(result);
    }
  }
  return IsolatedFusion(Isolate(fusion(), more));
}

mlir::func::FuncOp IsolatedFusion::function() const { return module->lookupSymbol<mlir::func::FuncOp>("region"); }

FusionOp IsolatedFusion::fusion() const { return *function().getOps<FusionOp>().begin(); }

static double RandomElement(DType dtype, InputFill fill, std::mt19937_64& random) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kSpecial[] = {
      0.0, -0.0, 1e-40, -6e-8, 6e4, kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN(), 3e38};
  const auto between = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  if (dtype == DType::kBool) return between(0, 1);
  if (!IsFloating(dtype)) return between(0, 2);
  // Rare enough that most sums stay finite.
  if (fill != InputFill::kNormal && between(0, 99) == 0) return kSpecial[between(0, fill == InputFill::kHuge ? 8 : 7)];
  return std::normal_distribution<double>(0, 1)(random);
}

std::vector<reference::Tensor> IsolatedFusion::RandomInputs(std::uint64_t seed, InputFill fill) const {
  std::mt19937_64 random(seed);
  std::vector<reference::Tensor> inputs;
  for (const mlir::Type type : function().getArgumentTypes()) {
    reference::Tensor tensor;
    tensor.spec = toTensorSpec(mlir::cast<mlir::RankedTensorType>(type));
    for (std::int64_t i = 0; i < tensor.spec.num_elements(); ++i) {
      const double value = RandomElement(tensor.spec.dtype, fill, random);
      tensor.values.push_back(reference::RoundTo(tensor.spec.dtype, reference::RoundTo(DType::kF32, value)));
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

}  // namespace mpc::test
