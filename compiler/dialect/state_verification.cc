// The verifiers of `mpc.state` on arguments and results of functions, and of `mpc.step`.
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/state_attributes.h"
#include "compiler/dialect/step_signature.h"
#include "compiler/dialect/tensor_values.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace mpc {

// "parameter, statistic, ..." for state, "input, ..." for data.
static std::string roleNames(bool OfState) {
  std::string Names;
  for (std::string_view Name : kRoleNames)
    if (IsState(*ParseRole(Name)) == OfState)
      Names += (Names.empty() ? "" : ", ") + std::string(Name);
  return Names;
}

FailureOr<Role> parseRole(AsmParser &Parser) {
  SMLoc Loc = Parser.getCurrentLocation();
  StringRef Word;
  if (Parser.parseKeyword(&Word))
    return failure();
  if (std::optional<Role> Known = ParseRole({Word.data(), Word.size()}))
    return *Known;
  return Parser.emitError(Loc) << "the role '" << Word << "' is unknown; data is " << roleNames(false) << ", state is "
                               << roleNames(true);
}

static bool hasOwner(Role Known) {
  return Known == Role::kSlot || Known == Role::kDerived || Known == Role::kAccumulator;
}

LogicalResult StateAttr::verify(function_ref<InFlightDiagnostic()> EmitError, Role Given, StringRef Name, StringRef Of,
                                Type Form) {
  if (Name.empty() && IsState(Given))
    return EmitError() << "state of the role '" << roleName(Given) << "' has no name";
  if (!Of.empty() && !hasOwner(Given))
    return EmitError() << "'" << Name << "' is of '" << Of << "' and has the role '" << roleName(Given)
                       << "'; a slot, a derived value or an accumulator belongs to other state";
  if (!Of.empty() && Of == Name)
    return EmitError() << "'" << Name << "' belongs to itself";
  if (Form && (Given != Role::kParameter || !isLow(Form)))
    return EmitError() << "'" << Name << "' has the role '" << roleName(Given) << "' and form = " << Form
                       << "; a parameter may be stored in f16 or bf16";
  return success();
}

// \p Kind is "argument" or "result".
static LogicalResult verifyStateOf(Operation *Op, StringRef Kind, unsigned Index, NamedAttribute Attribute) {
  auto Error = [&] { return InFlightDiagnostic(Op->emitOpError() << Kind << " " << Index); };
  if (Attribute.getName() != StateAttrName)
    return Error() << " has the attribute '" << Attribute.getName().getValue() << "'; what it is stands in '"
                   << StateAttrName << "'";
  auto State = dyn_cast<StateAttr>(Attribute.getValue());
  if (!State)
    return Error() << " has " << StateAttrName << " = " << Attribute.getValue() << "; it must be a #mpc.state";
  if (Kind == "result" && (!State.getOf().empty() || State.getForm()))
    return Error() << " is " << State << "; what state is of, and its form, stand on the argument";
  auto Function = dyn_cast<FunctionOpInterface>(Op);
  if (!Function)
    return success();
  auto StateError = [&] {
    return InFlightDiagnostic(Error() << " is the " << roleName(State.getRole()) << " '" << State.getName() << "'");
  };
  if (IsState(State.getRole()) && !dialectOf(Op).getStepAttrHelper().isAttrPresent(Op))
    return StateError() << " of a function without '" << MpcDialect::StepAttrHelper::getNameStr()
                        << "'; state stands in steps";
  Type Given = Kind == "argument" ? Function.getArgumentTypes()[Index] : Function.getResultTypes()[Index];
  auto Tensor = dyn_cast<RankedTensorType>(Given);
  if (!Tensor || !Tensor.hasStaticShape())
    return Error() << " has the role '" << roleName(State.getRole()) << "' and the type " << Given
                   << "; data and state are tensors of a static shape";
  if (IsState(State.getRole()) && isCastOnly(Tensor.getElementType()))
    return StateError() << " of type " << Given << "; nothing but a cast takes such values, and no update makes them";
  if (State.getForm() && !Tensor.getElementType().isF32())
    return Error() << " is the parameter '" << State.getName() << "' of type " << Given
                   << " with form = " << State.getForm() << "; an f32 parameter may be stored in f16 or bf16";
  return success();
}

namespace {

/// The verifier of a step's signature as a whole: which state there is, and which results are new values of it.
class SignatureVerifier {
public:
  explicit SignatureVerifier(FunctionOpInterface Function) : Function(Function) {}

  LogicalResult verify() {
    for (unsigned Index : llvm::seq(Function.getNumArguments()))
      if (isState(argumentRole(Function, Index)) && failed(addState(Index)))
        return failure();
    for (auto [Name, Index] : StateNamed)
      if (failed(verifyOwner(Index)))
        return failure();
    for (unsigned Index : llvm::seq(Function.getNumResults()))
      if (isState(resultRole(Function, Index)) && failed(verifyNewState(Index)))
        return failure();
    return success();
  }

private:
  LogicalResult addState(unsigned Index) {
    auto [Known, New] = StateNamed.try_emplace(argumentName(Function, Index), Index);
    if (New)
      return success();
    return Function->emitOpError() << "arguments " << Known->second << " and " << Index << " are both the state '"
                                   << Known->first << "'";
  }

  LogicalResult verifyOwner(unsigned Index) {
    StateAttr State = argumentState(Function, Index);
    if (State.getOf().empty() && State.getRole() != Role::kDerived)
      return success();
    auto OwnerError = [&] {
      return InFlightDiagnostic(Function->emitOpError() << "argument " << Index << ", the " << roleName(State.getRole())
                                                        << " '" << State.getName() << "', is of '" << State.getOf());
    };
    auto Owner = StateNamed.find(State.getOf());
    if (Owner == StateNamed.end())
      return OwnerError() << "', which no state argument is";
    if (argumentRole(Function, Owner->second) == Role::kDerived)
      return OwnerError() << "', which is derived itself";
    if (State.getRole() == Role::kDerived)
      return verifyIsCast(Index, Owner->second);
    return success();
  }

  LogicalResult verifyIsCast(unsigned Index, unsigned Owner) {
    StateAttr State = argumentState(Function, Index);
    auto Own = dyn_cast<ShapedType>(Function.getArgumentTypes()[Index]);
    auto Of = dyn_cast<ShapedType>(Function.getArgumentTypes()[Owner]);
    if (Own && Of && (Own.getShape() != Of.getShape() || !isa<FloatType>(Own.getElementType())))
      return Function->emitOpError() << "argument " << Index << ", the derived '" << State.getName() << "', is " << Own
                                     << " and '" << State.getOf() << "', which it is of, is " << Of
                                     << "; derived state is a cast of what it is of";
    return success();
  }

  // The result is the new value of one argument, which no other result is.
  LogicalResult verifyNewState(unsigned Index) {
    StateAttr State = resultState(Function, Index);
    auto [Known, New] = ResultOf.try_emplace(State.getName(), Index);
    if (!New)
      return Function->emitOpError() << "results " << Known->second << " and " << Index << " are both the new value of "
                                     << "the state '" << State.getName() << "'";
    auto Argument = StateNamed.find(State.getName());
    if (Argument == StateNamed.end() || argumentRole(Function, Argument->second) != State.getRole())
      return Function->emitOpError() << "result " << Index << " is the new value of the " << roleName(State.getRole())
                                     << " '" << State.getName() << "', which no argument is";
    Type Before = Function.getArgumentTypes()[Argument->second], After = Function.getResultTypes()[Index];
    if (Before != After)
      return Function->emitOpError() << "result " << Index << " is the new value of '" << State.getName() << "' and is "
                                     << After << "; argument " << Argument->second << ", the old value, is " << Before;
    return success();
  }

  FunctionOpInterface Function;
  llvm::MapVector<StringRef, unsigned> StateNamed;
  llvm::DenseMap<StringRef, unsigned> ResultOf;
};

} // namespace

// Attributes are verified before the function that they stand on, whose own verifier tells what is malformed.
static bool isWellFormed(func::FuncOp Function) {
  TypeAttr Given = Function.getFunctionTypeAttr();
  auto Signature = dyn_cast_or_null<FunctionType>(Given ? Given.getValue() : Type());
  auto HasOneEach = [](ArrayAttr Attributes, unsigned Count) {
    return !Attributes || (Attributes.size() == Count && llvm::all_of(Attributes, llvm::IsaPred<DictionaryAttr>));
  };
  return Signature && HasOneEach(Function.getArgAttrsAttr(), Signature.getNumInputs()) &&
         HasOneEach(Function.getResAttrsAttr(), Signature.getNumResults());
}

LogicalResult verifyStep(Operation *Op) {
  auto Function = cast<func::FuncOp>(Op);
  return isWellFormed(Function) ? SignatureVerifier(Function).verify() : success();
}

LogicalResult verifySequence(Operation *Op) {
  auto Function = cast<func::FuncOp>(Op);
  if (!isWellFormed(Function))
    return success();
  if (Function.isPublic() || dialectOf(Op).getStepAttrHelper().isAttrPresent(Op))
    return Op->emitOpError() << "has '" << MpcDialect::SequenceAttrHelper::getNameStr() << "' and is "
                             << (Function.isPublic() ? "public" : "a step")
                             << "; a sequence is a private function that a step calls";
  FunctionType Type = Function.getFunctionType();
  for (auto [Index, Result] : llvm::enumerate(Type.getResults()))
    if (Index >= Type.getNumInputs() || Type.getInput(Index) != Result)
      return Op->emitOpError() << "result " << Index << " of the sequence is " << Result << " and the new value of "
                               << "argument " << Index << ", which "
                               << (Index < Type.getNumInputs() ? "is " + typeText(Type.getInput(Index))
                                                               : std::string("it does not have"));
  return success();
}

LogicalResult MpcDialect::verifyRegionArgAttribute(Operation *Op, unsigned, unsigned Index, NamedAttribute Attribute) {
  return verifyStateOf(Op, "argument", Index, Attribute);
}

LogicalResult MpcDialect::verifyRegionResultAttribute(Operation *Op, unsigned, unsigned Index,
                                                      NamedAttribute Attribute) {
  return verifyStateOf(Op, "result", Index, Attribute);
}

} // namespace mpc
