// The verifiers of `mpc.state` on arguments and results of functions, and of `mpc.step`.
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/state_attributes.h"
#include "compiler/dialect/step_signature.h"
#include "compiler/dialect/tensor_values.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace mpc {

// "parameter, statistic, ..." for state, "input, ..." for data.
static std::string roleNames(bool ofState) {
  std::string names;
  for (std::string_view name : kRoleNames)
    if (IsState(*ParseRole(name)) == ofState)
      names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

FailureOr<Role> parseRole(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef word;
  if (parser.parseKeyword(&word))
    return failure();
  if (std::optional<Role> known = ParseRole({word.data(), word.size()}))
    return *known;
  return parser.emitError(loc) << "the role '" << word << "' is unknown; data is " << roleNames(false) << ", state is "
                               << roleNames(true);
}

static bool hasOwner(Role known) {
  return known == Role::kSlot || known == Role::kDerived || known == Role::kAccumulator;
}

LogicalResult StateAttr::verify(function_ref<InFlightDiagnostic()> emitError, Role given, StringRef name, StringRef of,
                                Type form) {
  if (name.empty() && IsState(given))
    return emitError() << "state of the role '" << roleName(given) << "' has no name";
  if (!of.empty() && !hasOwner(given))
    return emitError() << "'" << name << "' is of '" << of << "' and has the role '" << roleName(given)
                       << "'; a slot, a derived value or an accumulator belongs to other state";
  if (!of.empty() && of == name)
    return emitError() << "'" << name << "' belongs to itself";
  if (form && (given != Role::kParameter || !isLow(form)))
    return emitError() << "'" << name << "' has the role '" << roleName(given) << "' and form = " << form
                       << "; a parameter may be stored in f16 or bf16";
  return success();
}

// \p kind is "argument" or "result".
static LogicalResult verifyStateOf(Operation *op, StringRef kind, unsigned index, NamedAttribute attribute) {
  auto error = [&] { return InFlightDiagnostic(op->emitOpError() << kind << " " << index); };
  if (attribute.getName() != stateAttrName)
    return error() << " has the attribute '" << attribute.getName().getValue() << "'; what it is stands in '"
                   << stateAttrName << "'";
  auto state = dyn_cast<StateAttr>(attribute.getValue());
  if (!state)
    return error() << " has " << stateAttrName << " = " << attribute.getValue() << "; it must be a #mpc.state";
  if (kind == "result" && (!state.getOf().empty() || state.getForm()))
    return error() << " is " << state << "; what state is of, and its form, stand on the argument";
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return success();
  auto stateError = [&] {
    return InFlightDiagnostic(error() << " is the " << roleName(state.getRole()) << " '" << state.getName() << "'");
  };
  if (IsState(state.getRole()) && !dialectOf(op).getStepAttrHelper().isAttrPresent(op))
    return stateError() << " of a function without '" << MpcDialect::StepAttrHelper::getNameStr()
                        << "'; state stands in steps";
  Type given = kind == "argument" ? function.getArgumentTypes()[index] : function.getResultTypes()[index];
  auto tensor = dyn_cast<RankedTensorType>(given);
  if (!tensor || !tensor.hasStaticShape())
    return error() << " has the role '" << roleName(state.getRole()) << "' and the type " << given
                   << "; data and state are tensors of a static shape";
  if (IsState(state.getRole()) && isCastOnly(tensor.getElementType()))
    return stateError() << " of type " << given << "; nothing but a cast takes such values, and no update makes them";
  if (state.getForm() && !tensor.getElementType().isF32())
    return error() << " is the parameter '" << state.getName() << "' of type " << given
                   << " with form = " << state.getForm() << "; an f32 parameter may be stored in f16 or bf16";
  return success();
}

namespace {

/// The verifier of a step's signature as a whole: which state there is, and which results are new values of it.
class SignatureVerifier {
public:
  explicit SignatureVerifier(FunctionOpInterface function) : function(function) {}

  LogicalResult verify() {
    for (unsigned index : llvm::seq(function.getNumArguments()))
      if (isState(argumentRole(function, index)) && failed(addState(index)))
        return failure();
    for (auto [name, index] : stateNamed)
      if (failed(verifyOwner(index)))
        return failure();
    for (unsigned index : llvm::seq(function.getNumResults()))
      if (isState(resultRole(function, index)) && failed(verifyNewState(index)))
        return failure();
    return success();
  }

private:
  LogicalResult addState(unsigned index) {
    auto [known, isNew] = stateNamed.try_emplace(argumentName(function, index), index);
    if (isNew)
      return success();
    return function->emitOpError() << "arguments " << known->second << " and " << index << " are both the state '"
                                   << known->first << "'";
  }

  LogicalResult verifyOwner(unsigned index) {
    StateAttr state = argumentState(function, index);
    if (state.getOf().empty() && state.getRole() != Role::kDerived)
      return success();
    auto ownerError = [&] {
      return InFlightDiagnostic(function->emitOpError() << "argument " << index << ", the " << roleName(state.getRole())
                                                        << " '" << state.getName() << "', is of '" << state.getOf());
    };
    auto owner = stateNamed.find(state.getOf());
    if (owner == stateNamed.end())
      return ownerError() << "', which no state argument is";
    if (argumentRole(function, owner->second) == Role::kDerived)
      return ownerError() << "', which is derived itself";
    if (state.getRole() == Role::kDerived)
      return verifyIsCast(index, owner->second);
    return success();
  }

  LogicalResult verifyIsCast(unsigned index, unsigned owner) {
    StateAttr state = argumentState(function, index);
    auto own = dyn_cast<ShapedType>(function.getArgumentTypes()[index]);
    auto of = dyn_cast<ShapedType>(function.getArgumentTypes()[owner]);
    if (own && of && (own.getShape() != of.getShape() || !isa<FloatType>(own.getElementType())))
      return function->emitOpError() << "argument " << index << ", the derived '" << state.getName() << "', is " << own
                                     << " and '" << state.getOf() << "', which it is of, is " << of
                                     << "; derived state is a cast of what it is of";
    return success();
  }

  // The result is the new value of one argument, which no other result is.
  LogicalResult verifyNewState(unsigned index) {
    StateAttr state = resultState(function, index);
    auto [known, isNew] = resultOf.try_emplace(state.getName(), index);
    if (!isNew)
      return function->emitOpError() << "results " << known->second << " and " << index << " are both the new value of "
                                     << "the state '" << state.getName() << "'";
    auto argument = stateNamed.find(state.getName());
    if (argument == stateNamed.end() || argumentRole(function, argument->second) != state.getRole())
      return function->emitOpError() << "result " << index << " is the new value of the " << roleName(state.getRole())
                                     << " '" << state.getName() << "', which no argument is";
    Type before = function.getArgumentTypes()[argument->second], after = function.getResultTypes()[index];
    if (before != after)
      return function->emitOpError() << "result " << index << " is the new value of '" << state.getName() << "' and is "
                                     << after << "; argument " << argument->second << ", the old value, is " << before;
    return success();
  }

  FunctionOpInterface function;
  llvm::MapVector<StringRef, unsigned> stateNamed;
  llvm::DenseMap<StringRef, unsigned> resultOf;
};

} // namespace

// Attributes are verified before the function that they stand on, whose own verifier tells what is malformed.
static bool isWellFormed(func::FuncOp function) {
  TypeAttr given = function.getFunctionTypeAttr();
  auto signature = dyn_cast_or_null<FunctionType>(given ? given.getValue() : Type());
  auto hasOneEach = [](ArrayAttr attributes, unsigned count) {
    return !attributes || (attributes.size() == count && llvm::all_of(attributes, llvm::IsaPred<DictionaryAttr>));
  };
  return signature && hasOneEach(function.getArgAttrsAttr(), signature.getNumInputs()) &&
         hasOneEach(function.getResAttrsAttr(), signature.getNumResults());
}

LogicalResult verifyStep(Operation *op) {
  auto function = cast<func::FuncOp>(op);
  return isWellFormed(function) ? SignatureVerifier(function).verify() : success();
}

LogicalResult verifySequence(Operation *op) {
  auto function = cast<func::FuncOp>(op);
  if (!isWellFormed(function))
    return success();
  if (function.isPublic() || dialectOf(op).getStepAttrHelper().isAttrPresent(op))
    return op->emitOpError() << "has '" << MpcDialect::SequenceAttrHelper::getNameStr() << "' and is "
                             << (function.isPublic() ? "public" : "a step")
                             << "; a sequence is a private function that a step calls";
  FunctionType type = function.getFunctionType();
  for (auto [index, result] : llvm::enumerate(type.getResults()))
    if (index >= type.getNumInputs() || type.getInput(index) != result)
      return op->emitOpError() << "result " << index << " of the sequence is " << result << " and the new value of "
                               << "argument " << index << ", which "
                               << (index < type.getNumInputs() ? "is " + typeText(type.getInput(index))
                                                               : std::string("it does not have"));
  return success();
}

LogicalResult MpcDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned index, NamedAttribute attribute) {
  return verifyStateOf(op, "argument", index, attribute);
}

LogicalResult MpcDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned index,
                                                      NamedAttribute attribute) {
  return verifyStateOf(op, "result", index, attribute);
}

} // namespace mpc
