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
Module &Module::operator=(Module &&other) noexcept = default;

std::string Module::Print() const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  impl_->module.get().print(stream);
  return text;
}

Module Module::Clone() const {
  Module copy;
  copy.impl_->context = impl_->context;
  copy.impl_->module = OwningOpRef<ModuleOp>(cast<ModuleOp>(impl_->module.get()->clone()));
  return copy;
}

std::shared_ptr<MLIRContext> makeContext() {
  DialectRegistry registry;
  registry.insert<MpcDialect, func::FuncDialect>();
  auto context = std::make_shared<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  // Messages are for users who never see the IR.
  context->printOpOnDiagnostic(false);
  return context;
}

//===-- GraphBuilder ---------------------------------------------------------------------------------------------===//

static TypedValue toTyped(Value v) {
  return {v.getAsOpaquePointer(), toTensorSpec(cast<RankedTensorType>(v.getType()))};
}

static std::vector<TypedValue> toTyped(Operation *op) {
  std::vector<TypedValue> results;
  for (Value result : op->getResults())
    results.push_back(toTyped(result));
  return results;
}

struct GraphBuilder::State {
  Module result;
  MLIRContext *context = nullptr;
  ModuleOp root;
  /// A function without its end. It gets its signature there: a new one takes as long as the arguments are many.
  struct Open {
    func::FuncOp function;
    SmallVector<StateAttr> arguments;

    Block &body() { return function.getBody().front(); }
  };
  llvm::SmallVector<Open> open;
  std::optional<RefusedOperand> refused; ///< by the last Emit

  OpBuilder builder() { return OpBuilder::atBlockEnd(&open.back().body()); }

  // Messages name the Cell; the attribute carries the meaning, because locations are lost when IR is printed.
  Location location(const Scope &where) {
    Location unknown = UnknownLoc::get(context);
    return where.path.empty() ? unknown : Location(NameLoc::get(StringAttr::get(context, where.path)));
  }

  ScopeAttr scope(const Scope &where) {
    auto typeOf = [&](std::optional<DType> named) { return named ? toType(context, *named) : Type(); };
    return ScopeAttr::get(context, where.path, where.network, typeOf(where.pin), where.level, typeOf(where.low));
  }

  // Gives an operation its scope. Errors: what its verifier says, else `otherwise`; then the operation is gone.
  absl::StatusOr<std::vector<TypedValue>> finish(Operation *op, const Scope &where,
                                                 const DiagnosticCollector &diagnostics, const char *otherwise) {
    setScope(op, scope(where));
    if (succeeded(verify(op, /*verifyRecursively=*/false)))
      return toTyped(op);
    op->erase();
    return diagnostics.status(otherwise);
  }
};

static Value toMlir(ValueHandle handle) { return Value::getFromOpaquePointer(handle); }

GraphBuilder::GraphBuilder() : state_(std::make_unique<State>()) {
  Module::Impl &impl = state_->result.impl();
  impl.context = makeContext();
  state_->context = impl.context.get();
  impl.module = ModuleOp::create(UnknownLoc::get(state_->context));
  state_->root = impl.module.get();
}

GraphBuilder::~GraphBuilder() = default;

std::string GraphBuilder::BeginFunction(std::string_view name, bool isPrivate) {
  std::string unique(name);
  for (int suffix = 1; state_->root.lookupSymbol(unique); ++suffix)
    unique = absl::StrCat(std::string(name), "_", suffix);
  OpBuilder b = OpBuilder::atBlockEnd(state_->root.getBody());
  auto function =
      func::FuncOp::create(b, UnknownLoc::get(state_->context), unique, FunctionType::get(state_->context, {}, {}));
  if (isPrivate)
    function.setPrivate();
  else
    markStep(function);
  function.addEntryBlock();
  state_->open.push_back({function, {}});
  return unique;
}

ValueHandle GraphBuilder::AddArgument(const TensorSpec &spec, const NamedArgument &given, std::size_t depth) {
  State::Open &into = state_->open[depth - 1];
  into.arguments.push_back(makeState(state_->context, given.role, given.name, given.of,
                                     given.storage ? toType(state_->context, *given.storage) : Type()));
  BlockArgument added = into.body().addArgument(toTensorType(state_->context, spec), UnknownLoc::get(state_->context));
  return added.getAsOpaquePointer();
}

std::string GraphBuilder::ArgumentName(ValueHandle handle) const {
  Value v = toMlir(handle);
  if (auto argument = dyn_cast<BlockArgument>(v))
    for (State::Open &each : state_->open)
      if (&each.body() == argument.getOwner())
        return each.arguments[argument.getArgNumber()].getName().str();
  return nameOf(v).str();
}

std::size_t GraphBuilder::depth() const { return state_->open.size(); }

// Verifiers cite the rule of an attribute without the value that breaks it.
static absl::Status withGivenText(const absl::Status &status, const NamedAttrList &given) {
  for (NamedAttribute entry : given) {
    auto text = dyn_cast<StringAttr>(entry.getValue());
    if (text && absl::StrContains(status.message(), absl::StrCat("attribute '", entry.getName().str(), "' failed")))
      return absl::Status(status.code(), absl::StrCat(status.message(), "; got '", text.str(), "'"));
  }
  return status;
}

// Whether operand \p index of the operation of \p state may be f32: the verifier is asked about one. It stays in the
// state.
static bool takesFloats(OperationState &state, unsigned index) {
  MLIRContext *context = state.getContext();
  Block block;
  auto given = cast<RankedTensorType>(state.operands[index].getType());
  state.operands[index] = block.addArgument(given.clone(Float32Type::get(context)), state.location);
  DiagnosticCollector diagnostics(context);
  Operation *op = Operation::create(state);
  bool takes = succeeded(verify(op, /*verifyRecursively=*/false)) || diagnostics.getRefusedOperand() != index;
  op->destroy();
  return takes;
}

absl::StatusOr<std::vector<TypedValue>> GraphBuilder::Emit(std::string_view name,
                                                           absl::Span<const ValueHandle> operands,
                                                           const Attributes &values, const Scope &where,
                                                           std::optional<DType> resultDType) {
  MLIRContext *context = state_->context;
  state_->refused.reset();
  std::optional<RegisteredOperationName> registered =
      RegisteredOperationName::lookup(absl::StrCat("mpc.", std::string(name)), context);
  auto *inference = registered ? registered->getInterface<ShapeInferenceOpInterface>() : nullptr;
  if (!inference)
    return absl::InternalError(absl::StrCat("the dialect has no operation 'mpc.", std::string(name), "'"));

  SmallVector<Value> inputs = llvm::map_to_vector(operands, toMlir);
  NamedAttrList list(toNamedAttributes(context, values));
  llvm::Expected<SmallVector<RankedTensorType>> types =
      inference->inferTypes(ValueRange(inputs).getTypes(), list.getDictionary(context));
  if (!types)
    return absl::InvalidArgumentError(llvm::toString(types.takeError()));
  if (resultDType)
    (*types)[0] = RankedTensorType::get((*types)[0].getShape(), toType(context, *resultDType));

  DiagnosticCollector diagnostics(context);
  Location loc = state_->location(where);
  // Properties take no attribute of a wrong kind: it would be gone without a word.
  auto emitKindError = [&] { return emitError(loc) << "'" << registered->getStringRef() << "' op "; };
  if (failed(registered->verifyInherentAttrs(list, emitKindError)))
    return withGivenText(diagnostics.status("the operation is malformed"), list);
  OperationState state(loc, *registered);
  state.addOperands(inputs);
  state.addTypes(llvm::to_vector_of<Type>(*types));
  state.addAttributes(list);
  OpBuilder b = state_->builder();
  Operation *op = b.create(state);
  if (where.recompute != 0)
    setRecomputeCall(op, b.getI64IntegerAttr(where.recompute));
  absl::StatusOr<std::vector<TypedValue>> results =
      state_->finish(op, where, diagnostics, "the operation is malformed");
  if (results.ok())
    return results;
  if (std::optional<unsigned> index = diagnostics.getRefusedOperand(); index && *index < inputs.size())
    state_->refused = RefusedOperand{*index, takesFloats(state, *index)};
  return withGivenText(results.status(), list);
}

std::optional<RefusedOperand> GraphBuilder::LastRefusedOperand() const { return state_->refused; }

TypedValue GraphBuilder::Splat(const TensorSpec &spec, double value, const Scope &where) {
  RankedTensorType type = toTensorType(state_->context, spec);
  Attribute element = IsFloating(spec.dtype)
                          ? Attribute(FloatAttr::get(type.getElementType(), value))
                          : Attribute(IntegerAttr::get(type.getElementType(), static_cast<int64_t>(value)));
  OpBuilder b = state_->builder();
  auto op = ConstantOp::create(b, state_->location(where), type, DenseElementsAttr::get(type, element));
  setScope(op, state_->scope(where));
  return toTyped(op.getOutput());
}

TypedValue GraphBuilder::Constant(const TensorSpec &spec, absl::Span<const std::uint8_t> bytes, const Scope &where) {
  RankedTensorType type = toTensorType(state_->context, spec);
  DenseElementsAttr elements;
  if (spec.dtype == DType::kBool) {
    SmallVector<bool> bits(bytes.begin(), bytes.end());
    elements = DenseElementsAttr::get(type, ArrayRef<bool>(bits));
  } else {
    elements = DenseElementsAttr::getFromRawBuffer(
        type, ArrayRef<char>(reinterpret_cast<const char *>(bytes.data()), bytes.size()));
  }
  OpBuilder b = state_->builder();
  auto op = ConstantOp::create(b, state_->location(where), type, elements);
  setScope(op, state_->scope(where));
  return toTyped(op.getOutput());
}

void GraphBuilder::EndFunction(absl::Span<const NamedResult> results) {
  OpBuilder b = state_->builder();
  auto [function, arguments] = state_->open.pop_back_val();
  SmallVector<Value> values;
  SmallVector<DictionaryAttr> described;
  for (const NamedResult &result : results) {
    values.push_back(toMlir(result.value));
    bool hasState = !result.name.empty() || result.role;
    described.push_back(hasState
                            ? describedBy(makeState(state_->context, result.role.value_or(Role::kOutput), result.name))
                            : DictionaryAttr());
  }
  func::ReturnOp::create(b, UnknownLoc::get(state_->context), values);
  function.setFunctionType(
      FunctionType::get(state_->context, function.getBody().getArgumentTypes(), ValueRange(values).getTypes()));
  function.setAllArgAttrs(llvm::map_to_vector(arguments, describedBy));
  function.setAllResultAttrs(described);
}

absl::StatusOr<std::vector<TypedValue>> GraphBuilder::ValueAndGrad(std::string_view callee,
                                                                   absl::Span<const ValueHandle> operands,
                                                                   ValueHandle seed, absl::Span<const std::int64_t> wrt,
                                                                   std::int64_t lossId, const Scope &where) {
  auto function = state_->root.lookupSymbol<func::FuncOp>(callee);
  SmallVector<Value> inputs = llvm::map_to_vector(operands, toMlir);
  SmallVector<Type> types(function.getResultTypes());
  for (std::int64_t position : wrt)
    types.push_back(inputs[position].getType());
  OpBuilder b = state_->builder();
  DiagnosticCollector diagnostics(state_->context);
  auto op = ValueAndGradOp::create(b, state_->location(where), types, FlatSymbolRefAttr::get(function), inputs,
                                   toMlir(seed), b.getDenseI64ArrayAttr(ArrayRef<int64_t>(wrt.data(), wrt.size())),
                                   b.getI64IntegerAttr(lossId));
  return state_->finish(op, where, diagnostics, "the gradient call is malformed");
}

absl::StatusOr<std::vector<TypedValue>> GraphBuilder::Backward(ValueHandle loss, absl::Span<const ValueHandle> wrt,
                                                               ValueHandle seed, std::int64_t lossId, bool byValues,
                                                               const Scope &where) {
  SmallVector<Value> operands = llvm::map_to_vector(wrt, toMlir);
  OpBuilder b = state_->builder();
  DiagnosticCollector diagnostics(state_->context);
  auto op = BackwardOp::create(b, state_->location(where), ValueRange(operands).getTypes(), toMlir(loss), operands,
                               toMlir(seed), b.getI64IntegerAttr(lossId), b.getBoolAttr(byValues));
  return state_->finish(op, where, diagnostics, "the gradient request is malformed");
}

std::vector<TypedValue> GraphBuilder::CustomVjp(std::string_view callee, std::string_view vjp,
                                                absl::Span<const ValueHandle> operands, const Scope &where) {
  auto function = state_->root.lookupSymbol<func::FuncOp>(callee);
  auto rule = state_->root.lookupSymbol<func::FuncOp>(vjp);
  OpBuilder b = state_->builder();
  auto op = CustomVjpOp::create(b, state_->location(where), function.getResultTypes(), FlatSymbolRefAttr::get(function),
                                FlatSymbolRefAttr::get(rule), llvm::map_to_vector(operands, toMlir));
  setScope(op, state_->scope(where));
  return toTyped(op);
}

std::vector<bool> GraphBuilder::DependsOn(ValueHandle handle, absl::Span<const ValueHandle> candidates) const {
  llvm::DenseSet<Value> reached{toMlir(handle)};
  SmallVector<Value> worklist{toMlir(handle)};
  while (!worklist.empty())
    if (Operation *op = worklist.pop_back_val().getDefiningOp())
      for (Value operand : op->getOperands())
        if (reached.insert(operand).second)
          worklist.push_back(operand);
  std::vector<bool> found;
  for (ValueHandle candidate : candidates)
    found.push_back(reached.contains(toMlir(candidate)));
  return found;
}

bool GraphBuilder::ReplaceUses(absl::Span<const ValueHandle> from, absl::Span<const ValueHandle> to) {
  if (to.empty())
    return true;
  Operation *definition = toMlir(to.front()).getDefiningOp();
  if (!definition)
    return false;
  Block *body = definition->getBlock();
  // Operations that read an old value before the new one exists move behind it, with everything that follows from them.
  llvm::DenseSet<Value> following;
  for (auto [oldHandle, handle] : llvm::zip_equal(from, to)) {
    Value old = toMlir(oldHandle), replacement = toMlir(handle);
    assert(replacement.getDefiningOp() == definition && "one operation defines what replaces");
    if (old.getType() != replacement.getType() || !old.getDefiningOp())
      return false;
    if (llvm::any_of(old.getUsers(), [&](Operation *user) { return user->getBlock() != body; }))
      return false;
    following.insert(old);
  }
  SmallVector<Operation *> moved;
  auto follows = [&](Operation &op) {
    return llvm::any_of(op.getOperands(), [&](Value v) { return following.contains(v); });
  };
  for (Operation &op : llvm::make_range(body->begin(), definition->getIterator()))
    if (follows(op)) {
      moved.push_back(&op);
      following.insert(op.result_begin(), op.result_end());
    }
  if (follows(*definition))
    return false;
  Operation *last = definition;
  for (Operation *op : moved) {
    op->moveAfter(last);
    last = op;
  }
  for (auto [old, replacement] : llvm::zip_equal(from, to))
    toMlir(old).replaceAllUsesWith(toMlir(replacement));
  return true;
}

absl::StatusOr<Module> GraphBuilder::Finish() {
  DiagnosticCollector diagnostics(state_->context);
  if (failed(verify(state_->root)))
    return diagnostics.status("the traced module is malformed");
  return std::move(state_->result);
}

} // namespace mpc::compiler
