#include "passes/step/step_wrap.h"

#include "compiler/dialect/gradient_names.h"
#include "compiler/dialect/operation_attributes.h"
#include "runtime/scaler_field.h"

using namespace mlir;

namespace mpc {

namespace {

constexpr unsigned MovingFields = static_cast<unsigned>(kFirstScalerSetting);
constexpr unsigned ScaleIndex = static_cast<unsigned>(ScalerField::kScale);

} // namespace

StepWrap::StepWrap(func::FuncOp Function, const StepFlow &Flow, const WrapOptions &Options)
    : Function(Function), Flow(Flow), Options(Options), Builder(Function.getContext()),
      Loc(Flow.requests().front().Op->getLoc()),
      Return(cast<func::ReturnOp>(Function.getBody().front().getTerminator())) {}

LogicalResult StepWrap::run() {
  if (Options.Scaled && failed(assignScalers()))
    return failure();
  if (guards())
    Regions = std::make_unique<UpdateRegions>(Function.getBody().front(), Flow,
                                              [&](Operation *Op) { return keyOf(deciding(Op), Flow.isOptimizer(Op)); });
  collectOrigins();
  markStep(Function);
  addScalerArguments();
  if (accumulates())
    addMicroStep();
  unsigned Count = Flow.requests().size();
  if (Options.Scaled) {
    collectNorms();
    for (unsigned Request = 0; Request < Count; ++Request)
      checkRequest(Request);
  }
  for (unsigned Request = 0; Request < Count; ++Request)
    rewriteGradients(Request);
  if (Options.Scaled)
    for (unsigned Request = 0; Request < Count; ++Request)
      checkNorms(Request);
  if (guards()) {
    for (const UpdateRegion &Region : Regions->regions())
      guard(Region);
    selectOtherState();
  }
  appendResults();
  return success();
}

//===-- Scalers --------------------------------------------------------------------------------------------------===//

LogicalResult StepWrap::assignScalers() {
  SmallVector<Scaler> All(Options.NumLosses);
  for (auto [Index, Request] : llvm::enumerate(Flow.requests())) {
    int64_t Id = Request.LossId >= 0 ? Request.LossId : Options.NumLosses == 1 ? 0 : int64_t(Index);
    if (Id >= Options.NumLosses)
      return Request.Op->emitError() << (Request.LossId >= 0 ? "loss_id " : "the loss at place ") << Id
                                     << " has no scaler: num_losses is " << Options.NumLosses;
    All[Id].Requests.push_back(Index);
  }
  for (auto [Id, Chosen] : llvm::enumerate(All)) {
    if (Chosen.Requests.empty())
      continue;
    if (Options.NumLosses > 1)
      Chosen.Suffix = std::to_string(Id);
    Scalers.push_back(Chosen);
  }
  ScalerOf.resize(Flow.requests().size());
  for (auto [Index, Chosen] : llvm::enumerate(Scalers))
    for (unsigned Request : Chosen.Requests)
      ScalerOf[Request] = Index;
  return success();
}

Value StepWrap::addArgument(Type Type, Role Given, StringRef Name, StringRef Of) {
  (void)Function.insertArgument(Function.getNumArguments(), Type,
                                describedBy(makeState(Function.getContext(), Given, Name, Of)), Loc);
  return Function.getArguments().back();
}

void StepWrap::addScalerArguments() {
  for (Scaler &Chosen : Scalers)
    for (unsigned Index : llvm::seq<unsigned>(kScalerFieldNames.size())) {
      auto Field = static_cast<ScalerField>(Index);
      Type Element = IsF32(Field) ? Type(Builder.getF32Type()) : Type(Builder.getI32Type());
      Chosen.Fields.push_back(addArgument(RankedTensorType::get({}, Element), Role::kScaler,
                                          ScalerEntryName("scaler" + Chosen.Suffix, Field)));
    }
}

void StepWrap::checkRequest(unsigned Request) {
  const GradientRequest &Asked = Flow.requests()[Request];
  Value Scale = Scalers[ScalerOf[Request]].Fields[ScaleIndex];
  Asked.seed().set(Scale);
  Builder.setInsertionPointAfter(Asked.Op);
  SmallVector<Type> Types{RankedTensorType::get({}, Builder.getI1Type()),
                          RankedTensorType::get({}, Builder.getI32Type())};
  SmallVector<Value> Checked{Scale, Asked.Loss};
  llvm::append_range(Checked, Asked.Gradients);
  auto Check = AllFiniteOp::create(Builder, Asked.Op->getLoc(), Types, Checked);
  Checks.push_back(Check);
  Flags.push_back(Check.getFinite());
  FirstBad.push_back(Check.getFirstBad());
  if (accumulates())
    accumulateCheck(Request, Check);
}

Value StepWrap::unscale(unsigned Request, Value Gradient) {
  if (!Options.Scaled || !Options.Unscale)
    return Gradient;
  auto Type = cast<RankedTensorType>(Gradient.getType());
  Value Scale = Scalers[ScalerOf[Request]].Fields[ScaleIndex];
  Value Unscaled = UnscaleOp::create(Builder, Loc, Type.clone(Builder.getF32Type()), Gradient, Scale);
  if (Unscaled.getType() == Type)
    return Unscaled;
  return CastOp::create(Builder, Loc, Type, Unscaled);
}

// Everything but the guarded updates sees unscaled gradients: the user's own arithmetic, the sum over losses, an
// unguarded optimizer. Under accumulation all see the mean so far.
void StepWrap::rewriteGradients(unsigned Request) {
  const GradientRequest &Asked = Flow.requests()[Request];
  Operation *Check = Options.Scaled ? Checks[Request] : nullptr;
  Builder.setInsertionPointAfter(Check ? Check : Asked.Op);
  if (accumulates() && Options.Scaled)
    Builder.setInsertionPointAfter(Flags[Request].getDefiningOp());
  for (auto [Position, Gradient] : llvm::enumerate(Asked.Gradients)) {
    SmallVector<OpOperand *> Outside;
    for (OpOperand &Use : Gradient.getUses())
      if (Use.getOwner() != Check && (accumulates() || !guards() || !Regions->contains(Use.getOwner())))
        Outside.push_back(&Use);
    if (Outside.empty())
      continue;
    Value Seen = accumulates() ? accumulate(Request, Position) : unscale(Request, Gradient);
    for (OpOperand *Use : Outside)
      Use->set(Seen);
  }
}

//===-- Results --------------------------------------------------------------------------------------------------===//

void StepWrap::appendResult(Value Result, Role Given, StringRef Name) {
  (void)Function.insertResult(Function.getNumResults(), Result.getType(),
                              describedBy(makeState(Function.getContext(), Given, Name)));
  Return->insertOperands(Return->getNumOperands(), Result);
}

void StepWrap::appendResults() {
  Builder.setInsertionPoint(Return);
  for (Scaler &Chosen : Scalers)
    appendScaler(Chosen);
  if (accumulates())
    appendAccumulation();
  for (const Scaler &Chosen : Scalers)
    appendRecords(Chosen);
  if (accumulates())
    appendResult(MicroStep, Role::kRecord, "micro_step");
  if (!GradientNames.empty())
    dialectOf(Function).getGradientsAttrHelper().setAttr(Function, Builder.getDictionaryAttr(GradientNames));
}

void StepWrap::appendScaler(Scaler &Chosen) {
  SmallVector<Value> Checked;
  for (unsigned Request : Chosen.Requests)
    Checked.push_back(FirstBad[Request]);
  Chosen.FirstBad = Checked.front();
  if (Checked.size() > 1)
    Chosen.FirstBad = MergeChecksOp::create(Builder, Loc, Checked.front().getType(), Checked);
  SmallVector<Value> Operands{Chosen.FirstBad};
  llvm::append_range(Operands, Chosen.Fields);
  SmallVector<Type> Types = llvm::to_vector(TypeRange(ValueRange(Chosen.Fields).take_front(MovingFields)));
  auto Update = UpdateLossScaleOp::create(Builder, Loc, Types, Operands);
  for (unsigned Index : llvm::seq<unsigned>(kScalerFieldNames.size())) {
    Value New = Index < MovingFields ? Update->getResult(Index) : Chosen.Fields[Index];
    if (accumulates() && Index < MovingFields)
      New = SelectOp::create(Builder, Loc, New.getType(), IsLast, New, Chosen.Fields[Index]);
    appendResult(New, Role::kScaler, ScalerEntryName("scaler" + Chosen.Suffix, static_cast<ScalerField>(Index)));
  }
}

void StepWrap::appendRecords(const Scaler &Chosen) {
  SmallVector<Value> Finite;
  for (unsigned Request : Chosen.Requests)
    Finite.push_back(Flags[Request]);
  Value All = reduceFlags(Builder, Finite, /*Any=*/false, Loc);
  // A single check names its gradient. Several losses under one scaler have a record each.
  bool One = Chosen.Requests.size() == 1;
  appendResult(All, Role::kRecord, "finite" + Chosen.Suffix);
  appendResult(Chosen.FirstBad, Role::kRecord, "first_bad" + Chosen.Suffix);
  appendResult(Chosen.Fields[ScaleIndex], Role::kRecord, "loss_scale" + Chosen.Suffix);
  if (One)
    nameGradients("first_bad" + Chosen.Suffix, Chosen.Requests);
  else
    for (unsigned Request : Chosen.Requests) {
      std::string Record = "loss" + std::to_string(Request) + ".first_bad";
      appendResult(FirstBad[Request], Role::kRecord, Record);
      nameGradients(Record, Request);
    }
}

void StepWrap::nameGradients(const std::string &Record, ArrayRef<unsigned> Requests) {
  SmallVector<Attribute> Names;
  for (unsigned Request : Requests) {
    for (unsigned Position = 0; Position < Flow.requests()[Request].Gradients.size(); ++Position)
      Names.push_back(Builder.getStringAttr(Flow.gradientName(Request, Position)));
    Names.append(NormsOf[Request].size(), Builder.getStringAttr(StringRef(kNormOfGradients)));
  }
  GradientNames.push_back(Builder.getNamedAttr(Record, Builder.getArrayAttr(Names)));
}

} // namespace mpc
