#include "compiler/module/graph_builder.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/state_attributes.h"
#include "compiler/module/diagnostics.h"
#include "compiler/module/module_impl.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace mpc::compiler {

//===-- Module ---------------------------------------------------------------------------------------------------===//

Module::Module() : impl_(std::make_unique<Impl>()) {}
Module::~Module() = default;
Module::Module(Module &&) noexcept = default;
Module &Module::operator=(Module &&Other) noexcept = default;

std::string Module::Print() const {
  std::string Text;
  llvm::raw_string_ostream Stream(Text);
  impl_->module.get().print(Stream);
  return Text;
}

Module Module::Clone() const {
  Module Copy;
  Copy.impl_->context = impl_->context;
  Copy.impl_->module = OwningOpRef<ModuleOp>(cast<ModuleOp>(impl_->module.get()->clone()));
  return Copy;
}

std::shared_ptr<MLIRContext> makeContext() {
  DialectRegistry Registry;
  Registry.insert<MpcDialect, func::FuncDialect>();
  auto Context = std::make_shared<MLIRContext>(Registry, MLIRContext::Threading::DISABLED);
  Context->loadAllAvailableDialects();
  // Messages are for users who never see the IR.
  Context->printOpOnDiagnostic(false);
  return Context;
}

//===-- GraphBuilder ---------------------------------------------------------------------------------------------===//

static TypedValue toTyped(Value V) {
  return {V.getAsOpaquePointer(), toTensorSpec(cast<RankedTensorType>(V.getType()))};
}

static std::vector<TypedValue> toTyped(Operation *Op) {
  std::vector<TypedValue> Results;
  for (Value Result : Op->getResults())
    Results.push_back(toTyped(Result));
  return Results;
}

struct GraphBuilder::State {
  Module Result;
  MLIRContext *Context = nullptr;
  ModuleOp Root;
  llvm::SmallVector<func::FuncOp> Open;

  OpBuilder builder() { return OpBuilder::atBlockEnd(&Open.back().getBody().front()); }

  // Messages name the Cell; the attribute carries the meaning, because locations are lost when IR is printed.
  Location location(const Scope &Where) {
    Location Unknown = UnknownLoc::get(Context);
    return Where.path.empty() ? Unknown : Location(NameLoc::get(StringAttr::get(Context, Where.path)));
  }

  ScopeAttr scope(const Scope &Where) {
    auto TypeOf = [&](std::optional<DType> Named) { return Named ? toType(Context, *Named) : Type(); };
    return ScopeAttr::get(Context, Where.path, Where.network, TypeOf(Where.pin), Where.level, TypeOf(Where.low));
  }

  // Gives an operation its scope. Errors: what its verifier says, else `Otherwise`; then the operation is gone.
  absl::StatusOr<std::vector<TypedValue>> finish(Operation *Op, const Scope &Where,
                                                 const DiagnosticCollector &Diagnostics, const char *Otherwise) {
    setScope(Op, scope(Where));
    if (succeeded(verify(Op, /*verifyRecursively=*/false)))
      return toTyped(Op);
    Op->erase();
    return Diagnostics.status(Otherwise);
  }
};

static Value toMlir(ValueHandle Handle) { return Value::getFromOpaquePointer(Handle); }

GraphBuilder::GraphBuilder() : state_(std::make_unique<State>()) {
  Module::Impl &Impl = state_->Result.impl();
  Impl.context = makeContext();
  state_->Context = Impl.context.get();
  Impl.module = ModuleOp::create(UnknownLoc::get(state_->Context));
  state_->Root = Impl.module.get();
}

GraphBuilder::~GraphBuilder() = default;

std::string GraphBuilder::BeginFunction(std::string_view Name, bool IsPrivate) {
  std::string Unique(Name);
  for (int Suffix = 1; state_->Root.lookupSymbol(Unique); ++Suffix)
    Unique = absl::StrCat(std::string(Name), "_", Suffix);
  OpBuilder B = OpBuilder::atBlockEnd(state_->Root.getBody());
  auto Function =
      func::FuncOp::create(B, UnknownLoc::get(state_->Context), Unique, FunctionType::get(state_->Context, {}, {}));
  if (IsPrivate)
    Function.setPrivate();
  else
    markStep(Function);
  Function.addEntryBlock();
  state_->Open.push_back(Function);
  return Unique;
}

ValueHandle GraphBuilder::AddArgument(const TensorSpec &Spec, const NamedArgument &Given, std::size_t Depth) {
  func::FuncOp Function = state_->Open[Depth - 1];
  StateAttr State = makeState(state_->Context, Given.role, Given.name, Given.of,
                              Given.storage ? toType(state_->Context, *Given.storage) : Type());
  unsigned Index = Function.getNumArguments();
  if (failed(Function.insertArgument(Index, toTensorType(state_->Context, Spec), describedBy(State),
                                     UnknownLoc::get(state_->Context))))
    return nullptr;
  return Function.getArgument(Index).getAsOpaquePointer();
}

std::string GraphBuilder::ArgumentName(ValueHandle Handle) const { return nameOf(toMlir(Handle)).str(); }

std::size_t GraphBuilder::depth() const { return state_->Open.size(); }

// Verifiers cite the rule of an attribute without the value that breaks it.
static absl::Status withGivenText(const absl::Status &Status, const NamedAttrList &Given) {
  for (NamedAttribute Entry : Given) {
    auto Text = dyn_cast<StringAttr>(Entry.getValue());
    if (Text && absl::StrContains(Status.message(), absl::StrCat("attribute '", Entry.getName().str(), "' failed")))
      return absl::Status(Status.code(), absl::StrCat(Status.message(), "; got '", Text.str(), "'"));
  }
  return Status;
}

absl::StatusOr<std::vector<TypedValue>> GraphBuilder::Emit(std::string_view Name,
                                                           absl::Span<const ValueHandle> Operands,
                                                           const Attributes &Values, const Scope &Where,
                                                           std::optional<DType> ResultDType) {
  MLIRContext *Context = state_->Context;
  std::optional<RegisteredOperationName> Registered =
      RegisteredOperationName::lookup(absl::StrCat("mpc.", std::string(Name)), Context);
  auto *Inference = Registered ? Registered->getInterface<ShapeInferenceOpInterface>() : nullptr;
  if (!Inference)
    return absl::InternalError(absl::StrCat("the dialect has no operation 'mpc.", std::string(Name), "'"));

  SmallVector<Value> Inputs = llvm::map_to_vector(Operands, toMlir);
  NamedAttrList List(toNamedAttributes(Context, Values));
  llvm::Expected<SmallVector<RankedTensorType>> Types =
      Inference->inferTypes(ValueRange(Inputs).getTypes(), List.getDictionary(Context));
  if (!Types)
    return absl::InvalidArgumentError(llvm::toString(Types.takeError()));
  if (ResultDType)
    (*Types)[0] = RankedTensorType::get((*Types)[0].getShape(), toType(Context, *ResultDType));

  DiagnosticCollector Diagnostics(Context);
  OperationState State(state_->location(Where), *Registered);
  State.addOperands(Inputs);
  State.addTypes(llvm::to_vector_of<Type>(*Types));
  State.addAttributes(List);
  OpBuilder B = state_->builder();
  Operation *Op = B.create(State);
  if (Where.recompute != 0)
    setRecomputeCall(Op, B.getI64IntegerAttr(Where.recompute));
  absl::StatusOr<std::vector<TypedValue>> Results =
      state_->finish(Op, Where, Diagnostics, "the operation is malformed");
  if (!Results.ok())
    return withGivenText(Results.status(), List);
  return Results;
}

TypedValue GraphBuilder::Splat(const TensorSpec &Spec, double Value, const Scope &Where) {
  RankedTensorType Type = toTensorType(state_->Context, Spec);
  Attribute Element = IsFloating(Spec.dtype)
                          ? Attribute(FloatAttr::get(Type.getElementType(), Value))
                          : Attribute(IntegerAttr::get(Type.getElementType(), static_cast<int64_t>(Value)));
  OpBuilder B = state_->builder();
  auto Op = ConstantOp::create(B, state_->location(Where), Type, DenseElementsAttr::get(Type, Element));
  setScope(Op, state_->scope(Where));
  return toTyped(Op.getOutput());
}

TypedValue GraphBuilder::Constant(const TensorSpec &Spec, absl::Span<const std::uint8_t> Bytes, const Scope &Where) {
  RankedTensorType Type = toTensorType(state_->Context, Spec);
  DenseElementsAttr Elements;
  if (Spec.dtype == DType::kBool) {
    SmallVector<bool> Bits(Bytes.begin(), Bytes.end());
    Elements = DenseElementsAttr::get(Type, ArrayRef<bool>(Bits));
  } else {
    Elements = DenseElementsAttr::getFromRawBuffer(
        Type, ArrayRef<char>(reinterpret_cast<const char *>(Bytes.data()), Bytes.size()));
  }
  OpBuilder B = state_->builder();
  auto Op = ConstantOp::create(B, state_->location(Where), Type, Elements);
  setScope(Op, state_->scope(Where));
  return toTyped(Op.getOutput());
}

void GraphBuilder::EndFunction(absl::Span<const NamedResult> Results) {
  func::FuncOp Function = state_->Open.back();
  OpBuilder B = state_->builder();
  SmallVector<Value> Values;
  for (const NamedResult &Result : Results)
    Values.push_back(toMlir(Result.value));
  func::ReturnOp::create(B, UnknownLoc::get(state_->Context), Values);
  Function.setFunctionType(
      FunctionType::get(state_->Context, Function.getArgumentTypes(), ValueRange(Values).getTypes()));
  for (auto [Index, Result] : llvm::enumerate(Results))
    if (!Result.name.empty() || Result.role)
      setResultState(Function, Index, makeState(state_->Context, Result.role.value_or(Role::kOutput), Result.name));
  state_->Open.pop_back();
}

absl::StatusOr<std::vector<TypedValue>> GraphBuilder::ValueAndGrad(std::string_view Callee,
                                                                   absl::Span<const ValueHandle> Operands,
                                                                   ValueHandle Seed, absl::Span<const std::int64_t> Wrt,
                                                                   std::int64_t LossId, const Scope &Where) {
  auto Function = state_->Root.lookupSymbol<func::FuncOp>(Callee);
  SmallVector<Value> Inputs = llvm::map_to_vector(Operands, toMlir);
  SmallVector<Type> Types(Function.getResultTypes());
  for (std::int64_t Position : Wrt)
    Types.push_back(Inputs[Position].getType());
  OpBuilder B = state_->builder();
  DiagnosticCollector Diagnostics(state_->Context);
  auto Op = ValueAndGradOp::create(B, state_->location(Where), Types, FlatSymbolRefAttr::get(Function), Inputs,
                                   toMlir(Seed), B.getDenseI64ArrayAttr(ArrayRef<int64_t>(Wrt.data(), Wrt.size())),
                                   B.getI64IntegerAttr(LossId));
  return state_->finish(Op, Where, Diagnostics, "the gradient call is malformed");
}

absl::StatusOr<std::vector<TypedValue>> GraphBuilder::Backward(ValueHandle Loss, absl::Span<const ValueHandle> Wrt,
                                                               ValueHandle Seed, std::int64_t LossId,
                                                               const Scope &Where) {
  SmallVector<Value> Operands = llvm::map_to_vector(Wrt, toMlir);
  OpBuilder B = state_->builder();
  DiagnosticCollector Diagnostics(state_->Context);
  auto Op = BackwardOp::create(B, state_->location(Where), ValueRange(Operands).getTypes(), toMlir(Loss), Operands,
                               toMlir(Seed), B.getI64IntegerAttr(LossId));
  return state_->finish(Op, Where, Diagnostics, "the gradient request is malformed");
}

std::vector<TypedValue> GraphBuilder::CustomVjp(std::string_view Callee, std::string_view Vjp,
                                                absl::Span<const ValueHandle> Operands, const Scope &Where) {
  auto Function = state_->Root.lookupSymbol<func::FuncOp>(Callee);
  auto Rule = state_->Root.lookupSymbol<func::FuncOp>(Vjp);
  OpBuilder B = state_->builder();
  auto Op = CustomVjpOp::create(B, state_->location(Where), Function.getResultTypes(), FlatSymbolRefAttr::get(Function),
                                FlatSymbolRefAttr::get(Rule), llvm::map_to_vector(Operands, toMlir));
  setScope(Op, state_->scope(Where));
  return toTyped(Op);
}

std::vector<bool> GraphBuilder::DependsOn(ValueHandle Handle, absl::Span<const ValueHandle> Candidates) const {
  llvm::DenseSet<Value> Reached{toMlir(Handle)};
  SmallVector<Value> Worklist{toMlir(Handle)};
  while (!Worklist.empty())
    if (Operation *Op = Worklist.pop_back_val().getDefiningOp())
      for (Value Operand : Op->getOperands())
        if (Reached.insert(Operand).second)
          Worklist.push_back(Operand);
  std::vector<bool> Found;
  for (ValueHandle Candidate : Candidates)
    Found.push_back(Reached.contains(toMlir(Candidate)));
  return Found;
}

bool GraphBuilder::ReplaceUses(ValueHandle From, ValueHandle To) {
  Value Old = toMlir(From), New = toMlir(To);
  Operation *Definition = New.getDefiningOp();
  if (Old.getType() != New.getType() || !Definition)
    return false;
  Block *Body = Definition->getBlock();
  if (llvm::any_of(Old.getUsers(), [&](Operation *User) { return User->getBlock() != Body; }))
    return false;
  // Operations that read the old value before the new one exists move behind it, with everything that follows from
  // them.
  llvm::DenseSet<Value> Following{Old};
  SmallVector<Operation *> Moved;
  auto Follows = [&](Operation &Op) {
    return llvm::any_of(Op.getOperands(), [&](Value V) { return Following.contains(V); });
  };
  for (Operation &Op : llvm::make_range(Body->begin(), Definition->getIterator()))
    if (Follows(Op)) {
      Moved.push_back(&Op);
      Following.insert(Op.result_begin(), Op.result_end());
    }
  if (Follows(*Definition))
    return false;
  Operation *Last = Definition;
  for (Operation *Op : Moved) {
    Op->moveAfter(Last);
    Last = Op;
  }
  Old.replaceAllUsesWith(New);
  return true;
}

absl::StatusOr<Module> GraphBuilder::Finish() {
  DiagnosticCollector Diagnostics(state_->Context);
  if (failed(verify(state_->Root)))
    return Diagnostics.status("the traced module is malformed");
  return std::move(state_->Result);
}

} // namespace mpc::compiler
