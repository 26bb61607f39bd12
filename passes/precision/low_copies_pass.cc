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
#include "compiler/dialect/step_signature.h"
#include "compiler/dialect/tensor_values.h"
#include "passes/function_body.h"
#include "passes/passes.h"
#include "passes/precision/parameter_versions.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_LOWCOPIESPASS
#include "passes/passes.h.inc"

namespace {

/// Gives one function its low copies.
class LowCopyState {
public:
  LowCopyState(func::FuncOp function, LowCopies &copies)
      : function(function), terminator(function.getBody().front().getTerminator()), builder(function.getContext()),
        copies(copies) {
    for (BlockArgument argument : function.getArguments())
      if (StateAttr state = stateOf(argument))
        arguments.try_emplace(state.getName(), argument, state);
    function.getAllArgAttrs(argumentAttributes);
    function.getAllResultAttrs(resultAttributes);
  }

  LogicalResult add(ParameterVersions &parameter);
  /// Writes the signature once, since each new one takes as long as it is.
  void writeSignature();

private:
  static SmallVector<Type> lowTypes(const ParameterVersions &parameter);
  LogicalResult addOfType(ParameterVersions &parameter, Type low);
  FailureOr<Value> argument(const ParameterVersions &parameter, Type low);
  Value writtenBy(ParameterVersions &parameter, unsigned version, Type low);
  void appendResult(Value lowCopy, StringRef name);

  func::FuncOp function;
  Operation *terminator;
  OpBuilder builder;
  LowCopies &copies;
  llvm::StringMap<std::pair<BlockArgument, StateAttr>> arguments; ///< those of state by name, the first of each
  SmallVector<DictionaryAttr> argumentAttributes, resultAttributes;
};

/// Drives LowCopyState over the functions.
class LowCopiesPass : public impl::LowCopiesPassBase<LowCopiesPass> {
public:
  using LowCopiesPassBase::LowCopiesPassBase;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    // Without control flow every step is one block.
    Block *body = onlyBlock(function);
    if (!body || !isa<func::ReturnOp>(body->getTerminator()))
      return;
    LowCopies copies(&getContext());
    SmallVector<ParameterVersions> parameters = findParameters(function);
    storeLowParameters(function, parameters, copies);
    LowCopyState added(function, copies);
    for (ParameterVersions &parameter : parameters)
      if (failed(added.add(parameter))) {
        signalPassFailure();
        break;
      }
    added.writeSignature();
  }

private:
  void storeLowParameters(func::FuncOp function, SmallVectorImpl<ParameterVersions> &parameters, LowCopies &copies) {
    bool changed = false;
    StepSignature signature(function);
    SmallVector<DictionaryAttr> attributes;
    function.getAllArgAttrs(attributes);
    for (ParameterVersions &parameter : parameters) {
      Type stored = stateOf(parameter.argument).getForm();
      Type low = stored ? stored : masterWeights ? Type() : onlyLowType(parameter);
      if (!low)
        continue;
      unsigned number = parameter.argument.getArgNumber();
      storeLow(function, parameter, signature.resultOf(number), low, copies);
      NamedAttrList described(attributes[number]);
      described.set(stateAttrName, makeState(&getContext(), Role::kParameter, parameter.name));
      attributes[number] = described.getDictionary(&getContext());
      changed = true;
    }
    if (!changed)
      return;
    function.setType(FunctionType::get(&getContext(), function.getBody().front().getArgumentTypes(),
                                       function.getBody().front().getTerminator()->getOperandTypes()));
    function.setAllArgAttrs(attributes);
  }
};

} // namespace

static std::string lowCopyName(const ParameterVersions &parameter, Type low) {
  return parameter.name + "." + typeText(low);
}

// The low types in which any version of the parameter is read, by first use.
SmallVector<Type> LowCopyState::lowTypes(const ParameterVersions &parameter) {
  SmallVector<Type> types;
  for (Value version : parameter.values)
    for (const LowUse &use : findLowUses(version, /*parts=*/false))
      if (!llvm::is_contained(types, lowTypeOf(use)))
        types.push_back(lowTypeOf(use));
  return types;
}

LogicalResult LowCopyState::add(ParameterVersions &parameter) {
  for (Type low : lowTypes(parameter))
    if (failed(addOfType(parameter, low)))
      return failure();
  return success();
}

LogicalResult LowCopyState::addOfType(ParameterVersions &parameter, Type low) {
  unsigned last = parameter.values.size() - 1;
  bool hasArgument = false;
  for (unsigned version = 0; version <= last; ++version) {
    SmallVector<LowUse> uses = findLowUses(parameter.values[version], /*parts=*/true);
    llvm::erase_if(uses, [&](const LowUse &use) { return lowTypeOf(use) != low; });
    // The state follows the last version, read there or not.
    bool kept = hasArgument && version == last && parameter.result;
    if (uses.empty() && !kept)
      continue;
    Value lowCopy;
    if (version == 0) {
      FailureOr<Value> added = argument(parameter, low);
      if (failed(added))
        return failure();
      lowCopy = *added;
      hasArgument = true;
    } else {
      lowCopy = writtenBy(parameter, version, low);
    }
    // An optimizer writes one low copy. Another low type of an updated parameter is rebuilt before the next step.
    if (!lowCopy)
      continue;
    for (const LowUse &use : uses)
      copies.replace(use, lowCopy);
    if (kept)
      appendResult(lowCopy, lowCopyName(parameter, low));
  }
  return success();
}

FailureOr<Value> LowCopyState::argument(const ParameterVersions &parameter, Type low) {
  std::string name = lowCopyName(parameter, low);
  StateAttr lowCopy = makeState(function.getContext(), Role::kDerived, name, /*of=*/parameter.name);
  Type wanted = cast<RankedTensorType>(parameter.argument.getType()).clone(low);
  if (auto known = arguments.find(name); known != arguments.end()) {
    auto [argument, state] = known->second;
    if (state == lowCopy && argument.getType() == wanted)
      return Value(argument);
    return function.emitError() << "the low copy of parameter '" << parameter.name << "' needs the name '" << name
                                << "', which another " << roleName(state.getRole()) << " has";
  }
  BlockArgument added = function.getBody().addArgument(wanted, parameter.argument.getLoc());
  arguments.try_emplace(name, added, lowCopy);
  argumentAttributes.push_back(describedBy(lowCopy));
  return Value(added);
}

// The low copy that the optimizer of this version writes; null if it writes one of another type already.
Value LowCopyState::writtenBy(ParameterVersions &parameter, unsigned version, Type low) {
  auto optimizer = cast<OptimizerOpInterface>(parameter.values[version].getDefiningOp());
  if (LowCopy written = optimizer.getShadow(); written != LowCopy::kNone)
    return wordOf(written) == typeText(low) ? Value(optimizer->getResults().back()) : Value();
  SmallVector<Type> types(optimizer->getResultTypes());
  types.push_back(cast<RankedTensorType>(parameter.argument.getType()).clone(low));
  builder.setInsertionPoint(optimizer);
  OperationState state(optimizer->getLoc(), optimizer->getName(), optimizer->getOperands(), types,
                       optimizer->getAttrs());
  Operation *replacement = builder.create(state);
  cast<OptimizerOpInterface>(replacement).setShadow(*ParseEnum<LowCopy>(typeText(low)));
  optimizer->replaceAllUsesWith(replacement->getResults().drop_back());
  optimizer->erase();
  parameter.values[version] = replacement->getResult(0);
  return replacement->getResults().back();
}

void LowCopyState::appendResult(Value lowCopy, StringRef name) {
  resultAttributes.push_back(describedBy(makeState(function.getContext(), Role::kDerived, name)));
  terminator->insertOperands(terminator->getNumOperands(), lowCopy);
}

void LowCopyState::writeSignature() {
  function.setType(
      builder.getFunctionType(function.getBody().getArgumentTypes(), TypeRange(terminator->getOperandTypes())));
  function.setAllArgAttrs(argumentAttributes);
  function.setAllResultAttrs(resultAttributes);
}

} // namespace mpc
