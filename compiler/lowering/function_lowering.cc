#include "compiler/lowering/function_lowering.h"

#include "absl/strings/str_cat.h"
#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/region_plan.h"
#include "compiler/lowering/arena_plan.h"
#include "compiler/lowering/region_instruction.h"

#include <utility>

using namespace mlir;

namespace mpc::compiler {

absl::StatusOr<runtime::InstructionPlan> ProgramParts::planned(runtime::Instruction &Instruction) {
  absl::StatusOr<runtime::InstructionPlan> Plan = Target.Plan(Program, Instruction, Options);
  if (!Plan.ok())
    return absl::Status(Plan.status().code(), absl::StrCat(Instruction.scope, Instruction.scope.empty() ? "" : ": ",
                                                           "mpc.", Instruction.kernel, ": ", Plan.status().message()));
  Instruction.workspace_bytes = Plan->workspace_bytes;
  if (!Plan->choice.first.empty() && !llvm::is_contained(Program.choices, Plan->choice)) {
    if (!Plan->times.empty())
      Remarks.push_back(absl::StrCat("kernels timed for ", Plan->choice.first, ": ", Plan->times));
    Program.choices.push_back(std::move(Plan->choice));
  }
  return Plan;
}

FunctionLowering::FunctionLowering(func::FuncOp Function, FunctionLowering &Caller, std::int64_t Count,
                                   Phase PhaseOfCall)
    : Function(Function), Parts(Caller.Parts), Program(Caller.Program), SequenceIndex(Program.sequences.size()),
      Depth(Caller.Depth + 1), Runs(Caller.Runs * Count), PhaseOfCall(PhaseOfCall), Signature(Function),
      Storage(Function, &Parts.Target), Phases(Function) {
  Parts.AllRuns += Runs;
  Program.sequences.push_back({Function.getSymName().str(), {}, {}});
}

runtime::ValueId FunctionLowering::addValue(runtime::Value Record) {
  Program.values.push_back(std::move(Record));
  return static_cast<runtime::ValueId>(Program.values.size() - 1);
}

runtime::ValueId FunctionLowering::valueId(Value V) {
  if (auto It = Ids.find(V); It != Ids.end())
    return It->second;
  Value Root = Storage.root(V);
  runtime::Value Record;
  if (Root != V && (isa<BlockArgument>(Root) || Root.getDefiningOp<ConstantOp>()))
    Record = Program.values[valueId(Root)];
  Record.spec = toTensorSpec(cast<RankedTensorType>(V.getType()));
  bool InArena = Record.storage == runtime::Storage::kTemporary || Record.storage == runtime::Storage::kInput;
  runtime::ValueId Id = addValue(std::move(Record));
  Ids[V] = Id;
  if (InArena)
    ArenaValues[Root].push_back(Id);
  return Id;
}

// Generated code would do without a kernel.
static std::string whyNoRegion(Operation *Op) {
  if (!isa<FusibleOpInterface>(Op))
    return "";
  auto Plan = codegen::RegionPlan::of(ArrayRef(Op));
  return Plan ? "" : absl::StrCat("; a region cannot hold it: ", llvm::toString(Plan.takeError()));
}

absl::Status FunctionLowering::run() {
  for (ConstantOp Op : Function.getOps<ConstantOp>()) {
    runtime::Value Record;
    Record.spec = toTensorSpec(cast<RankedTensorType>(Op.getType()));
    Record.storage = runtime::Storage::kConstant;
    Record.offset = Parts.Constants.lookup(Op);
    Ids[Op.getOutput()] = addValue(std::move(Record));
  }
  for (Operation *Op : Storage.instructions()) {
    size_t First = instructionCount();
    if (absl::Status Status = addInstruction(Op); !Status.ok())
      return Status;
    InstructionsOf.push_back({First, instructionCount() - 1});
    for (runtime::Instruction &Instruction : llvm::drop_begin(sequence().instructions, First))
      Instruction.phase = PhaseOfCall.value_or(Phases.of(Op));
  }
  return absl::OkStatus();
}

void FunctionLowering::addCopies() {
  Operation *Return = Function.getBody().front().getTerminator();
  for (const StorageAssignment::Copy &Copy : Storage.copies())
    sequence().copies.push_back({keptId(Return->getOperand(Copy.Result)), *oldValue(Copy.Result), Copy.Reason});
}

absl::Status FunctionLowering::addInstruction(Operation *Op) {
  if (auto Fusion = dyn_cast<FusionOp>(Op))
    return addRegion(Fusion);
  if (auto Repeat = dyn_cast<RepeatOp>(Op))
    return addRepeat(Repeat);
  // Kernels are made from the shapes of what they write.
  if (Op->getNumResults() > 0 && Op->use_empty() && isMemoryEffectFree(Op))
    return absl::InvalidArgumentError(absl::StrCat(Op->getName().getStringRef().str(),
                                                   ": none of its results is read; dead operations are removed "
                                                   "before lowering"));
  runtime::Instruction Instruction = loneInstruction(Op, [&](Value V) { return valueId(V); });
  Instruction.scope = pathOf(Op).str();
  absl::StatusOr<runtime::InstructionPlan> Plan = Parts.planned(Instruction);
  if (!Plan.ok())
    return absl::Status(Plan.status().code(), absl::StrCat(Plan.status().message(), whyNoRegion(Op)));
  if (Plan->packing)
    if (absl::Status Status = addPacking(*Plan->packing, Instruction); !Status.ok())
      return Status;
  if (IntegerAttr Group = dialectOf(Op).getFlatGroupAttrHelper().getAttr(Op))
    FlatGroups[instructionCount()] = Group.getInt();
  append(std::move(Instruction));
  return absl::OkStatus();
}

absl::Status FunctionLowering::addRegion(FusionOp Fusion) {
  auto Call = Parts.Code.calls.find(Fusion);
  if (Call == Parts.Code.calls.end())
    return absl::InvalidArgumentError(
        absl::StrCat("@", Function.getSymName().str(), ": no code was generated for an mpc.fusion"));
  runtime::Instruction Instruction = regionInstruction(Fusion, Call->second, Storage.aliases(Fusion));
  for (Value Operand : Fusion.getInputs())
    Instruction.inputs.push_back(valueId(Operand));
  // The code stores what the region yields, whether or not something reads it.
  for (Value Output : Fusion.getOutputs())
    Instruction.outputs.push_back(valueId(Output));
  append(std::move(Instruction));
  return absl::OkStatus();
}

/// Errors: what \p Repeat calls would be more than a Program holds.
absl::Status FunctionLowering::checkLimits(RepeatOp Repeat) const {
  auto Refuse = [&](llvm::StringRef What, std::int64_t Most) {
    return absl::InvalidArgumentError(absl::StrCat("the call of @", Repeat.getCallee().str(), " makes ", What.str(),
                                                   " than ", Most, ", the most that a Program has"));
  };
  if (Program.sequences.size() >= runtime::kMostSequences)
    return Refuse("more sequences", runtime::kMostSequences);
  if (Depth >= runtime::kDeepestSequence)
    return Refuse("sequences lie deeper", runtime::kDeepestSequence);
  if (static_cast<std::int64_t>(Repeat.getCount()) > (runtime::kMostRuns - Parts.AllRuns) / Runs)
    return Refuse("sequences run more often in a step", runtime::kMostRuns);
  return absl::OkStatus();
}

absl::Status FunctionLowering::addRepeat(RepeatOp Repeat) {
  if (absl::Status Status = checkLimits(Repeat); !Status.ok())
    return Status;
  func::FuncOp Callee = Repeat.getFunction();
  auto Count = static_cast<std::int64_t>(Repeat.getCount());
  runtime::Instruction Instruction;
  Instruction.kernel = runtime::kRepeat;
  Instruction.attributes.Set(runtime::kRepeatCount, Count);
  Instruction.scope = pathOf(Repeat).str();
  Instruction.sequence = static_cast<std::int32_t>(Program.sequences.size());
  auto Body = std::make_unique<FunctionLowering>(Callee, *this, Count, PhaseOfCall.value_or(Phases.of(Repeat)));
  SmallVector<Value> Arguments(Repeat.getInputs());
  for (Value Operand : Repeat.getInputs())
    Instruction.inputs.push_back(valueId(Operand));
  // The sequence writes what it returns, whether or not something reads it.
  for (auto [Index, Output] : llvm::enumerate(Repeat.getOutputs())) {
    Instruction.outputs.push_back(valueId(Output));
    Arguments[Index] = Output;
  }
  for (auto [Argument, Given] : llvm::zip_equal(Callee.getArguments(), Arguments))
    Body->bind(Argument, valueId(Given));
  if (absl::Status Status = Body->run(); !Status.ok())
    return Status;
  Body->addCopies();
  Instruction.workspace_bytes = Body->plan();
  // Views of arguments lie where the arguments do.
  for (auto [Argument, Given] : llvm::zip_equal(Callee.getArguments(), Arguments))
    if (auto Views = Body->ArenaValues.find(Argument); Views != Body->ArenaValues.end())
      llvm::append_range(ArenaValues[Storage.root(Given)], Views->second);
  Called.push_back({instructionCount(), std::move(Body)});
  append(std::move(Instruction));
  return absl::OkStatus();
}

/// Makes \p Instruction read its weight packed, and adds what packs it.
absl::Status FunctionLowering::addPacking(const WeightPacking &Packing, runtime::Instruction &Instruction) {
  std::optional<runtime::Instruction> Pack = Parts.Packer->Pack(Packing, Instruction);
  if (absl::StatusOr<runtime::InstructionPlan> Plan = Parts.planned(Instruction); !Plan.ok() || !Pack)
    return Plan.status();
  if (absl::StatusOr<runtime::InstructionPlan> Plan = Parts.planned(*Pack); !Plan.ok())
    return Plan.status();
  PackedWeights.push_back({Pack->outputs[0], instructionCount()});
  append(*std::move(Pack));
  return absl::OkStatus();
}

std::optional<runtime::ValueId> FunctionLowering::oldValue(unsigned Result) {
  std::optional<unsigned> Argument = Signature.argumentOf(Result);
  return Argument ? std::optional(Ids.lookup(Function.getArgument(*Argument))) : std::nullopt;
}

/// Whether \p Argument may be written over while the function runs.
bool FunctionLowering::isOldValue(BlockArgument Argument) {
  return isSequence(Function) ? Signature.resultOf(Argument.getArgNumber()).has_value()
                              : Program.values[Ids.lookup(Argument)].storage == runtime::Storage::kState;
}

runtime::ValueId FunctionLowering::keptId(Value Operand) {
  runtime::ValueId Id = valueId(Operand);
  auto Argument = dyn_cast<BlockArgument>(behindViews(Operand));
  if (!Argument || !isOldValue(Argument))
    return Id;
  runtime::Value Copy;
  Copy.spec = Program.values[Id].spec;
  runtime::Instruction Instruction;
  Instruction.kernel = "reshape";
  Instruction.phase = PhaseOfCall.value_or(Phase::kForward);
  Instruction.attributes.Set("shape", std::vector<std::int64_t>(Copy.spec.shape));
  Instruction.inputs = {Id};
  Instruction.outputs = {addValue(std::move(Copy))};
  PinnedValues.push_back(Instruction.outputs[0]);
  Prologue.push_back(std::move(Instruction));
  return PinnedValues.back();
}

/// The instructions of the operation at \p Position, or what comes behind the last one.
std::pair<size_t, size_t> FunctionLowering::instructionsOf(size_t Position) const {
  if (Position < InstructionsOf.size())
    return InstructionsOf[Position];
  return {instructionCount(), instructionCount()};
}

size_t FunctionLowering::plan() {
  SmallVector<ArenaPlace> Places;
  bool PlacesArguments = !isSequence(Function);
  for (auto &[Root, Values] : ArenaValues) {
    if (!PlacesArguments && isa<BlockArgument>(Root))
      continue;
    auto [First, Last] = Storage.life(Root);
    Places.push_back({Values, instructionsOf(First).first, instructionsOf(Last).second});
  }
  for (auto [Id, Pack] : PackedWeights)
    Places.push_back({{Id}, Pack, Pack + 1});
  for (runtime::ValueId Id : PinnedValues)
    Places.push_back({{Id}, 0, instructionCount()});
  for (const ArenaPlace &Place : Places)
    llvm::append_range(Placed, Place.values);
  auto FlatGroup = [&](size_t Instruction) {
    auto Known = FlatGroups.find(Instruction);
    return Known == FlatGroups.end() ? -1 : Known->second;
  };
  size_t Bytes = planArena(Places, SequenceIndex, FlatGroup, Parts.Options.flat_share, Program);
  for (CalledFunction &Each : Called)
    Each.Callee->moveBy(sequence().instructions[Each.Instruction].workspace_offset);
  addPrologue();
  return Bytes;
}

void FunctionLowering::addPrologue() {
  runtime::Sequence &Own = sequence();
  Own.instructions.insert(Own.instructions.begin(), Prologue.begin(), Prologue.end());
  if (SequenceIndex != 0)
    return;
  for (runtime::FlatUpdate &Update : Program.flat_updates)
    Update.first += Prologue.size();
}

void FunctionLowering::moveBy(size_t Offset) {
  for (runtime::ValueId Id : Placed)
    Program.values[Id].offset += Offset;
  for (runtime::Instruction &Instruction : sequence().instructions)
    if (Instruction.workspace_bytes > 0)
      Instruction.workspace_offset += Offset;
  for (CalledFunction &Each : Called)
    Each.Callee->moveBy(Offset);
}

} // namespace mpc::compiler
