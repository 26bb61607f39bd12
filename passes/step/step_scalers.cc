// Loss scalers.
//
//   func.func @step(%w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">}, ...) -> (...) {
//     ...
//     return %w2 : tensor<4xf32>
// becomes
//   func.func @step(%w: ..., %scale: tensor<f32> {mpc.state = #mpc.state<scaler, "scaler.scale">}, %good: ..., ...)
//       -> (..., tensor<f32> {mpc.state = #mpc.state<scaler, "scaler.scale">}, ...) {
//     ...
//     %scale2, %good2, ... = mpc.update_loss_scale %first_bad, %scale, %good, ... : ...
//     return %w2, %scale2, %good2, ... : ...
//
// In micro-steps a scaler moves in the last one:
//     %scale3 = mpc.select %is_last, %scale2, %scale : ...
#include "passes/step/step_scalers.h"

#include "runtime/scaler_field.h"

using namespace mlir;

namespace mpc {

static constexpr unsigned movingFields = static_cast<unsigned>(kFirstScalerSetting);

static std::string entryName(const Scaler &chosen, unsigned index) {
  return ScalerEntryName("scaler" + chosen.suffix, static_cast<ScalerField>(index));
}

Value Scaler::getScale() const { return fields[static_cast<unsigned>(ScalerField::kScale)]; }

LogicalResult StepScalers::assign(int64_t numLosses) {
  SmallVector<Scaler> all(numLosses);
  for (auto [index, request] : llvm::enumerate(edit.getRequests())) {
    int64_t id = request.lossId >= 0 ? request.lossId : numLosses == 1 ? 0 : int64_t(index);
    if (id >= numLosses)
      return request.op->emitError() << (request.lossId >= 0 ? "loss_id " : "the loss at place ") << id
                                     << " has no scaler: num_losses is " << numLosses;
    all[id].requests.push_back(index);
  }
  for (auto [id, chosen] : llvm::enumerate(all)) {
    if (chosen.requests.empty())
      continue;
    if (numLosses > 1)
      chosen.suffix = std::to_string(id);
    scalers.push_back(chosen);
  }
  scalerOf.resize(edit.getRequests().size());
  for (auto [index, chosen] : llvm::enumerate(scalers))
    for (unsigned request : chosen.requests)
      scalerOf[request] = index;
  return success();
}

void StepScalers::addArguments() {
  for (Scaler &chosen : scalers)
    for (unsigned index : llvm::seq<unsigned>(kScalerFieldNames.size())) {
      bool isF32 = IsF32(static_cast<ScalerField>(index));
      Type element = isF32 ? Type(edit.builder.getF32Type()) : Type(edit.builder.getI32Type());
      chosen.fields.push_back(edit.addArgument(scalarType(element), Role::kScaler, entryName(chosen, index)));
    }
}

Value StepScalers::unscale(unsigned request, Value gradient) const {
  if (empty() || !divides)
    return gradient;
  auto type = cast<RankedTensorType>(gradient.getType());
  Type wide = type.clone(edit.builder.getF32Type());
  Value unscaled = UnscaleOp::create(edit.builder, edit.loc, wide, gradient, scaleOf(request));
  if (unscaled.getType() == type)
    return unscaled;
  return CastOp::create(edit.builder, edit.loc, type, unscaled);
}

void StepScalers::appendResults(ArrayRef<Finding> findings) {
  edit.builder.setInsertionPoint(edit.returnOp);
  for (Scaler &chosen : scalers)
    appendResults(chosen, findings);
}

void StepScalers::appendResults(Scaler &chosen, ArrayRef<Finding> findings) {
  SmallVector<Value> found;
  for (unsigned request : chosen.requests)
    found.push_back(findings[request].firstBad);
  chosen.firstBad = found.front();
  if (found.size() > 1)
    chosen.firstBad = MergeChecksOp::create(edit.builder, edit.loc, found.front().getType(), found);
  SmallVector<Value> operands{chosen.firstBad};
  llvm::append_range(operands, chosen.fields);
  SmallVector<Type> types = llvm::to_vector(TypeRange(ValueRange(chosen.fields).take_front(movingFields)));
  auto update = UpdateLossScaleOp::create(edit.builder, edit.loc, types, operands);
  for (auto [index, old] : llvm::enumerate(chosen.fields)) {
    Value updated = index < movingFields ? update->getResult(index) : old;
    edit.appendResult(microSteps.inLast(updated, old), Role::kScaler, entryName(chosen, index));
  }
}

} // namespace mpc
