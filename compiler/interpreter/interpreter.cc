#include "compiler/interpreter/interpreter.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/dialect.h"
#include "compiler/interpreter/process_grid.h"
#include "kernels/known_attributes.h"
#include "runtime/physical_memory.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <optional>
#include <thread>

using namespace mlir;

namespace mpc {

using reference::Tensor;

namespace {

/// Evaluates one function; calls make further ones.
class FunctionInterpreter {
public:
  FunctionInterpreter(func::FuncOp function, reference::Rounding rounding, LargeIntegers integers,
                      ProcessGrid *grid = nullptr, int64_t rank = 0)
      : function(function), rounding(rounding), integers(integers), grid(grid), rank(rank) {}
  FunctionInterpreter(func::FuncOp function, const FunctionInterpreter &caller)
      : function(function), rounding(caller.rounding), integers(caller.integers), grid(caller.grid), rank(caller.rank),
        caller(&caller) {}

  absl::StatusOr<std::vector<Tensor>> run(absl::Span<const Tensor> inputs);

private:
  absl::Status runOperation(Operation &op);
  absl::Status runConstant(ConstantOp op);
  absl::Status runCall(func::CallOp op);
  absl::Status runRepeat(RepeatOp op);
  absl::Status runFusion(FusionOp op);
  absl::Status runGuardedUpdate(GuardedUpdateOp op);
  absl::Status runReference(Operation &op);
  /// Sets the values of \p result to what the collective operation \p op of several processes gives of \p inputs.
  absl::Status runCollectiveOf(Operation &op, absl::Span<const Tensor> inputs, Tensor &result);

  /// Runs what stands before the terminator, which reads the results.
  absl::Status runBody(Block &body);

  std::vector<Tensor> valuesOf(ValueRange operands) const;
  void bind(ValueRange names, std::vector<Tensor> values);
  /// Whether the function runs already, and so calls itself.
  bool isRunning() const;
  bool refusesLargeIntegers() const { return integers == LargeIntegers::Refused; }

  func::FuncOp function;
  reference::Rounding rounding;
  LargeIntegers integers;
  ProcessGrid *grid; ///< null: the function runs in one process
  int64_t rank;
  const FunctionInterpreter *caller = nullptr;
  DenseMap<Value, Tensor> environment;
};

} // namespace

/// "'mpc.conv2d' of @forward".
static std::string describe(Operation &op, func::FuncOp function) {
  return "'" + op.getName().getStringRef().str() + "' of @" + function.getName().str();
}

static bool isKnownTensor(Type value) {
  auto type = dyn_cast<RankedTensorType>(value);
  return type && type.hasStaticShape() && toDType(type.getElementType());
}

/// The elements, each an f64, that take a quarter of this machine's memory.
static int64_t mostElements() { return static_cast<int64_t>(runtime::PhysicalMemory() / 4 / sizeof(double)); }

/// Errors: \p op has a result of more elements than the interpreter makes.
static absl::Status checkSizes(Operation &op, func::FuncOp function) {
  const int64_t most = mostElements();
  for (Type type : op.getResultTypes()) {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(type).getShape();
    int64_t elements = llvm::is_contained(shape, 0) ? 0 : 1;
    for (int64_t extent : shape) {
      if (elements != 0 && extent > most / elements)
        return absl::ResourceExhaustedError(
            absl::StrCat(describe(op, function), " has a result of more than ", most,
                         " elements: as f64 they would take more than a quarter of this machine's memory of ",
                         runtime::PhysicalMemory(), " bytes, and the interpreter makes none so large"));
      elements *= extent;
    }
  }
  return absl::OkStatus();
}

/// The largest integer that an f64 tells from its neighbours.
static constexpr int64_t mostInteger = (int64_t(1) << 53) - 1;

/// What a message says where an i64 element is beyond mostInteger.
static std::string integerLimit() {
  return absl::StrCat("the interpreter holds i64 in f64, which is exact from ", -mostInteger, " to ", mostInteger);
}

/// The first i64 element of \p tensor that an f64 cannot tell from its neighbours.
static std::optional<size_t> firstInexact(const Tensor &tensor) {
  if (tensor.spec.dtype != DType::kI64)
    return std::nullopt;
  auto found = llvm::find_if(tensor.values, [](double value) { return !(std::abs(value) <= double(mostInteger)); });
  if (found == tensor.values.end())
    return std::nullopt;
  return size_t(found - tensor.values.begin());
}

/// Errors: \p op gives an i64 element that is not exact.
static absl::Status checkExact(Operation &op, func::FuncOp function, absl::Span<const Tensor> results) {
  for (size_t result = 0; result < results.size(); ++result)
    if (std::optional<size_t> element = firstInexact(results[result]))
      return absl::OutOfRangeError(absl::StrCat(describe(op, function), " gives about ",
                                                absl::StrFormat("%.0f", results[result].values[*element]),
                                                " in element ", *element, " of result ", result, ": ", integerLimit()));
  return absl::OkStatus();
}

static TensorSpec specOf(Value v) { return toTensorSpec(cast<RankedTensorType>(v.getType())); }

std::vector<Tensor> FunctionInterpreter::valuesOf(ValueRange operands) const {
  std::vector<Tensor> result;
  for (Value operand : operands)
    result.push_back(environment.at(operand));
  return result;
}

void FunctionInterpreter::bind(ValueRange names, std::vector<Tensor> values) {
  for (auto [name, computed] : llvm::zip_equal(names, values))
    environment[name] = std::move(computed);
}

bool FunctionInterpreter::isRunning() const {
  for (const FunctionInterpreter *running = caller; running; running = running->caller)
    if (running->function == function)
      return true;
  return false;
}

absl::Status FunctionInterpreter::runBody(Block &body) {
  for (Operation &op : body.without_terminator())
    if (absl::Status status = runOperation(op); !status.ok())
      return status;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> FunctionInterpreter::run(absl::Span<const Tensor> inputs) {
  std::string name = "@" + function.getName().str();
  if (function.isExternal() || !function.getBody().hasOneBlock())
    return absl::FailedPreconditionError(absl::StrCat(name, " has no body or has control flow: it cannot be run"));
  if (isRunning())
    return absl::FailedPreconditionError(absl::StrCat(name, " calls itself: it cannot be run"));
  if (inputs.size() != function.getNumArguments())
    return absl::InvalidArgumentError(
        absl::StrCat(name, " takes ", function.getNumArguments(), " arguments, got ", inputs.size()));
  for (BlockArgument argument : function.getArguments()) {
    const Tensor &input = inputs[argument.getArgNumber()];
    if (!isKnownTensor(argument.getType()) || !(specOf(argument) == input.spec)) {
      std::string expected;
      llvm::raw_string_ostream(expected) << argument.getType();
      return absl::InvalidArgumentError(
          absl::StrCat(name, " argument ", argument.getArgNumber(), " is ", expected, ", got ", input.spec.ToString()));
    }
    if (int64_t(input.values.size()) != input.spec.num_elements())
      return absl::InvalidArgumentError(absl::StrCat(name, " argument ", argument.getArgNumber(), " has ",
                                                     input.values.size(), " values for ", input.spec.ToString()));
    if (std::optional<size_t> element = refusesLargeIntegers() ? firstInexact(input) : std::nullopt)
      return absl::OutOfRangeError(absl::StrCat(name, " argument ", argument.getArgNumber(), " has about ",
                                                absl::StrFormat("%.0f", input.values[*element]), " in element ",
                                                *element, ": ", integerLimit()));
    environment[argument] = input;
  }

  Block &body = function.getBody().front();
  if (absl::Status status = runBody(body); !status.ok())
    return status;
  return valuesOf(body.getTerminator()->getOperands());
}

absl::Status FunctionInterpreter::runOperation(Operation &op) {
  return llvm::TypeSwitch<Operation *, absl::Status>(&op)
      .Case([&](ConstantOp constant) { return runConstant(constant); })
      .Case([&](func::CallOp call) { return runCall(call); })
      .Case([&](RepeatOp repeat) { return runRepeat(repeat); })
      .Case([&](FusionOp fusion) { return runFusion(fusion); })
      .Case([&](GuardedUpdateOp update) { return runGuardedUpdate(update); })
      .Case<ValueAndGradOp, BackwardOp, CustomVjpOp>([&](Operation *) {
        return absl::FailedPreconditionError(absl::StrCat(describe(op, function), ": run mpc-autodiff first"));
      })
      .Default([&](Operation *) { return runReference(op); });
}

absl::Status FunctionInterpreter::runConstant(ConstantOp op) {
  auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!elements)
    return absl::UnimplementedError(absl::StrCat(describe(*op, function), " is not a dense constant"));
  if (absl::Status status = checkSizes(*op, function); !status.ok())
    return status;
  Tensor &result = environment[op.getOutput()];
  result.spec = specOf(op.getOutput());
  result.values.reserve(elements.getNumElements());
  if (isa<FloatType>(elements.getElementType())) {
    for (APFloat element : elements.getValues<APFloat>()) {
      bool losesInfo;
      element.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
      result.values.push_back(element.convertToDouble());
    }
    return absl::OkStatus();
  }
  for (const APInt &element : elements.getValues<APInt>()) {
    int64_t given = element.getBitWidth() == 1 ? int64_t(element.getZExtValue()) : element.getSExtValue();
    if (refusesLargeIntegers() && (given < -mostInteger || given > mostInteger))
      return absl::OutOfRangeError(absl::StrCat(describe(*op, function), " holds ", given, ": ", integerLimit()));
    result.values.push_back(double(given));
  }
  return absl::OkStatus();
}

absl::Status FunctionInterpreter::runCall(func::CallOp op) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(op, op.getCalleeAttr());
  if (!callee)
    return absl::FailedPreconditionError(
        absl::StrCat(describe(*op, function), " names no function of the module: ", op.getCallee().str()));
  absl::StatusOr<std::vector<Tensor>> results = FunctionInterpreter(callee, *this).run(valuesOf(op.getOperands()));
  if (!results.ok())
    return results.status();
  bind(op.getResults(), *std::move(results));
  return absl::OkStatus();
}

absl::Status FunctionInterpreter::runRepeat(RepeatOp op) {
  std::vector<Tensor> values = valuesOf(op.getInputs());
  for (uint64_t call = 0; call < op.getCount(); ++call) {
    absl::StatusOr<std::vector<Tensor>> results = FunctionInterpreter(op.getFunction(), *this).run(values);
    if (!results.ok())
      return results.status();
    llvm::move(*results, values.begin());
  }
  values.resize(op->getNumResults());
  bind(op.getResults(), std::move(values));
  return absl::OkStatus();
}

absl::Status FunctionInterpreter::runFusion(FusionOp op) {
  Block &body = op.getBody().front();
  bind(body.getArguments(), valuesOf(op.getInputs()));
  if (absl::Status status = runBody(body); !status.ok())
    return status;
  bind(op.getResults(), valuesOf(body.getTerminator()->getOperands()));
  return absl::OkStatus();
}

absl::Status FunctionInterpreter::runGuardedUpdate(GuardedUpdateOp op) {
  ValueRange chosen = op.getOld();
  if (environment.at(op.getCondition()).values.front() != 0) {
    Block &body = op.getBody().front();
    if (absl::Status status = runBody(body); !status.ok())
      return status;
    chosen = body.getTerminator()->getOperands();
  }
  bind(op.getResults(), valuesOf(chosen));
  return absl::OkStatus();
}

absl::Status FunctionInterpreter::runReference(Operation &op) {
  if (!isa_and_nonnull<MpcDialect>(op.getDialect()) || op.getNumRegions() != 0)
    return absl::FailedPreconditionError(absl::StrCat(describe(op, function), " cannot be run by the interpreter"));
  if (absl::Status status = checkSizes(op, function); !status.ok())
    return status;
  std::vector<Tensor> inputs = valuesOf(op.getOperands());
  std::vector<Tensor> outputs;
  for (Value result : op.getResults()) {
    TensorSpec spec = specOf(result);
    outputs.push_back({spec, std::vector<double>(spec.num_elements())});
  }
  Attributes attributes = kernelAttributes(&op);
  bool isShared = has<Property::Collective>(&op) && attributes.Get(attribute::kProcesses) > 1;
  absl::Status status = isShared
                            ? runCollectiveOf(op, inputs, outputs.front())
                            : reference::Run(kernelName(&op), attributes, inputs, absl::MakeSpan(outputs), rounding);
  if (!status.ok())
    return absl::Status(status.code(), absl::StrCat(describe(op, function), ": ", status.message()));
  if (refusesLargeIntegers())
    if (absl::Status inexact = checkExact(op, function, outputs); !inexact.ok())
      return inexact;
  bind(op.getResults(), std::move(outputs));
  return absl::OkStatus();
}

absl::Status FunctionInterpreter::runCollectiveOf(Operation &op, absl::Span<const Tensor> inputs, Tensor &result) {
  int64_t processes = kernelAttributes(&op).Get(attribute::kProcesses);
  int64_t running = grid ? grid->getSize() : 1;
  if (processes != running)
    return absl::FailedPreconditionError(absl::StrCat("is for ", processes, " processes; ", running, " run"));
  std::vector<Tensor> gave = grid->collect(rank, inputs.empty() ? result : inputs.front());
  if (gave.empty())
    return absl::CancelledError("another process has failed");
  absl::StatusOr<std::vector<double>> values = runCollective(kernelName(&op), rank, gave, rounding);
  if (!values.ok())
    return values.status();
  result.values = *std::move(values);
  reference::Round(result, rounding);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::vector<Tensor>>>
interpretProcesses(func::FuncOp function, absl::Span<const std::vector<Tensor>> inputs, reference::Rounding rounding) {
  if (inputs.empty())
    return absl::InvalidArgumentError("a function runs in at least one process, got inputs of none");
  ProcessGrid grid{int64_t(inputs.size())};
  std::vector<absl::StatusOr<std::vector<Tensor>>> results(inputs.size(), absl::UnknownError("not run"));
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < inputs.size(); ++rank)
    threads.emplace_back([&, rank] {
      results[rank] =
          FunctionInterpreter(function, rounding, LargeIntegers::Refused, &grid, int64_t(rank)).run(inputs[rank]);
      if (!results[rank].ok())
        grid.leave();
    });
  for (std::thread &thread : threads)
    thread.join();
  std::vector<std::vector<Tensor>> all;
  // What cancelled the others says more than that they were cancelled.
  for (bool cancelled : {false, true})
    for (auto &result : results)
      if (!result.ok() && absl::IsCancelled(result.status()) == cancelled)
        return result.status();
  for (auto &result : results)
    all.push_back(*std::move(result));
  return all;
}

absl::StatusOr<std::vector<Tensor>> interpret(func::FuncOp function, absl::Span<const Tensor> inputs,
                                              reference::Rounding rounding, LargeIntegers integers) {
  return FunctionInterpreter(function, rounding, integers).run(inputs);
}

} // namespace mpc
