#include "passes/step/scale_tracking.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/state_attributes.h"
#include "compiler/dialect/vjp_support.h"
#include "passes/step/step_flow.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Format.h"

using namespace mlir;

namespace mpc {

ScaleTracking::ScaleTracking(func::FuncOp Function) : Function(Function) {
  for (BlockArgument Argument : Function.getArguments())
    if (roleOf(Argument) == Role::kScaler)
      FromScaler.insert(Argument);
  for (Operation &Op : Function.getBody().front())
    Op.walk<WalkOrder::PreOrder>([&](Operation *Nested) {
      visit(Nested);
      followScaler(Nested);
    });
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
        SmallVector<Value> Parameters;
        for (int64_t Position : Step.getWrt())
          Parameters.push_back(Step.getInputs()[Position]);
        bool Fed = llvm::any_of(Step.getInputs(), [&](Value Input) { return FromScaler.contains(Input); });
        visitRequest(Op, Loss, Step.getSeed(), Fed, Parameters, Step.getOutputs().take_back(Step.getWrt().size()));
      })
      .Case([&](BackwardOp Step) {
        visitRequest(Op, Step.getLoss(), Step.getSeed(), FromScaler.contains(Step.getLoss()), Step.getWrt(),
                     Step.getGradients());
      })
      .Case([&](UnscaleOp Unscale) { visitUnscale(Unscale); })
      .Case([&](GlobalNormOp Norm) {
        if (!Norm.getUnscale())
          return visitClip(Norm, Norm.getGradients());
        for (Value Gradient : Norm.getGradients())
          expectScaled(Norm, Gradient, Norm.getScale());
      })
      .Case([&](ClipByNormOp Clip) { visitClip(Clip, Clip.getGradient()); })
      .Case([&](OptimizerOpInterface Update) {
        if (!Update.getUnscale())
          return visitUpdate(Update);
        expectScaled(Update, Update.getGradientMutable().get(), Update.getScalars().front());
      })
      .Default([&](Operation *Other) {
        if (has<Property::SumsGradients>(Other))
          return visitSum(Other);
        if (Other->hasTrait<StateUpdate>())
          return visitUpdate(Other);
        if (has<Property::BesideNetwork>(Other))
          return;
        bool Keeps = has<Property::KeepsScale>(Other);
        for (Value Operand : Other->getOperands())
          if (Scale Known = lookup(Operand); Known.State != Kind::None)
            for (Value Result : Other->getResults())
              Scales[Result] = Keeps ? Known : Scale{Kind::Unknown, {}, Other, Known.Parameter};
      });
}

// Values after an operation that divides the scale out, or decides by it, have no scale. A seed reaches gradients only.
void ScaleTracking::followScaler(Operation *Op) {
  if (has<Property::EndsScale>(Op))
    return;
  auto Reached = [&](ValueRange Values) {
    return llvm::any_of(Values, [&](Value Operand) { return FromScaler.contains(Operand); });
  };
  if (auto Step = dyn_cast<ValueAndGradOp>(Op)) {
    if (Reached(Step.getInputs()))
      FromScaler.insert_range(Step.getOutputs());
    else if (Reached(Step.getSeed()))
      FromScaler.insert_range(Step.getOutputs().take_back(Step.getWrt().size()));
  } else if (Reached(Op->getOperands())) {
    FromScaler.insert_range(Op->getResults());
  }
}

static std::optional<double> constantSplat(Value V) {
  if (auto Constant = V.getDefiningOp<ConstantOp>())
    if (auto Elements = dyn_cast<DenseFPElementsAttr>(Constant.getValue()); Elements && Elements.isSplat())
      return Elements.getSplatValue<APFloat>().convertToDouble();
  return std::nullopt;
}

// The scale of the loss multiplies that of the seed; two at once are unknown.
void ScaleTracking::visitRequest(Operation *Op, Value Loss, Value Seed, bool FromScaler, ValueRange Parameters,
                                 ValueRange Gradients) {
  auto Scaled = Loss ? Loss.getDefiningOp<ScaleLossOp>() : ScaleLossOp();
  bool SeedScales = roleOf(Seed) == Role::kScaler;
  std::optional<double> Constant = constantSplat(Seed);
  bool SeedIsOne = Constant == 1.0;
  Scale Given{Kind::Unknown, {}, Op};
  Given.MayBeScaledByHand = Loss && Loss.getDefiningOp() && has<Property::ProductOrQuotient>(Loss.getDefiningOp());
  // A scale inside a callee is no value of this function.
  if (Scaled && SeedIsOne && Scaled->getBlock() == Op->getBlock() && !this->FromScaler.contains(Scaled.getLoss())) {
    Given.State = Kind::Scaled;
    Given.By = Scaled.getScale();
  } else if (!Scaled && !FromScaler && SeedScales) {
    Given.State = Kind::Scaled;
    Given.By = Seed;
  } else if (!Scaled && !FromScaler && SeedIsOne) {
    Given.State = Kind::Plain;
  } else if (!Scaled && !FromScaler) {
    Given.Seed = Constant;
  }
  for (auto [Parameter, Gradient] : llvm::zip_equal(Parameters, Gradients)) {
    Given.Parameter = Parameter;
    Scales[Gradient] = Given;
  }
}

void ScaleTracking::visitUnscale(UnscaleOp Op) {
  Scale Known = lookup(Op.getGradient());
  expectScaled(Op, Op.getGradient(), Op.getScale());
  bool Undone = Known.State == Kind::Scaled && Known.By == Op.getScale();
  Scales[Op.getOutput()] = {Undone ? Kind::Unscaled : Kind::Unknown, Undone ? Known.By : Value(), Op, Known.Parameter};
}

void ScaleTracking::expectScaled(Operation *Op, Value Gradient, Value By) {
  Scale Known = lookup(Gradient);
  if (Known.State == Kind::Unscaled)
    add(Op, "a gradient is unscaled twice", Known, {{Known.Source, "it was unscaled here, by " + describe(Known.By)}});
  else if (Known.State == Kind::Plain)
    add(Op, "a gradient is unscaled by " + describe(By) + ", which has not scaled its loss", Known, {note(Known)});
  else if (Known.State == Kind::Scaled && Known.By != By)
    add(Op, "a gradient is unscaled by " + describe(By) + " while it is scaled by another scale", Known, {note(Known)});
}

// Plain and unscaled gradients are of one scale, none.
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
    bool IsFirst = First.State == Kind::None || First.State == Kind::Unknown;
    bool Scaled = First.State == Kind::Scaled || Next.State == Kind::Scaled;
    if (!IsFirst && Scaled && (First.State != Next.State || First.By != Next.By)) {
      add(Op, "gradients of two different scales are added", Next, {note(First), note(Next)});
      Known = false;
      break;
    }
    // An unscaled gradient must not be unscaled again.
    if (IsFirst || Next.State == Kind::Unscaled)
      First = Next;
  }
  if (First.State != Kind::None)
    Scales[Op->getResult(0)] = Known ? First : Scale{Kind::Unknown, {}, Op, First.Parameter};
}

void ScaleTracking::visitClip(Operation *Op, ValueRange Gradients) {
  Scale Result;
  for (Value Gradient : Gradients) {
    Result = lookup(Gradient);
    if (Result.State != Kind::Scaled)
      continue;
    report(Op, isa<GlobalNormOp>(Op) ? "the norm of gradients is taken" : "a gradient is clipped", Gradient);
    Result = {Kind::Unknown, {}, Op, Result.Parameter};
  }
  if (isa<ClipByNormOp>(Op) && Result.State != Kind::None)
    Scales[Op->getResult(0)] = Result;
}

void ScaleTracking::visitUpdate(Operation *Op) {
  if (auto Divides = Op->getAttrOfType<FloatAttr>("loss_scale"); Divides && !Divides.getValue().isExactlyValue(1.0))
    return visitDividingUpdate(Op, Divides.getValueAsDouble());
  for (Value Operand : Op->getOperands())
    if (lookup(Operand).State == Kind::Scaled)
      return report(Op, "an optimizer updates by a gradient", Operand);
}

void ScaleTracking::visitDividingUpdate(Operation *Op, double LossScale) {
  for (Value Operand : Op->getOperands()) {
    Scale Known = lookup(Operand);
    if (Known.MayBeScaledByHand)
      continue;
    bool IsNot = Known.State == Kind::Plain || Known.State == Kind::Unscaled;
    if (!IsNot && !(Known.State == Kind::Unknown && Known.Seed && *Known.Seed != LossScale))
      continue;
    std::string Divides;
    llvm::raw_string_ostream(Divides) << "an optimizer divides a gradient by its loss_scale = "
                                      << llvm::format("%.10g", LossScale) << ", ";
    return add(Op, Divides + (IsNot ? "and no scale is left for it to divide" : "and its seed is another number"),
               Known, {note(Known)});
  }
}

void ScaleTracking::report(Operation *Op, const Twine &What, Value Gradient) {
  Scale Known = lookup(Gradient);
  add(Op, What + " while it is scaled by " + describe(Known.By), Known, {note(Known)});
}

void ScaleTracking::add(Operation *Op, const Twine &Message, const Scale &Known,
                        ArrayRef<std::pair<Operation *, std::string>> Notes) {
  std::string Text = Message.str();
  auto Same = llvm::find_if(Misuses, [&](const Misuse &Earlier) {
    return Earlier.Message == Text && Earlier.Op->getName() == Op->getName();
  });
  if (Same == Misuses.end()) {
    Misuses.push_back({Op, Text, {}, SmallVector<std::pair<Operation *, std::string>>(Notes)});
    Same = std::prev(Misuses.end());
  }
  if (!Known.Parameter)
    return;
  if (StringRef Name = nameOf(stateBefore(Known.Parameter));
      !Name.empty() && !llvm::is_contained(Same->Parameters, Name.str()))
    Same->Parameters.push_back(Name.str());
}

std::string ScaleTracking::describe(Value By) const {
  if (StringRef Name = nameOf(By); !Name.empty())
    return "'" + Name.str() + "'";
  return "a scale";
}

std::pair<Operation *, std::string> ScaleTracking::note(const Scale &Known) const {
  switch (Known.State) {
  case Kind::Scaled:
    return {Known.Source, "a gradient scaled by " + describe(Known.By) + " comes from here"};
  case Kind::Unscaled:
    return {Known.Source, "a gradient is unscaled here, by " + describe(Known.By)};
  case Kind::Plain:
    return {Known.Source, "a gradient of a loss that no scaler has scaled comes from here"};
  case Kind::None:
  case Kind::Unknown:
    break;
  }
  return {Known.Source, "the gradient comes from here"};
}

} // namespace mpc
