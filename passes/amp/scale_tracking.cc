#include "passes/amp/scale_tracking.h"

#include "compiler/dialect/vjp_support.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace mpc {

static bool keepsScale(Operation *Op) {
  return isa<CastOp, ReshapeOp, TransposeOp, BroadcastToOp, StopGradientOp, SliceOp, SplitOp, PadOp>(Op);
}

static StringAttr argumentAttr(Value V, StringRef Attr) {
  auto Argument = dyn_cast<BlockArgument>(V);
  auto Function = Argument ? dyn_cast_or_null<func::FuncOp>(Argument.getOwner()->getParentOp()) : func::FuncOp();
  return Function ? Function.getArgAttrOfType<StringAttr>(Argument.getArgNumber(), Attr) : StringAttr();
}

ScaleTracking::ScaleTracking(func::FuncOp Function) : Function(Function) {
  for (Operation &Op : Function.getBody().front())
    Op.walk<WalkOrder::PreOrder>([&](Operation *Nested) { visit(Nested); });
}

void ScaleTracking::visit(Operation *Op) {
  llvm::TypeSwitch<Operation *>(Op)
      .Case([&](ValueAndGradOp Step) {
        // The callee's loss is the one that a scaler multiplies inside.
        Value Loss;
        if (auto Callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(Op, Step.getCalleeAttr());
            Callee && !Callee.isExternal() && Callee.getBody().front().mightHaveTerminator())
          if (auto Return = dyn_cast<func::ReturnOp>(Callee.getBody().front().getTerminator()))
            Loss = Return.getNumOperands() > 0 ? Return.getOperand(0) : Value();
        visitRequest(Op, Loss, Step.getSeed(), Step.getOutputs().take_back(Step.getWrt().size()));
      })
      .Case([&](BackwardOp Step) { visitRequest(Op, Step.getLoss(), Step.getSeed(), Step.getGradients()); })
      .Case([&](UnscaleOp Unscale) { visitUnscale(Unscale); })
      .Case<AddOp, SubOp, SumNOp>([&](Operation *Sum) { visitSum(Sum); })
      .Case([&](GlobalNormOp Norm) {
        if (!Norm.getUnscale())
          return visitClip(Norm, Norm.getGradients());
        for (Value Gradient : Norm.getGradients())
          expectNotUnscaled(Norm, Gradient);
      })
      .Case([&](ClipByNormOp Clip) { visitClip(Clip, Clip.getGradient()); })
      .Case<AllFiniteOp, MergeChecksOp, UpdateLossScaleOp, GuardedUpdateOp>([](Operation *) {})
      .Case([&](OptimizerOpInterface Update) {
        if (!Update.getUnscale())
          return visitUpdate(Update);
        expectNotUnscaled(Update, Update.getGradientMutable().get());
      })
      .Default([&](Operation *Other) {
        if (Other->hasTrait<StateUpdate>())
          return visitUpdate(Other);
        bool Keeps = keepsScale(Other);
        for (Value Operand : Other->getOperands())
          if (Scale Known = lookup(Operand); Known.State != Kind::None)
            for (Value Result : Other->getResults())
              Scales[Result] = Keeps ? Known : Scale{Kind::Unknown, {}, Other};
      });
}

// The scale of the loss multiplies that of the seed; two at once are unknown.
void ScaleTracking::visitRequest(Operation *Op, Value Loss, Value Seed, ValueRange Gradients) {
  auto Scaled = Loss ? Loss.getDefiningOp<ScaleLossOp>() : ScaleLossOp();
  StringAttr Role = argumentAttr(Seed, RoleAttrName);
  bool SeedScales = Role && Role == "scaler";
  bool SeedIsOne = false;
  if (auto Constant = Seed.getDefiningOp<ConstantOp>())
    if (auto Elements = dyn_cast<DenseFPElementsAttr>(Constant.getValue()))
      SeedIsOne = Elements.isSplat() && Elements.getSplatValue<APFloat>().isExactlyValue(1.0);
  Scale Given;
  // A scale inside a callee is no value of this function.
  if (Scaled && SeedIsOne && Scaled->getBlock() == Op->getBlock() && !Scaled.getLoss().getDefiningOp<ScaleLossOp>())
    Given = {Kind::Scaled, Scaled.getScale(), Op};
  else if (!Scaled && SeedScales)
    Given = {Kind::Scaled, Seed, Op};
  else if (Scaled || !SeedIsOne)
    Given = {Kind::Unknown, {}, Op};
  if (Given.State != Kind::None)
    for (Value Gradient : Gradients)
      Scales[Gradient] = Given;
}

void ScaleTracking::visitUnscale(UnscaleOp Op) {
  Scale Known = lookup(Op.getGradient());
  Scale &Result = Scales[Op.getOutput()];
  if (Known.State == Kind::Scaled && Known.By == Op.getScale()) {
    Result = {Kind::Unscaled, Op.getScale(), Op};
    return;
  }
  Result = {Kind::Unknown, {}, Op};
  expectNotUnscaled(Op, Op.getGradient());
}

void ScaleTracking::expectNotUnscaled(Operation *Op, Value Gradient) {
  Scale Known = lookup(Gradient);
  if (Known.State == Kind::Unscaled)
    Misuses.push_back(
        {Op, "a gradient is unscaled twice", {{Known.Source, "it was unscaled here, by " + describe(Known.By)}}});
}

void ScaleTracking::visitSum(Operation *Op) {
  Scale First;
  bool Known = true;
  for (Value Operand : Op->getOperands()) {
    Scale Next = lookup(Operand);
    if (Next.State == Kind::None || Next.State == Kind::Unknown) {
      Known = false;
      if (Next.State == Kind::Unknown)
        First = First.State == Kind::None ? Next : First;
      continue;
    }
    bool Same = First.State == Kind::None || First.State == Kind::Unknown ||
                (First.State == Next.State && (Next.State == Kind::Unscaled || First.By == Next.By));
    if (!Same) {
      Misuses.push_back({Op, "gradients of two different scales are added", {note(First), note(Next)}});
      Known = false;
      break;
    }
    First = Next;
  }
  if (First.State != Kind::None)
    Scales[Op->getResult(0)] = Known ? First : Scale{Kind::Unknown, {}, Op};
}

void ScaleTracking::visitClip(Operation *Op, ValueRange Gradients) {
  Scale Result;
  for (Value Gradient : Gradients) {
    Result = lookup(Gradient);
    if (Result.State != Kind::Scaled)
      continue;
    report(Op, isa<GlobalNormOp>(Op) ? "the norm of gradients is taken" : "a gradient is clipped", Gradient);
    Result = {Kind::Unknown, {}, Op};
    break;
  }
  if (isa<ClipByNormOp>(Op) && Result.State != Kind::None)
    Scales[Op->getResult(0)] = Result;
}

void ScaleTracking::visitUpdate(Operation *Op) {
  auto Divides = Op->getAttrOfType<FloatAttr>("loss_scale");
  if (Divides && !Divides.getValue().isExactlyValue(1.0))
    return;
  for (Value Operand : Op->getOperands())
    if (lookup(Operand).State == Kind::Scaled)
      return report(Op, "an optimizer updates by a gradient", Operand);
}

void ScaleTracking::report(Operation *Op, const Twine &What, Value Gradient) {
  Scale Known = lookup(Gradient);
  Misuses.push_back({Op, (What + " while it is scaled by " + describe(Known.By)).str(), {note(Known)}});
}

std::string ScaleTracking::describe(Value By) const {
  if (auto Name = argumentAttr(By, NameAttrName))
    return "'" + Name.str() + "'";
  return "a scale";
}

std::pair<Operation *, std::string> ScaleTracking::note(const Scale &Known) const {
  if (Known.State == Kind::Unscaled)
    return {Known.Source, "a gradient is unscaled here, by " + describe(Known.By)};
  return {Known.Source, "a gradient scaled by " + describe(Known.By) + " comes from here"};
}

} // namespace mpc
