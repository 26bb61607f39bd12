#include "compiler/lowering/function_lowering.h"

#include "absl/strings/str_cat.h"
#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/fusion_plan.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/lowering/arena_plan.h"
#include "compiler/lowering/fusion_instruction.h"
#include "runtime/step_groups.h"

#include <cassert>
#include <utility>

using namespace mlir;

namespace mpc::compiler {

absl::StatusOr<runtime::InstructionPlan> ProgramParts::planned(runtime::Instruction &instruction) {
  absl::StatusOr<runtime::InstructionPlan> plan = target.Plan(program, instruction, options);
  if (!plan.ok())
    return absl::Status(plan.status().code(), absl::StrCat(instruction.scope, instruction.scope.empty() ? "" : ": ",
                                                           "mpc.", instruction.kernel, ": ", plan.status().message()));
  instruction.workspace_bytes = plan->workspace_bytes;
  if (!plan->choice.first.empty() && !llvm::is_contained(program.choices, plan->choice)) {
    if (!plan->times.empty())
      remarks.push_back(absl::StrCat("kernels timed for ", plan->choice.first, ": ", plan->times));
    program.choices.push_back(std::move(plan->choice));
  }
  return plan;
}

FunctionLowering::FunctionLowering(func::FuncOp function, ProgramParts &parts)
    : function(function), parts(parts), program(parts.program), signature(function), storage(function, &parts.target),
      phases(function), values(storage, program) {}

FunctionLowering::FunctionLowering(func::FuncOp function, FunctionLowering &caller, std::int64_t count,
                                   Phase phaseOfCall)
    : function(function), parts(caller.parts), program(caller.program), sequenceIndex(program.sequences.size()),
      depth(caller.depth + 1), runs(caller.runs * count), phaseOfCall(phaseOfCall), signature(function),
      storage(function, &parts.target), phases(function), values(storage, program) {
  parts.allRuns += runs;
  program.sequences.push_back({function.getSymName().str(), {}, {}});
}

//===-- Declare --------------------------------------------------------------------------------------------------===//

/// What the arguments of the sequence that \p repeat calls are here. Where it writes an argument, that is the result.
static SmallVector<Value> argumentsOf(RepeatOp repeat) {
  SmallVector<Value> arguments(repeat.getInputs());
  for (auto [index, output] : llvm::enumerate(repeat.getOutputs()))
    arguments[index] = output;
  return arguments;
}

absl::Status FunctionLowering::declare() {
  for (ConstantOp op : function.getOps<ConstantOp>()) {
    runtime::Value record;
    record.spec = toTensorSpec(cast<RankedTensorType>(op.getType()));
    record.storage = runtime::Storage::kConstant;
    record.offset = parts.constants.lookup(op);
    values.declare(op.getOutput(), std::move(record));
  }
  for (Operation &op : function.getBody().front())
    for (Value result : op.getResults())
      values.declare(result);
  for (Operation *op : storage.getInstructions())
    if (absl::Status status = declareOperation(op); !status.ok())
      return status;
  return absl::OkStatus();
}

absl::Status FunctionLowering::declareOperation(Operation *op) {
  if (auto repeat = dyn_cast<RepeatOp>(op))
    return declareSequence(repeat);
  if (isa<FusionOp>(op))
    return parts.code.calls.contains(op)
               ? absl::OkStatus()
               : absl::InvalidArgumentError(
                     absl::StrCat("@", function.getSymName().str(), ": no code was generated for an mpc.fusion"));
  // Kernels are made from the shapes of what they write.
  if (!isWait(op) && op->getNumResults() > 0 && op->use_empty() && isMemoryEffectFree(op))
    return absl::InvalidArgumentError(absl::StrCat(op->getName().getStringRef().str(),
                                                   ": none of its results is read; dead operations are removed "
                                                   "before lowering"));
  return absl::OkStatus();
}

/// Errors: what \p repeat calls would be more than a Program holds.
absl::Status FunctionLowering::checkLimits(RepeatOp repeat) const {
  auto refuse = [&](llvm::StringRef what, std::int64_t most) {
    return absl::InvalidArgumentError(absl::StrCat("the call of @", repeat.getCallee().str(), " makes ", what.str(),
                                                   " than ", most, ", the most that a Program has"));
  };
  assert(runs > 0 && parts.allRuns <= runtime::kMostRuns && "the calls so far keep to the limits");
  if (program.sequences.size() >= runtime::kMostSequences)
    return refuse("more sequences", runtime::kMostSequences);
  if (depth >= runtime::kDeepestSequence)
    return refuse("sequences lie deeper", runtime::kDeepestSequence);
  if (static_cast<std::int64_t>(repeat.getCount()) > (runtime::kMostRuns - parts.allRuns) / runs)
    return refuse("sequences run more often in a step", runtime::kMostRuns);
  return absl::OkStatus();
}

absl::Status FunctionLowering::declareSequence(RepeatOp repeat) {
  if (absl::Status status = checkLimits(repeat); !status.ok())
    return status;
  auto count = static_cast<std::int64_t>(repeat.getCount());
  auto callee = std::make_unique<FunctionLowering>(repeat.getFunction(), *this, count, phaseOf(repeat));
  for (auto [argument, given] : llvm::zip_equal(callee->function.getArguments(), argumentsOf(repeat)))
    callee->declareArgument(argument, values.recordOf(given));
  absl::Status status = callee->declare();
  called[repeat].callee = std::move(callee);
  return status;
}

//===-- Define ---------------------------------------------------------------------------------------------------===//

// Generated code would do without a kernel.
static std::string whyNoRegion(Operation *op) {
  if (!isa<FusibleOpInterface>(op))
    return "";
  auto plan = codegen::FusionPlan::create(ArrayRef(op));
  return plan ? "" : absl::StrCat("; a region cannot hold it: ", llvm::toString(plan.takeError()));
}

absl::Status FunctionLowering::define() {
  for (ConstantOp op : function.getOps<ConstantOp>())
    valueId(op.getOutput());
  for (Operation *op : storage.getInstructions()) {
    size_t first = instructionCount();
    if (absl::Status status = defineOperation(op); !status.ok())
      return status;
    assert((isWait(op) || instructionCount() > first) && "every operation but a wait has an instruction");
    instructionRanges.push_back({first, instructionCount() - 1});
    for (runtime::Instruction &instruction : llvm::drop_begin(sequence().instructions, first))
      instruction.phase = phaseOf(op);
  }
  return absl::OkStatus();
}

void FunctionLowering::defineCopies() {
  assert(instructionRanges.size() == storage.getInstructions().size() && "copies come after all instructions");
  Operation *terminator = function.getBody().front().getTerminator();
  for (const StorageAssignment::Copy &copy : storage.getCopies())
    sequence().copies.push_back({keptId(terminator->getOperand(copy.result)), *oldValue(copy.result), copy.reason});
}

absl::Status FunctionLowering::defineOperation(Operation *op) {
  if (auto fusion = dyn_cast<FusionOp>(op))
    return defineRegion(fusion);
  if (auto repeat = dyn_cast<RepeatOp>(op))
    return defineRepeat(repeat);
  // A Program runs in one process and in order: what it waits for is done.
  if (isWait(op))
    return absl::OkStatus();
  runtime::Instruction instruction = loneInstruction(op, [&](Value v) { return valueId(v); });
  instruction.scope = pathOf(op).str();
  if (IntegerAttr bucket = dialectOf(op).getBucketAttrHelper().getAttr(op))
    instruction.attributes.Set(runtime::kBucket, bucket.getInt());
  absl::StatusOr<runtime::InstructionPlan> plan = parts.planned(instruction);
  if (!plan.ok())
    return absl::Status(plan.status().code(), absl::StrCat(plan.status().message(), whyNoRegion(op)));
  if (plan->packing)
    if (absl::Status status = definePacking(*plan->packing, instruction); !status.ok())
      return status;
  if (IntegerAttr group = dialectOf(op).getFlatGroupAttrHelper().getAttr(op))
    flatGroups[instructionCount()] = group.getInt();
  append(std::move(instruction));
  return absl::OkStatus();
}

absl::Status FunctionLowering::defineRegion(FusionOp fusion) {
  runtime::Instruction instruction = fusionInstruction(fusion, parts.code.calls.at(fusion), storage.aliases(fusion));
  for (Value operand : fusion.getInputs())
    instruction.inputs.push_back(valueId(operand));
  // The code stores what the region yields, whether or not something reads it.
  for (Value output : fusion.getOutputs())
    instruction.outputs.push_back(valueId(output));
  append(std::move(instruction));
  return absl::OkStatus();
}

absl::Status FunctionLowering::defineRepeat(RepeatOp repeat) {
  auto &[body, position] = called[repeat];
  position = instructionCount();
  runtime::Instruction instruction;
  instruction.kernel = runtime::kRepeat;
  instruction.attributes.Set(runtime::kRepeatCount, static_cast<std::int64_t>(repeat.getCount()));
  instruction.scope = pathOf(repeat).str();
  instruction.sequence = static_cast<std::int32_t>(body->sequenceIndex);
  for (Value operand : repeat.getInputs())
    instruction.inputs.push_back(valueId(operand));
  // The sequence writes what it returns, whether or not something reads it.
  for (Value output : repeat.getOutputs())
    instruction.outputs.push_back(valueId(output));
  auto arguments = llvm::zip_equal(body->function.getArguments(), argumentsOf(repeat));
  for (auto [argument, given] : arguments)
    body->values.bind(argument, valueId(given));
  if (absl::Status status = body->define(); !status.ok())
    return status;
  body->defineCopies();
  instruction.workspace_bytes = body->plan();
  // Views of arguments lie where the arguments do.
  for (auto [argument, given] : arguments)
    if (auto views = body->values.inArena().find(argument); views != body->values.inArena().end())
      values.addViews(given, views->second);
  append(std::move(instruction));
  return absl::OkStatus();
}

/// Makes \p instruction read its weight packed, and adds what packs it.
absl::Status FunctionLowering::definePacking(const WeightPacking &packing, runtime::Instruction &instruction) {
  std::optional<size_t> position = sequenceIndex == 0 ? std::optional(instructionCount()) : std::nullopt;
  std::optional<runtime::Instruction> pack = parts.packer->Pack(packing, position, instruction);
  if (absl::StatusOr<runtime::InstructionPlan> plan = parts.planned(instruction); !plan.ok() || !pack)
    return plan.status();
  if (absl::StatusOr<runtime::InstructionPlan> plan = parts.planned(*pack); !plan.ok())
    return plan.status();
  packedWeights.push_back({pack->outputs[0], instructionCount()});
  append(*std::move(pack));
  return absl::OkStatus();
}

std::optional<runtime::ValueId> FunctionLowering::oldValue(unsigned result) {
  std::optional<unsigned> argument = signature.argumentOf(result);
  return argument ? std::optional(valueId(function.getArgument(*argument))) : std::nullopt;
}

/// Whether \p argument may be written over while the function runs.
bool FunctionLowering::isOldValue(BlockArgument argument) const {
  return isSequence(function) ? signature.resultOf(argument.getArgNumber()).has_value()
                              : values.recordOf(argument).storage == runtime::Storage::kState;
}

runtime::ValueId FunctionLowering::keptId(Value operand) {
  runtime::ValueId id = valueId(operand);
  auto argument = dyn_cast<BlockArgument>(behindViews(operand));
  if (!argument || !isOldValue(argument))
    return id;
  runtime::Value copy;
  copy.spec = program.values[id].spec;
  runtime::Instruction instruction;
  instruction.kernel = "reshape";
  instruction.phase = phaseOfCall.value_or(Phase::kForward);
  instruction.attributes.Set("shape", std::vector<std::int64_t>(copy.spec.shape));
  instruction.inputs = {id};
  instruction.outputs = {values.add(std::move(copy))};
  pinnedValues.push_back(instruction.outputs[0]);
  prologue.push_back(std::move(instruction));
  return pinnedValues.back();
}

//===-- Plan -----------------------------------------------------------------------------------------------------===//

/// The instructions of the operation at \p position, or what comes behind the last one.
std::pair<size_t, size_t> FunctionLowering::instructionsOf(size_t position) const {
  if (position < instructionRanges.size())
    return instructionRanges[position];
  return {instructionCount(), instructionCount()};
}

size_t FunctionLowering::plan() {
  assert(instructionRanges.size() == storage.getInstructions().size() && "all instructions exist before the plan");
  SmallVector<ArenaPlace> places;
  bool placesArguments = !isSequence(function);
  for (const auto &[root, ids] : values.inArena()) {
    if (!placesArguments && isa<BlockArgument>(root))
      continue;
    auto [first, last] = storage.life(root);
    places.push_back({ids, instructionsOf(first).first, instructionsOf(last).second});
  }
  for (auto [id, pack] : packedWeights)
    places.push_back({{id}, pack, pack + 1});
  for (runtime::ValueId id : pinnedValues)
    places.push_back({{id}, 0, instructionCount()});
  for (const ArenaPlace &place : places)
    llvm::append_range(placed, place.values);
  auto flatGroup = [&](size_t instruction) {
    auto known = flatGroups.find(instruction);
    return known == flatGroups.end() ? -1 : known->second;
  };
  size_t bytes = planArena(places, sequenceIndex, flatGroup, parts.options.flat_share, program);
  for (auto &[call, each] : called)
    each.callee->moveBy(sequence().instructions[each.instruction].workspace_offset);
  addPrologue();
  return bytes;
}

void FunctionLowering::addPrologue() {
  runtime::Sequence &own = sequence();
  own.instructions.insert(own.instructions.begin(), prologue.begin(), prologue.end());
  if (sequenceIndex != 0)
    return;
  for (runtime::FlatUpdate &update : program.flat_updates)
    update.first += prologue.size();
}

void FunctionLowering::moveBy(size_t offset) {
  for (runtime::ValueId id : placed)
    program.values[id].offset += offset;
  for (runtime::Instruction &instruction : sequence().instructions)
    if (instruction.workspace_bytes > 0)
      instruction.workspace_offset += offset;
  for (auto &[call, each] : called)
    each.callee->moveBy(offset);
}

} // namespace mpc::compiler
