#include "compiler/lowering/function_lowering.h"

#include "absl/strings/str_cat.h"
#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/fusion_plan.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/lowering/arena_plan.h"
#include "compiler/lowering/fusion_instruction.h"

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

FunctionLowering::FunctionLowering(func::FuncOp function, FunctionLowering &caller, std::int64_t count,
                                   Phase phaseOfCall)
    : function(function), parts(caller.parts), program(caller.program), sequenceIndex(program.sequences.size()),
      depth(caller.depth + 1), runs(caller.runs * count), phaseOfCall(phaseOfCall), signature(function),
      storage(function, &parts.target), phases(function) {
  parts.allRuns += runs;
  program.sequences.push_back({function.getSymName().str(), {}, {}});
}

runtime::ValueId FunctionLowering::addValue(runtime::Value record) {
  program.values.push_back(std::move(record));
  return static_cast<runtime::ValueId>(program.values.size() - 1);
}

runtime::ValueId FunctionLowering::valueId(Value v) {
  if (auto it = ids.find(v); it != ids.end())
    return it->second;
  Value root = storage.root(v);
  runtime::Value record;
  if (root != v && (isa<BlockArgument>(root) || root.getDefiningOp<ConstantOp>()))
    record = program.values[valueId(root)];
  record.spec = toTensorSpec(cast<RankedTensorType>(v.getType()));
  bool inArena = record.storage == runtime::Storage::kTemporary || record.storage == runtime::Storage::kInput;
  runtime::ValueId id = addValue(std::move(record));
  ids[v] = id;
  if (inArena)
    arenaValues[root].push_back(id);
  return id;
}

// Generated code would do without a kernel.
static std::string whyNoRegion(Operation *op) {
  if (!isa<FusibleOpInterface>(op))
    return "";
  auto plan = codegen::FusionPlan::create(ArrayRef(op));
  return plan ? "" : absl::StrCat("; a region cannot hold it: ", llvm::toString(plan.takeError()));
}

absl::Status FunctionLowering::run() {
  for (ConstantOp op : function.getOps<ConstantOp>()) {
    runtime::Value record;
    record.spec = toTensorSpec(cast<RankedTensorType>(op.getType()));
    record.storage = runtime::Storage::kConstant;
    record.offset = parts.constants.lookup(op);
    ids[op.getOutput()] = addValue(std::move(record));
  }
  for (Operation *op : storage.getInstructions()) {
    size_t first = instructionCount();
    if (absl::Status status = addInstruction(op); !status.ok())
      return status;
    assert(instructionCount() > first && "every operation has an instruction");
    instructionRanges.push_back({first, instructionCount() - 1});
    for (runtime::Instruction &instruction : llvm::drop_begin(sequence().instructions, first))
      instruction.phase = phaseOfCall.value_or(phases.phaseOf(op));
  }
  return absl::OkStatus();
}

void FunctionLowering::addCopies() {
  assert(instructionRanges.size() == storage.getInstructions().size() && "copies come after all instructions");
  Operation *terminator = function.getBody().front().getTerminator();
  for (const StorageAssignment::Copy &copy : storage.getCopies())
    sequence().copies.push_back({keptId(terminator->getOperand(copy.result)), *oldValue(copy.result), copy.reason});
}

absl::Status FunctionLowering::addInstruction(Operation *op) {
  if (auto fusion = dyn_cast<FusionOp>(op))
    return addRegion(fusion);
  if (auto repeat = dyn_cast<RepeatOp>(op))
    return addRepeat(repeat);
  // A Program runs in one process and in order: what it waits for is done.
  if (isWait(op))
    return absl::OkStatus();
  // Kernels are made from the shapes of what they write.
  if (op->getNumResults() > 0 && op->use_empty() && isMemoryEffectFree(op))
    return absl::InvalidArgumentError(absl::StrCat(op->getName().getStringRef().str(),
                                                   ": none of its results is read; dead operations are removed "
                                                   "before lowering"));
  runtime::Instruction instruction = loneInstruction(op, [&](Value v) { return valueId(v); });
  instruction.scope = pathOf(op).str();
  absl::StatusOr<runtime::InstructionPlan> plan = parts.planned(instruction);
  if (!plan.ok())
    return absl::Status(plan.status().code(), absl::StrCat(plan.status().message(), whyNoRegion(op)));
  if (plan->packing)
    if (absl::Status status = addPacking(*plan->packing, instruction); !status.ok())
      return status;
  if (IntegerAttr group = dialectOf(op).getFlatGroupAttrHelper().getAttr(op))
    flatGroups[instructionCount()] = group.getInt();
  append(std::move(instruction));
  return absl::OkStatus();
}

absl::Status FunctionLowering::addRegion(FusionOp fusion) {
  auto call = parts.code.calls.find(fusion);
  if (call == parts.code.calls.end())
    return absl::InvalidArgumentError(
        absl::StrCat("@", function.getSymName().str(), ": no code was generated for an mpc.fusion"));
  runtime::Instruction instruction = fusionInstruction(fusion, call->second, storage.aliases(fusion));
  for (Value operand : fusion.getInputs())
    instruction.inputs.push_back(valueId(operand));
  // The code stores what the region yields, whether or not something reads it.
  for (Value output : fusion.getOutputs())
    instruction.outputs.push_back(valueId(output));
  append(std::move(instruction));
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

absl::Status FunctionLowering::addRepeat(RepeatOp repeat) {
  if (absl::Status status = checkLimits(repeat); !status.ok())
    return status;
  func::FuncOp callee = repeat.getFunction();
  auto count = static_cast<std::int64_t>(repeat.getCount());
  runtime::Instruction instruction;
  instruction.kernel = runtime::kRepeat;
  instruction.attributes.Set(runtime::kRepeatCount, count);
  instruction.scope = pathOf(repeat).str();
  instruction.sequence = static_cast<std::int32_t>(program.sequences.size());
  auto body = std::make_unique<FunctionLowering>(callee, *this, count, phaseOfCall.value_or(phases.phaseOf(repeat)));
  SmallVector<Value> arguments(repeat.getInputs());
  for (Value operand : repeat.getInputs())
    instruction.inputs.push_back(valueId(operand));
  // The sequence writes what it returns, whether or not something reads it.
  for (auto [index, output] : llvm::enumerate(repeat.getOutputs())) {
    instruction.outputs.push_back(valueId(output));
    arguments[index] = output;
  }
  for (auto [argument, given] : llvm::zip_equal(callee.getArguments(), arguments))
    body->bind(argument, valueId(given));
  if (absl::Status status = body->run(); !status.ok())
    return status;
  body->addCopies();
  instruction.workspace_bytes = body->plan();
  // Views of arguments lie where the arguments do.
  for (auto [argument, given] : llvm::zip_equal(callee.getArguments(), arguments))
    if (auto views = body->arenaValues.find(argument); views != body->arenaValues.end())
      llvm::append_range(arenaValues[storage.root(given)], views->second);
  called.push_back({instructionCount(), std::move(body)});
  append(std::move(instruction));
  return absl::OkStatus();
}

/// Makes \p instruction read its weight packed, and adds what packs it.
absl::Status FunctionLowering::addPacking(const WeightPacking &packing, runtime::Instruction &instruction) {
  std::optional<runtime::Instruction> pack = parts.packer->Pack(packing, instruction);
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
  return argument ? std::optional(ids.lookup(function.getArgument(*argument))) : std::nullopt;
}

/// Whether \p argument may be written over while the function runs.
bool FunctionLowering::isOldValue(BlockArgument argument) {
  return isSequence(function) ? signature.resultOf(argument.getArgNumber()).has_value()
                              : program.values[ids.lookup(argument)].storage == runtime::Storage::kState;
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
  instruction.outputs = {addValue(std::move(copy))};
  pinnedValues.push_back(instruction.outputs[0]);
  prologue.push_back(std::move(instruction));
  return pinnedValues.back();
}

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
  for (auto &[root, values] : arenaValues) {
    if (!placesArguments && isa<BlockArgument>(root))
      continue;
    auto [first, last] = storage.life(root);
    places.push_back({values, instructionsOf(first).first, instructionsOf(last).second});
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
  for (CalledFunction &each : called)
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
  for (CalledFunction &each : called)
    each.callee->moveBy(offset);
}

} // namespace mpc::compiler
