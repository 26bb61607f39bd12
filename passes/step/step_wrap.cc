#include "passes/step/step_wrap.h"

#include "compiler/dialect/gradient_names.h"
#include "compiler/dialect/operation_attributes.h"
#include "runtime/scaler_field.h"

using namespace mlir;

namespace mpc {

namespace {

constexpr unsigned movingFields = static_cast<unsigned>(kFirstScalerSetting);
constexpr unsigned scaleIndex = static_cast<unsigned>(ScalerField::kScale);

} // namespace

StepWrap::StepWrap(func::FuncOp function, const StepFlow &flow, const WrapOptions &options)
    : function(function), flow(flow), options(options), builder(function.getContext()),
      loc(flow.getRequests().front().op->getLoc()),
      terminator(cast<func::ReturnOp>(function.getBody().front().getTerminator())) {}

LogicalResult StepWrap::run() {
  if (options.scaled && failed(assignScalers()))
    return failure();
  if (guards())
    regions = std::make_unique<UpdateGroups>(function.getBody().front(), flow,
                                             [&](Operation *op) { return keyOf(deciding(op), flow.isOptimizer(op)); });
  collectOrigins();
  markStep(function);
  addScalerArguments();
  if (accumulates())
    addMicroStep();
  unsigned count = flow.getRequests().size();
  if (options.scaled) {
    collectNorms();
    for (unsigned request = 0; request < count; ++request)
      checkRequest(request);
  }
  for (unsigned request = 0; request < count; ++request)
    rewriteGradients(request);
  if (options.scaled)
    for (unsigned request = 0; request < count; ++request)
      checkNorms(request);
  if (guards()) {
    for (const UpdateGroup &region : regions->getRegions())
      guard(region);
    selectOtherState();
  }
  appendResults();
  return success();
}

//===-- Scalers --------------------------------------------------------------------------------------------------===//

LogicalResult StepWrap::assignScalers() {
  SmallVector<Scaler> all(options.numLosses);
  for (auto [index, request] : llvm::enumerate(flow.getRequests())) {
    int64_t id = request.lossId >= 0 ? request.lossId : options.numLosses == 1 ? 0 : int64_t(index);
    if (id >= options.numLosses)
      return request.op->emitError() << (request.lossId >= 0 ? "loss_id " : "the loss at place ") << id
                                     << " has no scaler: num_losses is " << options.numLosses;
    all[id].requests.push_back(index);
  }
  for (auto [id, chosen] : llvm::enumerate(all)) {
    if (chosen.requests.empty())
      continue;
    if (options.numLosses > 1)
      chosen.suffix = std::to_string(id);
    scalers.push_back(chosen);
  }
  scalerOf.resize(flow.getRequests().size());
  for (auto [index, chosen] : llvm::enumerate(scalers))
    for (unsigned request : chosen.requests)
      scalerOf[request] = index;
  return success();
}

Value StepWrap::addArgument(Type type, Role given, StringRef name, StringRef of) {
  (void)function.insertArgument(function.getNumArguments(), type,
                                describedBy(makeState(function.getContext(), given, name, of)), loc);
  return function.getArguments().back();
}

void StepWrap::addScalerArguments() {
  for (Scaler &chosen : scalers)
    for (unsigned index : llvm::seq<unsigned>(kScalerFieldNames.size())) {
      auto field = static_cast<ScalerField>(index);
      Type element = IsF32(field) ? Type(builder.getF32Type()) : Type(builder.getI32Type());
      chosen.fields.push_back(addArgument(RankedTensorType::get({}, element), Role::kScaler,
                                          ScalerEntryName("scaler" + chosen.suffix, field)));
    }
}

void StepWrap::checkRequest(unsigned request) {
  const GradientRequest &asked = flow.getRequests()[request];
  Value scale = scalers[scalerOf[request]].fields[scaleIndex];
  asked.seed().set(scale);
  builder.setInsertionPointAfter(asked.op);
  SmallVector<Type> types{RankedTensorType::get({}, builder.getI1Type()),
                          RankedTensorType::get({}, builder.getI32Type())};
  SmallVector<Value> checked{scale, asked.loss};
  llvm::append_range(checked, asked.gradients);
  auto check = AllFiniteOp::create(builder, asked.op->getLoc(), types, checked);
  checks.push_back(check);
  flags.push_back(check.getFinite());
  firstBad.push_back(check.getFirstBad());
  if (accumulates())
    accumulateCheck(request, check);
}

Value StepWrap::unscale(unsigned request, Value gradient) {
  if (!options.scaled || !options.unscale)
    return gradient;
  auto type = cast<RankedTensorType>(gradient.getType());
  Value scale = scalers[scalerOf[request]].fields[scaleIndex];
  Value unscaled = UnscaleOp::create(builder, loc, type.clone(builder.getF32Type()), gradient, scale);
  if (unscaled.getType() == type)
    return unscaled;
  return CastOp::create(builder, loc, type, unscaled);
}

// Everything but the guarded updates sees unscaled gradients: the user's own arithmetic, the sum over losses, an
// unguarded optimizer. Under accumulation all see the mean so far.
void StepWrap::rewriteGradients(unsigned request) {
  const GradientRequest &asked = flow.getRequests()[request];
  Operation *check = options.scaled ? checks[request] : nullptr;
  builder.setInsertionPointAfter(check ? check : asked.op);
  if (accumulates() && options.scaled)
    builder.setInsertionPointAfter(flags[request].getDefiningOp());
  for (auto [position, gradient] : llvm::enumerate(asked.gradients)) {
    SmallVector<OpOperand *> outside;
    for (OpOperand &use : gradient.getUses())
      if (use.getOwner() != check && (accumulates() || !guards() || !regions->contains(use.getOwner())))
        outside.push_back(&use);
    if (outside.empty())
      continue;
    Value seen = accumulates() ? accumulate(request, position) : unscale(request, gradient);
    for (OpOperand *use : outside)
      use->set(seen);
  }
}

//===-- Results --------------------------------------------------------------------------------------------------===//

void StepWrap::appendResult(Value result, Role given, StringRef name) {
  (void)function.insertResult(function.getNumResults(), result.getType(),
                              describedBy(makeState(function.getContext(), given, name)));
  terminator->insertOperands(terminator->getNumOperands(), result);
}

void StepWrap::appendResults() {
  builder.setInsertionPoint(terminator);
  for (Scaler &chosen : scalers)
    appendScaler(chosen);
  if (accumulates())
    appendAccumulation();
  for (const Scaler &chosen : scalers)
    appendRecords(chosen);
  if (accumulates())
    appendResult(microStep, Role::kRecord, "micro_step");
  if (!gradientNames.empty())
    dialectOf(function).getGradientsAttrHelper().setAttr(function, builder.getDictionaryAttr(gradientNames));
}

void StepWrap::appendScaler(Scaler &chosen) {
  SmallVector<Value> checked;
  for (unsigned request : chosen.requests)
    checked.push_back(firstBad[request]);
  chosen.firstBad = checked.front();
  if (checked.size() > 1)
    chosen.firstBad = MergeChecksOp::create(builder, loc, checked.front().getType(), checked);
  SmallVector<Value> operands{chosen.firstBad};
  llvm::append_range(operands, chosen.fields);
  SmallVector<Type> types = llvm::to_vector(TypeRange(ValueRange(chosen.fields).take_front(movingFields)));
  auto update = UpdateLossScaleOp::create(builder, loc, types, operands);
  for (unsigned index : llvm::seq<unsigned>(kScalerFieldNames.size())) {
    Value updated = index < movingFields ? update->getResult(index) : chosen.fields[index];
    if (accumulates() && index < movingFields)
      updated = SelectOp::create(builder, loc, updated.getType(), isLast, updated, chosen.fields[index]);
    appendResult(updated, Role::kScaler, ScalerEntryName("scaler" + chosen.suffix, static_cast<ScalerField>(index)));
  }
}

void StepWrap::appendRecords(const Scaler &chosen) {
  SmallVector<Value> finite;
  for (unsigned request : chosen.requests)
    finite.push_back(flags[request]);
  Value all = reduceFlags(builder, finite, /*any=*/false, loc);
  // A single check names its gradient. Several losses under one scaler have a record each.
  bool one = chosen.requests.size() == 1;
  appendResult(all, Role::kRecord, "finite" + chosen.suffix);
  appendResult(chosen.firstBad, Role::kRecord, "first_bad" + chosen.suffix);
  appendResult(chosen.fields[scaleIndex], Role::kRecord, "loss_scale" + chosen.suffix);
  if (one)
    nameGradients("first_bad" + chosen.suffix, chosen.requests);
  else
    for (unsigned request : chosen.requests) {
      std::string record = "loss" + std::to_string(request) + ".first_bad";
      appendResult(firstBad[request], Role::kRecord, record);
      nameGradients(record, request);
    }
}

void StepWrap::nameGradients(const std::string &record, ArrayRef<unsigned> requests) {
  SmallVector<Attribute> names;
  for (unsigned request : requests) {
    for (unsigned position = 0; position < flow.getRequests()[request].gradients.size(); ++position)
      names.push_back(builder.getStringAttr(flow.gradientName(request, position)));
    names.append(normsOf[request].size(), builder.getStringAttr(StringRef(kNormOfGradients)));
  }
  gradientNames.push_back(builder.getNamedAttr(record, builder.getArrayAttr(names)));
}

} // namespace mpc
