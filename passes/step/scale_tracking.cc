#include "passes/step/scale_tracking.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/state_attributes.h"
#include "compiler/dialect/vjp_support.h"
#include "passes/step/scale_by_hand.h"
#include "passes/step/step_flow.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Format.h"

using namespace mlir;

namespace mpc {

ScaleTracking::ScaleTracking(func::FuncOp function) : function(function) {
  for (BlockArgument argument : function.getArguments())
    if (roleOf(argument) == Role::kScaler)
      fromScaler.insert(argument);
  for (Operation &op : function.getBody().front())
    op.walk<WalkOrder::PreOrder>([&](Operation *nested) {
      visit(nested);
      followScaler(nested);
    });
}

void ScaleTracking::visit(Operation *op) {
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](ValueAndGradOp step) {
        // The callee's loss is the one that a scaler multiplies inside.
        Value loss;
        if (func::FuncOp callee = step.getFunction();
            callee && !callee.isExternal() && callee.getBody().front().mightHaveTerminator())
          if (auto terminator = dyn_cast<func::ReturnOp>(callee.getBody().front().getTerminator()))
            loss = terminator.getNumOperands() > 0 ? terminator.getOperand(0) : Value();
        SmallVector<Value> parameters;
        for (int64_t position : step.getWrt())
          parameters.push_back(step.getInputs()[position]);
        bool fed = llvm::any_of(step.getInputs(), [&](Value input) { return fromScaler.contains(input); });
        visitRequest(op, loss, step.getSeed(), fed, parameters, step.getOutputs().take_back(step.getWrt().size()));
      })
      .Case([&](BackwardOp step) {
        visitRequest(op, step.getLoss(), step.getSeed(), fromScaler.contains(step.getLoss()), step.getWrt(),
                     step.getGradients());
      })
      .Case([&](UnscaleOp unscale) { visitUnscale(unscale); })
      .Case([&](GlobalNormOp norm) {
        for (Value gradient : norm.getGradients()) {
          if (norm.getUnscale())
            expectScaled(norm, gradient, norm.getScale());
          else if (lookup(gradient).state == Kind::Scaled)
            report(norm, "the norm of gradients is taken", gradient);
        }
      })
      .Case([&](ClipByNormOp clip) { visitUnscaled(clip, "a gradient is clipped", clip.getGradient()); })
      .Case([&](ClampOp clip) { visitUnscaled(clip, "a gradient is clipped", clip.getX()); })
      .Case([&](AccumulateGradientOp sum) { visitUnscaled(sum, "a gradient is accumulated", sum.getGradient()); })
      .Case([&](OptimizerOpInterface update) {
        if (!update.getUnscale())
          return visitUpdate(update);
        expectScaled(update, update.getGradientMutable().get(), update.getScalars().front());
      })
      .Default([&](Operation *other) {
        if (auto scaling = dyn_cast<ScaleLossOp>(other))
          expectUnscaledLoss(scaling);
        if (has<Property::SumsGradients>(other))
          return visitSum(other);
        if (other->hasTrait<StateUpdate>())
          return visitUpdate(other);
        if (has<Property::BesideNetwork>(other))
          return;
        bool keeps = has<Property::KeepsScale>(other);
        for (Value operand : other->getOperands())
          if (Scale known = lookup(operand); known.state != Kind::None)
            for (Value result : other->getResults())
              scales[result] = keeps ? known : Scale{Kind::Unknown, {}, other, known.parameter};
      });
}

// Values after an operation that divides the scale out, or decides by it, have no scale. A seed reaches gradients only.
void ScaleTracking::followScaler(Operation *op) {
  if (has<Property::EndsScale>(op))
    return;
  auto reached = [&](ValueRange values) {
    return llvm::any_of(values, [&](Value operand) { return fromScaler.contains(operand); });
  };
  if (auto step = dyn_cast<ValueAndGradOp>(op)) {
    if (reached(step.getInputs()))
      fromScaler.insert_range(step.getOutputs());
    else if (reached(step.getSeed()))
      fromScaler.insert_range(step.getOutputs().take_back(step.getWrt().size()));
  } else if (reached(op->getOperands())) {
    fromScaler.insert_range(op->getResults());
  }
}

// The scale of the loss multiplies that of the seed; two at once are unknown.
void ScaleTracking::visitRequest(Operation *op, Value loss, Value seed, bool fromScaler, ValueRange parameters,
                                 ValueRange gradients) {
  auto scaled = loss ? loss.getDefiningOp<ScaleLossOp>() : ScaleLossOp();
  bool seedScales = roleOf(seed) == Role::kScaler;
  std::optional<double> constant = constantSplat(seed);
  bool seedIsOne = constant == 1.0;
  Scale given{Kind::Unknown, {}, op};
  given.loss = loss;
  // A scale inside a callee is no value of this function.
  if (scaled && seedIsOne && scaled->getBlock() == op->getBlock() && !this->fromScaler.contains(scaled.getLoss())) {
    given.state = Kind::Scaled;
    given.by = scaled.getScale();
  } else if (!scaled && !fromScaler && seedScales) {
    given.state = Kind::Scaled;
    given.by = seed;
  } else if (!scaled && !fromScaler && seedIsOne) {
    given.state = Kind::Plain;
  } else if (!scaled && !fromScaler) {
    given.seed = constant;
  }
  for (auto [parameter, gradient] : llvm::zip_equal(parameters, gradients)) {
    given.parameter = parameter;
    scales[gradient] = given;
  }
}

void ScaleTracking::expectUnscaledLoss(ScaleLossOp op) {
  if (auto earlier = op.getLoss().getDefiningOp<ScaleLossOp>(); earlier && earlier.getScale() == op.getScale())
    add(op, "a loss is scaled twice by " + describe(op.getScale()), {}, {{earlier, "it was scaled here"}});
}

void ScaleTracking::visitUnscale(UnscaleOp op) {
  Scale known = lookup(op.getGradient());
  expectScaled(op, op.getGradient(), op.getScale());
  bool undone = known.state == Kind::Scaled && known.by == op.getScale();
  scales[op.getOutput()] = {undone ? Kind::Unscaled : Kind::Unknown, undone ? known.by : Value(), op, known.parameter};
}

void ScaleTracking::expectScaled(Operation *op, Value gradient, Value by) {
  Scale known = lookup(gradient);
  if (known.state == Kind::Unscaled)
    add(op, "a gradient is unscaled twice", known, {{known.source, "it was unscaled here, by " + describe(known.by)}});
  else if (known.state == Kind::Plain)
    add(op, "a gradient is unscaled by " + describe(by) + ", which has not scaled its loss", known, {note(known)});
  else if (known.state == Kind::Scaled && known.by != by)
    add(op, "a gradient is unscaled by " + describe(by) + " while it is scaled by another scale", known, {note(known)});
}

// Plain and unscaled gradients are of one scale, none.
void ScaleTracking::visitSum(Operation *op) {
  Scale first;
  bool known = true;
  for (Value operand : op->getOperands()) {
    Scale next = lookup(operand);
    if (next.state == Kind::None || next.state == Kind::Unknown) {
      known = false;
      if (next.state == Kind::Unknown)
        first = first.state == Kind::None ? next : first;
      continue;
    }
    bool isFirst = first.state == Kind::None || first.state == Kind::Unknown;
    bool scaled = first.state == Kind::Scaled || next.state == Kind::Scaled;
    if (!isFirst && scaled && (first.state != next.state || first.by != next.by)) {
      add(op, "gradients of two different scales are added", next, {note(first), note(next)});
      known = false;
      break;
    }
    // An unscaled gradient must not be unscaled again.
    if (isFirst || next.state == Kind::Unscaled)
      first = next;
  }
  if (first.state != Kind::None)
    scales[op->getResult(0)] = known ? first : Scale{Kind::Unknown, {}, op, first.parameter};
}

void ScaleTracking::visitUnscaled(Operation *op, const Twine &what, Value gradient) {
  Scale known = lookup(gradient);
  if (known.state == Kind::None)
    return;
  if (known.state == Kind::Scaled) {
    report(op, what, gradient);
    known = {Kind::Unknown, {}, op, known.parameter};
  }
  scales[op->getResult(0)] = known;
}

void ScaleTracking::visitUpdate(Operation *op) {
  if (auto divides = op->getAttrOfType<FloatAttr>("loss_scale"); divides && !divides.getValue().isExactlyValue(1.0))
    return visitDividingUpdate(op, divides.getValueAsDouble());
  for (Value operand : op->getOperands())
    if (lookup(operand).state == Kind::Scaled)
      return report(op, "an optimizer updates by a gradient", operand);
}

void ScaleTracking::visitDividingUpdate(Operation *op, double lossScale) {
  for (Value operand : op->getOperands()) {
    Scale known = lookup(operand);
    if (mayBeScaledByHand(known.loss, lossScale))
      continue;
    bool isNot = known.state == Kind::Plain || known.state == Kind::Unscaled;
    if (!isNot && !(known.state == Kind::Unknown && known.seed && *known.seed != lossScale))
      continue;
    std::string divides;
    llvm::raw_string_ostream(divides) << "an optimizer divides a gradient by its loss_scale = "
                                      << llvm::format("%.10g", lossScale) << ", ";
    return add(op, divides + (isNot ? "and no scale is left for it to divide" : "and its seed is another number"),
               known, {note(known)});
  }
}

void ScaleTracking::report(Operation *op, const Twine &what, Value gradient) {
  Scale known = lookup(gradient);
  add(op, what + " while it is scaled by " + describe(known.by), known, {note(known)});
}

void ScaleTracking::add(Operation *op, const Twine &message, const Scale &known,
                        ArrayRef<std::pair<Operation *, std::string>> notes) {
  std::string text = message.str();
  auto same = llvm::find_if(misuses, [&](const Misuse &earlier) {
    return earlier.message == text && earlier.op->getName() == op->getName();
  });
  if (same == misuses.end()) {
    misuses.push_back({op, text, {}, SmallVector<std::pair<Operation *, std::string>>(notes)});
    same = std::prev(misuses.end());
  }
  if (!known.parameter)
    return;
  if (StringRef name = nameOf(stateBefore(known.parameter));
      !name.empty() && !llvm::is_contained(same->parameters, name.str()))
    same->parameters.push_back(name.str());
}

std::string ScaleTracking::describe(Value by) const {
  if (StringRef name = nameOf(by); !name.empty())
    return "'" + name.str() + "'";
  return "a scale";
}

std::pair<Operation *, std::string> ScaleTracking::note(const Scale &known) const {
  switch (known.state) {
  case Kind::Scaled:
    return {known.source, "a gradient scaled by " + describe(known.by) + " comes from here"};
  case Kind::Unscaled:
    return {known.source, "a gradient is unscaled here, by " + describe(known.by)};
  case Kind::Plain:
    return {known.source, "a gradient of a loss that no scaler has scaled comes from here"};
  case Kind::None:
  case Kind::Unknown:
    break;
  }
  return {known.source, "the gradient comes from here"};
}

} // namespace mpc
