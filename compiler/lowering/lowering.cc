#include "compiler/lowering/lowering.h"

#include "absl/strings/str_cat.h"
#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/inference_support.h"
#include "compiler/dialect/step_signature.h"
#include "compiler/lowering/function_lowering.h"
#include "compiler/lowering/fusion_instruction.h"
#include "compiler/lowering/program_data.h"
#include "runtime/aligned_buffer.h"
#include "runtime/program_check.h"

using namespace mlir;

namespace mpc::compiler {

namespace {

/// Whether an optimizer writes \p updated, and leaves it alone where a predicate is false. A finished Program answers
/// that by runtime::FindPredicatedUpdates. Weights are packed while it is made.
bool hasPredicate(Value updated) {
  auto optimizer = updated.getDefiningOp<OptimizerOpInterface>();
  return optimizer && !optimizer.getScalars().empty() &&
         getElementTypeOrSelf(optimizer.getScalars().back().getType()).isInteger(1);
}

/// A step with what it calls.
class ProgramLowering {
public:
  ProgramLowering(func::FuncOp function, const runtime::Device &target, const runtime::PlanOptions &options,
                  codegen::GeneratedCode code)
      : function(function), signature(function), parts{target, options, std::move(code)}, step(function, parts) {}

  absl::StatusOr<runtime::Program> run() {
    describe();
    declareArguments();
    placeConstantData();
    if (absl::Status status = step.declare(); !status.ok())
      return status;
    parts.packer.emplace(result, stateChanges(), parts.options.keep_packed_weights);
    if (absl::Status status = step.define(); !status.ok())
      return status;
    defineResults();
    if (absl::Status status = addRefreshes(); !status.ok())
      return status;
    plan();
    result.code = std::move(parts.code.blobs);
    return std::move(result);
  }

  const std::vector<std::string> &remarks() const { return parts.remarks; }

private:
  func::FuncOp function;
  StepSignature signature;
  ProgramParts parts;
  FunctionLowering step;
  runtime::Program &result = parts.program;
  llvm::StringMap<runtime::ValueId> stateByName;
  /// The name of the state that each state argument belongs to; empty for none.
  SmallVector<StringRef> owners;

  void describe() {
    result.name = function.getSymName().str();
    result.device = std::string(parts.target.name());
    result.allow_tf32 = parts.options.allow_tf32;
    result.arch = std::string(parts.target.arch());
    result.required_cpu_features = parts.code.required_cpu_features.empty() ? parts.target.required_cpu_features()
                                                                            : parts.code.required_cpu_features;
  }

  void declareArguments() {
    for (BlockArgument argument : function.getArguments()) {
      unsigned index = argument.getArgNumber();
      std::optional<Role> own = argumentRole(function, index);
      std::string name = argumentName(function, index).str();
      if (name.empty())
        name = ("argument" + llvm::Twine(index)).str();
      runtime::Value record;
      record.spec = toTensorSpec(cast<RankedTensorType>(argument.getType()));
      record.storage = isState(own) ? runtime::Storage::kState : runtime::Storage::kInput;
      record.index = isState(own) ? result.state.size() : result.inputs.size();
      step.declareArgument(argument, record);
      runtime::ValueId id = step.valueId(argument);
      if (!isState(own)) {
        result.inputs.push_back({name, id});
        continue;
      }
      result.state.push_back({name, *own, record.spec, false});
      owners.push_back(argumentState(function, index).getOf());
      stateByName[name] = id;
    }
  }

  void placeConstantData() {
    SmallVector<ConstantOp> ops;
    for (func::FuncOp each : withCalled(function))
      llvm::append_range(ops, each.getOps<ConstantOp>());
    auto elements = llvm::map_to_vector(ops, [](ConstantOp op) { return cast<DenseElementsAttr>(op.getValue()); });
    for (auto [op, offset] : llvm::zip_equal(ops, placeConstants(elements, result)))
      parts.constants[op] = offset;
  }

  OperandRange results() { return function.getBody().front().getTerminator()->getOperands(); }

  /// How often runs of the function give each state a new value.
  std::vector<runtime::StateChange> stateChanges() {
    std::vector<runtime::StateChange> changes(result.state.size(), runtime::StateChange::kNever);
    bool accumulates = runtime::Accumulates(result);
    for (auto [index, operand] : llvm::enumerate(results())) {
      std::optional<unsigned> argument = signature.argumentOf(index);
      if (argument && operand != function.getArgument(*argument))
        changes[result.values[*step.oldValue(index)].index] =
            accumulates && hasPredicate(operand) ? runtime::StateChange::kSeldom : runtime::StateChange::kAlways;
    }
    return changes;
  }

  void defineResults() {
    for (auto [index, operand] : llvm::enumerate(results())) {
      std::string name = resultName(function, index).str();
      if (!isState(resultRole(function, index))) {
        result.outputs.push_back({name.empty() ? ("result" + llvm::Twine(index)).str() : name, step.keptId(operand)});
        continue;
      }
      runtime::ValueId old = *step.oldValue(index);
      result.state[result.values[old].index].written |= step.valueId(operand) != old;
    }
    step.defineCopies();
  }

  absl::Status addRefreshes() {
    std::vector<runtime::StateRefresh> ofPackedWeights = parts.packer->TakeRefreshes();
    addCastRefreshes(owners, stateByName, result);
    for (runtime::StateRefresh &refresh : ofPackedWeights) {
      if (absl::StatusOr<runtime::InstructionPlan> plan = parts.planned(refresh.instruction); !plan.ok())
        return plan.status();
      result.refreshes.push_back(std::move(refresh));
    }
    return absl::OkStatus();
  }

  void plan() {
    result.arena_bytes = step.plan();
    // State is rebuilt before the step begins, one entry after the other.
    for (const runtime::StateRefresh &refresh : result.refreshes)
      if (size_t bytes = refresh.instruction.workspace_bytes)
        result.arena_bytes = std::max(result.arena_bytes, runtime::AlignedBuffer::Padded(bytes));
  }
};

/// "f32, f16 or i8": every type that a Program holds.
std::string elementTypeNames() {
  std::string names;
  for (size_t i = 0, last = static_cast<size_t>(kLastProgramDType); i <= last; ++i)
    absl::StrAppend(&names, names.empty() ? "" : i == last ? " or " : ", ", std::string(kDTypes[i].name));
  return names;
}

/// Errors: an argument or a value of the body that no Program can hold.
absl::Status checkTypes(func::FuncOp function) {
  auto isStorable = [](Type t) {
    if (!isKnownTensor(t))
      return false;
    ArrayRef<int64_t> shape = cast<RankedTensorType>(t).getShape();
    return !llvm::is_contained(shape, 0) && !isTooLarge(shape);
  };
  auto refuse = [&](StringRef what, Type t) {
    return absl::InvalidArgumentError(absl::StrCat("@", function.getSymName().str(), ": ", what.str(), " is ",
                                                   typeText(t),
                                                   "; a Program holds tensors of a static shape, of at least one and "
                                                   "at most 2^47 elements, of ",
                                                   elementTypeNames()));
  };
  for (BlockArgument argument : function.getArguments())
    if (!isStorable(argument.getType()))
      return refuse(("argument " + llvm::Twine(argument.getArgNumber())).str(), argument.getType());
  for (Operation &op : function.getBody().front())
    for (OpResult value : op.getResults())
      if (!isStorable(value.getType()))
        return refuse(("a result of " + op.getName().getStringRef()).str(), value.getType());
  return absl::OkStatus();
}

/// Errors: an operation of another dialect, such as func.call. Programs hold those of mpc alone.
absl::Status checkDialects(func::FuncOp function) {
  for (Operation &op : function.getBody().front().without_terminator())
    if (!isa_and_nonnull<MpcDialect>(op.getDialect()))
      return absl::InvalidArgumentError(absl::StrCat(
          "@", function.getSymName().str(), ": ", op.getName().getStringRef().str(),
          " is not lowered: ", isa<func::CallOp>(op) ? "inline it first" : "a Program holds operations of mpc"));
  return absl::OkStatus();
}

/// Errors: memory that no address space has.
absl::Status checkSizes(func::FuncOp function, const runtime::Program &program) {
  auto check = [&](const char *what, size_t bytes) {
    if (bytes <= runtime::kMostProgramBytes)
      return absl::OkStatus();
    return absl::ResourceExhaustedError(absl::StrCat("@", function.getSymName().str(), " needs ", bytes, " bytes for ",
                                                     what, "; a Program has at most 2^48 bytes (256 TiB) for it"));
  };
  for (const runtime::Value &value : program.values)
    if (absl::Status status = check("one value", value.spec.bytes()); !status.ok())
      return status;
  if (absl::Status status = check("constants", program.constant_bytes()); !status.ok())
    return status;
  return check("temporaries", program.arena_bytes);
}

} // namespace

absl::StatusOr<runtime::Program> lowerToProgram(func::FuncOp function, const runtime::Device &target,
                                                const runtime::PlanOptions &options, codegen::GeneratedCode code,
                                                std::vector<std::string> *remarks) {
  if (isSequence(function))
    return absl::InvalidArgumentError(
        absl::StrCat("@", function.getSymName().str(), " is a sequence; a step that calls it becomes a Program"));
  for (func::FuncOp each : withCalled(function)) {
    if (!each.getBody().hasOneBlock())
      return absl::InvalidArgumentError(
          absl::StrCat("@", each.getSymName().str(), " must be one block to become a Program"));
    if (absl::Status status = checkTypes(each); !status.ok())
      return status;
    if (absl::Status status = checkDialects(each); !status.ok())
      return status;
  }
  ProgramLowering run(function, target, options, std::move(code));
  absl::StatusOr<runtime::Program> result = run.run();
  if (!result.ok())
    return result;
  if (absl::Status status = checkSizes(function, *result); !status.ok())
    return status;
  if (remarks)
    remarks->insert(remarks->end(), run.remarks().begin(), run.remarks().end());
  if (absl::Status written = target.EndPlanning(options); !written.ok())
    return written;
  return result;
}

} // namespace mpc::compiler
