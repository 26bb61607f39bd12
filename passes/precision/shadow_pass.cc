// Low copies of parameters become state: optimizers write them, and a step holds no weight cast.
//
//   func.func @step(%w: ... {mpc.state = #mpc.state<parameter, "w">}, ...) ... {
//     %low = mpc.cast %w : ...
//     %g = mpc.matmul %x, %low : ...
//     %w2, %v2 = mpc.momentum %w, %v, %g, %rate : ...
//     return %w2, %v2 : ...
// becomes
//   func.func @step(..., %shadow: ... {mpc.state = #mpc.state<derived, "w.f16", of = "w">}) ... {
//     %g = mpc.matmul %x, %shadow : ...
//     %w2, %v2, %shadow2 = mpc.momentum %w, %v, %g, %rate {shadow = f16} : ...
//     return %w2, %v2, %shadow2 : ...
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/state_attributes.h"
#include "compiler/dialect/tensor_values.h"
#include "passes/function_body.h"
#include "passes/passes.h"
#include "passes/precision/parameter_versions.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_SHADOWPASS
#include "passes/passes.h.inc"

namespace {

/// Gives one function its shadows.
class Shadows {
public:
  Shadows(func::FuncOp Function, LowCopies &Copies)
      : Function(Function), Return(Function.getBody().front().getTerminator()), Builder(Function.getContext()),
        Copies(Copies) {}

  LogicalResult add(ParameterVersions &Parameter);

private:
  static SmallVector<Type> lowTypes(const ParameterVersions &Parameter);
  LogicalResult addOfType(ParameterVersions &Parameter, Type Low);
  FailureOr<Value> argument(const ParameterVersions &Parameter, Type Low);
  Value writtenBy(ParameterVersions &Parameter, unsigned Version, Type Low);
  void appendResult(Value Shadow, StringRef Name);

  func::FuncOp Function;
  Operation *Return;
  OpBuilder Builder;
  LowCopies &Copies;
};

/// Drives Shadows over the functions.
class ShadowPass : public impl::ShadowPassBase<ShadowPass> {
public:
  using ShadowPassBase::ShadowPassBase;

  void runOnOperation() override {
    func::FuncOp Function = getOperation();
    // Without control flow every step is one block.
    Block *Body = onlyBlock(Function);
    if (!Body || !isa<func::ReturnOp>(Body->getTerminator()))
      return;
    LowCopies Copies(&getContext());
    SmallVector<ParameterVersions> Parameters = findParameters(Function);
    storeLowParameters(Function, Parameters, Copies);
    Shadows Added(Function, Copies);
    for (ParameterVersions &Parameter : Parameters)
      if (failed(Added.add(Parameter)))
        return signalPassFailure();
  }

private:
  void storeLowParameters(func::FuncOp Function, SmallVectorImpl<ParameterVersions> &Parameters, LowCopies &Copies) {
    bool Changed = false;
    for (ParameterVersions &Parameter : Parameters) {
      Type Stored = stateOf(Parameter.Argument).getForm();
      Type Low = Stored ? Stored : masterWeights ? Type() : onlyLowType(Parameter);
      if (!Low)
        continue;
      storeLow(Function, Parameter, Low, Copies);
      setArgumentState(Function, Parameter.Argument.getArgNumber(),
                       makeState(&getContext(), Role::kParameter, Parameter.Name));
      Changed = true;
    }
    if (Changed)
      Function.setType(FunctionType::get(&getContext(), Function.getBody().front().getArgumentTypes(),
                                         Function.getBody().front().getTerminator()->getOperandTypes()));
  }
};

} // namespace

static std::string shadowName(const ParameterVersions &Parameter, Type Low) {
  return Parameter.Name + "." + typeText(Low);
}

// The low types in which any version of the parameter is read, by first use.
SmallVector<Type> Shadows::lowTypes(const ParameterVersions &Parameter) {
  SmallVector<Type> Types;
  for (Value Version : Parameter.Values)
    for (const LowUse &Use : findLowUses(Version, /*Parts=*/false))
      if (!llvm::is_contained(Types, lowTypeOf(Use)))
        Types.push_back(lowTypeOf(Use));
  return Types;
}

LogicalResult Shadows::add(ParameterVersions &Parameter) {
  for (Type Low : lowTypes(Parameter))
    if (failed(addOfType(Parameter, Low)))
      return failure();
  return success();
}

LogicalResult Shadows::addOfType(ParameterVersions &Parameter, Type Low) {
  unsigned Last = Parameter.Values.size() - 1;
  bool HasArgument = false;
  for (unsigned Version = 0; Version <= Last; ++Version) {
    SmallVector<LowUse> Uses = findLowUses(Parameter.Values[Version], /*Parts=*/true);
    llvm::erase_if(Uses, [&](const LowUse &Use) { return lowTypeOf(Use) != Low; });
    // The state follows the last version, read there or not.
    bool Kept = HasArgument && Version == Last && Parameter.Result;
    if (Uses.empty() && !Kept)
      continue;
    Value Shadow;
    if (Version == 0) {
      FailureOr<Value> Added = argument(Parameter, Low);
      if (failed(Added))
        return failure();
      Shadow = *Added;
      HasArgument = true;
    } else {
      Shadow = writtenBy(Parameter, Version, Low);
    }
    // An optimizer writes one shadow. Another low type of an updated parameter is rebuilt before the next step.
    if (!Shadow)
      continue;
    for (const LowUse &Use : Uses)
      Copies.replace(Use, Shadow);
    if (Kept)
      appendResult(Shadow, shadowName(Parameter, Low));
  }
  return success();
}

FailureOr<Value> Shadows::argument(const ParameterVersions &Parameter, Type Low) {
  std::string Name = shadowName(Parameter, Low);
  StateAttr Shadow = makeState(Function.getContext(), Role::kDerived, Name, /*Of=*/Parameter.Name);
  Type Wanted = cast<RankedTensorType>(Parameter.Argument.getType()).clone(Low);
  for (BlockArgument Argument : Function.getArguments()) {
    if (nameOf(Argument) != Name)
      continue;
    if (stateOf(Argument) == Shadow && Argument.getType() == Wanted)
      return Value(Argument);
    return Function.emitError() << "the low copy of parameter '" << Parameter.Name << "' needs the name '" << Name
                                << "', which another " << roleName(*roleOf(Argument)) << " has";
  }
  if (failed(Function.insertArgument(Function.getNumArguments(), Wanted, describedBy(Shadow),
                                     Parameter.Argument.getLoc())))
    return failure();
  return Value(Function.getArguments().back());
}

// The shadow that the optimizer of this version writes; null if it writes one of another type already.
Value Shadows::writtenBy(ParameterVersions &Parameter, unsigned Version, Type Low) {
  Operation *Optimizer = Parameter.Values[Version].getDefiningOp();
  auto Written = Optimizer->getAttrOfType<StringAttr>("shadow");
  if (Written && Written != "none")
    return Written == typeText(Low) ? Value(Optimizer->getResults().back()) : Value();
  SmallVector<Type> Types(Optimizer->getResultTypes());
  Types.push_back(cast<RankedTensorType>(Parameter.Argument.getType()).clone(Low));
  Builder.setInsertionPoint(Optimizer);
  OperationState State(Optimizer->getLoc(), Optimizer->getName(), Optimizer->getOperands(), Types,
                       Optimizer->getAttrs());
  State.attributes.set("shadow", Builder.getStringAttr(typeText(Low)));
  Operation *Shadowed = Builder.create(State);
  Optimizer->replaceAllUsesWith(Shadowed->getResults().drop_back());
  Optimizer->erase();
  Parameter.Values[Version] = Shadowed->getResult(0);
  return Shadowed->getResults().back();
}

void Shadows::appendResult(Value Shadow, StringRef Name) {
  (void)Function.insertResult(Function.getNumResults(), Shadow.getType(),
                              describedBy(makeState(Function.getContext(), Role::kDerived, Name)));
  Return->insertOperands(Return->getNumOperands(), Shadow);
}

} // namespace mpc
