// The wrap of a training step: loss scale, finite check, guarded update, scale update.
#include "compiler/dialect/dialect.h"
#include "mlir/IR/Matchers.h"
#include "passes/passes.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_LOSSSCALEPASS
#include "passes/passes.h.inc"

namespace {

struct ScalerField {
  StringRef Name;
  bool IsFloat;
};

// In the order of update_loss_scale's operands after `first_bad`. All are state; the first five move in a step.
constexpr ScalerField ScalerFields[] = {
    {"scaler.scale", true},        {"scaler.good", false},     {"scaler.bad", false},       {"scaler.skipped", false},
    {"scaler.consecutive", false}, {"scaler.growth", true},    {"scaler.backoff", true},    {"scaler.minimum", true},
    {"scaler.maximum", true},      {"scaler.interval", false}, {"scaler.bad_limit", false}, {"scaler.dynamic", false},
    {"scaler.skip", false},
};
constexpr unsigned MovingFields = 5;

DictionaryAttr binding(MLIRContext *Context, StringRef Role, StringRef Name) {
  Builder B(Context);
  return B.getDictionaryAttr(
      {B.getNamedAttr(RoleAttrName, B.getStringAttr(Role)), B.getNamedAttr(NameAttrName, B.getStringAttr(Name))});
}

bool isScaler(func::FuncOp Function, unsigned Argument) {
  auto Role = Function.getArgAttrOfType<StringAttr>(Argument, RoleAttrName);
  return Role && Role == "scaler";
}

// Wraps one training step.
class StepWrap {
public:
  StepWrap(func::FuncOp Function, ValueAndGradOp Step, bool Skip, bool Unscale)
      : Function(Function), Step(Step), Skip(Skip), Unscale(Unscale), Builder(Step), Loc(Step.getLoc()),
        Return(cast<func::ReturnOp>(Function.getBody().front().getTerminator())) {}

  void run() {
    addScalerArguments();
    Value Scale = Scaler[0];
    Step.getSeedMutable().assign(Scale);
    llvm::append_range(Gradients, Step.getOutputs().take_back(Step.getWrt().size()));

    Builder.setInsertionPointAfter(Step);
    SmallVector<Type> CheckTypes{RankedTensorType::get({}, Builder.getI1Type()),
                                 RankedTensorType::get({}, Builder.getI32Type())};
    SmallVector<Value> Checked{Scale, Step.getOutputs().front()};
    llvm::append_range(Checked, Gradients);
    auto Check = AllFiniteOp::create(Builder, Loc, CheckTypes, Checked);
    Finite = Check.getFinite();

    if (Skip)
      collectUpdates();
    if (Unscale)
      unscaleOutside(Check);
    if (Skip) {
      guardUpdates();
      selectOtherState();
    }
    appendResults(Check);
  }

private:
  void addScalerArguments() {
    for (const ScalerField &Field : ScalerFields) {
      Type Element = Field.IsFloat ? Type(Builder.getF32Type()) : Type(Builder.getI32Type());
      (void)Function.insertArgument(Function.getNumArguments(), RankedTensorType::get({}, Element),
                                    binding(Function.getContext(), "scaler", Field.Name), Loc);
      Scaler.push_back(Function.getArguments().back());
    }
  }

  bool isGradient(Value V) const { return llvm::is_contained(Gradients, V); }

  // State updates go into the region; what depends on them follows it. An update that reads such a value would need a
  // second region and stays outside, where its state is chosen by select.
  void collectUpdates() {
    llvm::DenseSet<Value> OfUpdates, Follows;
    for (Operation &Op : *Step->getBlock()) {
      bool ReadsFollowing = llvm::any_of(Op.getOperands(), [&](Value V) { return Follows.contains(V); });
      bool ReadsUpdate = llvm::any_of(Op.getOperands(), [&](Value V) { return OfUpdates.contains(V); });
      if (Op.hasTrait<StateUpdate>() && !ReadsFollowing) {
        Updates.insert(&Op);
        OfUpdates.insert(Op.result_begin(), Op.result_end());
      } else if ((ReadsUpdate || ReadsFollowing) && &Op != Return) {
        Following.push_back(&Op);
        Follows.insert(Op.result_begin(), Op.result_end());
      }
    }
  }

  // Everything but the guarded updates sees unscaled gradients: the user's own arithmetic, an unguarded optimizer.
  void unscaleOutside(AllFiniteOp Check) {
    Builder.setInsertionPointAfter(Check);
    for (Value Gradient : Gradients) {
      SmallVector<OpOperand *> Outside;
      for (OpOperand &Use : Gradient.getUses())
        if (Use.getOwner() != Check && !Updates.contains(Use.getOwner()))
          Outside.push_back(&Use);
      if (Outside.empty())
        continue;
      Value Unscaled = unscale(Gradient);
      for (OpOperand *Use : Outside)
        Use->set(Unscaled);
    }
  }

  Value unscale(Value Gradient) {
    auto Type = cast<RankedTensorType>(Gradient.getType());
    Value Unscaled = UnscaleOp::create(Builder, Loc, Type.clone(Builder.getF32Type()), Gradient, Scaler[0]);
    if (Unscaled.getType() == Type)
      return Unscaled;
    return CastOp::create(Builder, Loc, Type, Unscaled);
  }

  // The value that stands for a state result before the step.
  Value stateBefore(Value New) const {
    while (Updates.contains(New.getDefiningOp()))
      New = New.getDefiningOp()->getOperand(cast<OpResult>(New).getResultNumber());
    return New;
  }

  void guardUpdates() {
    if (Updates.empty())
      return;
    SmallVector<Value> New, Old;
    SmallVector<Type> Types;
    for (Operation *Op : Updates)
      for (Value Result : Op->getResults())
        if (llvm::any_of(Result.getUsers(), [&](Operation *User) { return !Updates.contains(User); })) {
          New.push_back(Result);
          Old.push_back(stateBefore(Result));
          Types.push_back(Result.getType());
        }

    Builder.setInsertionPointAfter(latestInput());
    auto Guard = GuardedUpdateOp::create(Builder, Loc, Types, Finite, Old);
    Block *Body = Builder.createBlock(&Guard.getBody());
    llvm::DenseMap<Value, Value> UnscaledInside;
    for (Operation *Op : Updates) {
      Op->moveBefore(Body, Body->end());
      for (OpOperand &Use : Op->getOpOperands()) {
        if (!Unscale || !isGradient(Use.get()))
          continue;
        Value &Unscaled = UnscaledInside[Use.get()];
        if (!Unscaled) {
          Builder.setInsertionPoint(Op);
          Unscaled = unscale(Use.get());
        }
        Use.set(Unscaled);
      }
    }
    for (auto [Result, Value] : llvm::zip_equal(Guard.getResults(), New))
      Value.replaceUsesWithIf(Result, [&](OpOperand &Use) { return Use.getOwner()->getBlock() != Body; });
    Builder.setInsertionPointToEnd(Body);
    YieldOp::create(Builder, Loc, New);
    Operation *Last = Guard;
    for (Operation *Op : Following) {
      if (Op->isBeforeInBlock(Last))
        Op->moveAfter(Last);
      Last = Op;
    }
  }

  // The last operation that must precede the region.
  Operation *latestInput() const {
    Operation *Latest = Finite.getDefiningOp();
    for (Operation *Op : Updates)
      for (Value Operand : Op->getOperands()) {
        Operation *Definition = Operand.getDefiningOp();
        if (Definition && !Updates.contains(Definition) && Latest->isBeforeInBlock(Definition))
          Latest = Definition;
      }
    return Latest;
  }

  // State that anything but an update operation computes.
  void selectOtherState() {
    Builder.setInsertionPoint(Return);
    for (OpOperand &Use : Return->getOpOperands()) {
      Value Old = oldState(Use.getOperandNumber());
      Operation *Definition = Use.get().getDefiningOp();
      if (!Old || Old == Use.get() || !Definition || isa<GuardedUpdateOp>(Definition) ||
          Old.getType() != Use.get().getType())
        continue;
      Use.set(SelectOp::create(Builder, Loc, Old.getType(), Finite, Use.get(), Old));
    }
  }

  // The argument bound to the same state as a result.
  Value oldState(unsigned Result) {
    auto Name = Function.getResultAttrOfType<StringAttr>(Result, NameAttrName);
    auto Role = Function.getResultAttrOfType<StringAttr>(Result, RoleAttrName);
    if (!Name)
      return {};
    for (BlockArgument Argument : Function.getArguments())
      if (Function.getArgAttrOfType<StringAttr>(Argument.getArgNumber(), NameAttrName) == Name &&
          Function.getArgAttrOfType<StringAttr>(Argument.getArgNumber(), RoleAttrName) == Role)
        return Argument;
    return {};
  }

  void appendResults(AllFiniteOp Check) {
    Builder.setInsertionPoint(Return);
    SmallVector<Value> Operands{Check.getFirstBad()};
    llvm::append_range(Operands, Scaler);
    SmallVector<Type> Types = llvm::to_vector(TypeRange(ValueRange(Scaler).take_front(MovingFields)));
    auto Update = UpdateLossScaleOp::create(Builder, Loc, Types, Operands);
    for (auto [Index, Field] : llvm::enumerate(ScalerFields))
      appendResult(Index < MovingFields ? Update->getResult(Index) : Scaler[Index], "scaler", Field.Name);
    appendResult(Finite, "record", "finite");
    appendResult(Check.getFirstBad(), "record", "first_bad");
    appendResult(Scaler[0], "record", "loss_scale");
  }

  void appendResult(Value Result, StringRef Role, StringRef Name) {
    (void)Function.insertResult(Function.getNumResults(), Result.getType(), binding(Function.getContext(), Role, Name));
    Return->insertOperands(Return->getNumOperands(), Result);
  }

  func::FuncOp Function;
  ValueAndGradOp Step;
  bool Skip, Unscale;
  OpBuilder Builder;
  Location Loc;
  func::ReturnOp Return;
  Value Finite;
  SmallVector<Value> Scaler, Gradients;
  llvm::SetVector<Operation *> Updates;
  SmallVector<Operation *> Following;
};

class LossScalePass : public impl::LossScalePassBase<LossScalePass> {
public:
  using LossScalePassBase::LossScalePassBase;

  void runOnOperation() override {
    if (mode != "none" && mode != "static" && mode != "dynamic") {
      getOperation().emitError() << "unknown loss-scale mode '" << mode << "'; choose none, static or dynamic";
      return signalPassFailure();
    }
    if (mode == "none")
      return;
    for (auto Function : getOperation().getOps<func::FuncOp>())
      if (!Function.isExternal() && failed(wrap(Function)))
        return signalPassFailure();
  }

private:
  LogicalResult wrap(func::FuncOp Function) {
    // Other blocks are unreachable: nothing branches.
    Block &Body = Function.getBody().front();
    auto Steps = llvm::to_vector(Body.getOps<ValueAndGradOp>());
    if (!isa<func::ReturnOp>(Body.getTerminator()))
      return success();
    bool Wrapped = false;
    for (unsigned Index = 0; Index < Function.getNumArguments(); ++Index)
      Wrapped |= isScaler(Function, Index);
    if (Steps.empty() || Wrapped)
      return success();
    for (ValueAndGradOp Step : Steps) {
      if (matchPattern(Step.getSeed(), m_OneFloat()))
        continue;
      Step.emitRemark() << "the step has a seed of its own: it is not wrapped in loss scaling";
      return success();
    }
    if (Steps.size() > 1) {
      InFlightDiagnostic Error = Steps[1].emitError()
                                 << "a loss scaler wraps one loss; '" << Function.getName() << "' has " << Steps.size();
      Error.attachNote(Steps[0].getLoc()) << "the first is here";
      return Error;
    }
    StepWrap(Function, Steps.front(), skip, unscale).run();
    return success();
  }
};

} // namespace

} // namespace mpc
