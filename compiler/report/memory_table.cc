#include "compiler/report/memory_table.h"

#include "absl/strings/str_cat.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/report/function_facts.h"
#include "runtime/aligned_buffer.h"
#include "runtime/packed_weights.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <map>

using namespace mlir;

namespace mpc::compiler {

const char *StorageUseName(StorageUse Use) {
  switch (Use) {
  case StorageUse::kInput:
    return "inputs";
  case StorageUse::kForward:
    return "forward";
  case StorageUse::kBackward:
    return "backward";
  case StorageUse::kGradient:
    return "gradients";
  case StorageUse::kUpdate:
    return "update";
  case StorageUse::kWorkspace:
    return "workspaces";
  }
  return "";
}

std::int64_t MemoryTable::bytes(StorageUse Use) const {
  std::int64_t Sum = 0;
  for (const MemoryRow &Row : rows)
    if (Row.use == Use)
      Sum += Row.bytes;
  return Sum;
}

namespace {

/// The operation that computes a value, inside its region where it has one.
Operation *producerOf(OpResult Result) {
  auto Fusion = dyn_cast<FusionOp>(Result.getOwner());
  if (!Fusion)
    return Result.getOwner();
  Value Yielded = Fusion.getBody().front().getTerminator()->getOperand(Result.getResultNumber());
  Operation *Producer = behindViews(Yielded).getDefiningOp();
  return Producer ? Producer : Fusion.getOperation();
}

/// Whether an update of parameters reads a value, under one shape or another.
bool isParameterGradient(Value V) {
  return llvm::any_of(V.getUsers(), [](Operation *User) {
    if (auto View = dyn_cast<ViewLikeOpInterface>(User))
      return isParameterGradient(View.getViewDest());
    bool Updates = User->hasTrait<StateUpdate>() && !isa<BatchNormRunningUpdateOp>(User);
    return Updates || has<Property::ReadsParameterGradients>(User);
  });
}

/// Follows the storage in the arena from instruction to instruction.
class StorageLives {
public:
  StorageLives(const runtime::Program &Program, func::FuncOp Function) : Program(Program), Facts(Function) {
    for (Operation &Op : Function.getBody().front().without_terminator())
      if (!isViewOrConstant(&Op))
        Ops.push_back(&Op);
  }

  absl::StatusOr<MemoryTable> run() {
    if (absl::Status Matched = matchOps(); !Matched.ok())
      return Matched;
    for (const runtime::NamedValue &Input : Program.inputs)
      begin(Input.value, 0, {StorageUse::kInput, Input.name, "", typeOf(Input.value), 0, 0, 0});
    for (std::size_t Index = 0; Index < Program.step().instructions.size(); ++Index)
      visit(Index);
    for (const runtime::NamedValue &Output : Program.outputs)
      read(Output.value, Program.step().instructions.size() - 1);
    for (const runtime::ValueCopy &Copy : Program.step().copies)
      read(Copy.from, Program.step().instructions.size() - 1);
    return tabulate();
  }

private:
  const runtime::Program &Program;
  FunctionFacts Facts;
  SmallVector<Operation *> Ops;
  std::vector<Operation *> OpOfInstruction;
  std::vector<MemoryRow> Lives;
  std::vector<std::size_t> Offsets;                ///< the arena offset of each life
  std::map<std::size_t, std::size_t> LifeAtOffset; ///< the last one that began there

  bool inArena(runtime::ValueId Id) const {
    return Id != runtime::kNoValue && (Program.values[Id].storage == runtime::Storage::kTemporary ||
                                       Program.values[Id].storage == runtime::Storage::kInput);
  }

  std::string typeOf(runtime::ValueId Id) const { return Program.values[Id].spec.ToString(); }

  /// Null for instructions that lowering adds: copies of state before the first operation, packed weights.
  Operation *opOf(std::size_t Index) const { return OpOfInstruction[Index]; }

  absl::Status matchOps() {
    std::size_t Packs = llvm::count_if(Program.step().instructions, runtime::PacksWeight);
    if (Ops.size() + Packs > Program.step().instructions.size())
      return absl::InvalidArgumentError(absl::StrCat("program \"", Program.name, "\" has ",
                                                     Program.step().instructions.size() - Packs,
                                                     " instructions, its function ", Ops.size(), " operations"));
    OpOfInstruction.assign(Program.step().instructions.size() - Packs - Ops.size(), nullptr);
    const auto *Next = Ops.begin();
    for (const runtime::Instruction &Instruction :
         llvm::drop_begin(Program.step().instructions, OpOfInstruction.size()))
      OpOfInstruction.push_back(runtime::PacksWeight(Instruction) ? nullptr : *Next++);
    return absl::OkStatus();
  }

  void begin(runtime::ValueId Id, std::size_t Index, MemoryRow Row) {
    std::size_t Bytes = Program.values[Id].spec.bytes();
    if (Bytes > 0)
      begin(Program.values[Id].offset, Bytes, Index, std::move(Row));
  }

  void begin(std::size_t Offset, std::size_t Bytes, std::size_t Index, MemoryRow Row) {
    Row.bytes = static_cast<std::int64_t>(runtime::AlignedBuffer::Padded(Bytes));
    Row.first = Row.last = Index;
    LifeAtOffset[Offset] = Lives.size();
    Lives.push_back(std::move(Row));
    Offsets.push_back(Offset);
  }

  void read(runtime::ValueId Id, std::size_t Index) {
    if (!inArena(Id))
      return;
    if (auto Life = LifeAtOffset.find(Program.values[Id].offset); Life != LifeAtOffset.end())
      Lives[Life->second].last = Index;
  }

  StorageUse useOf(Value V, Operation *Producer) const {
    if (isParameterGradient(V) && cast<RankedTensorType>(V.getType()).getNumElements() > 1)
      return StorageUse::kGradient;
    if (Facts.isBackward(Producer))
      return StorageUse::kBackward;
    return Facts.isUpdate(Producer) ? StorageUse::kUpdate : StorageUse::kForward;
  }

  void visit(std::size_t Index) {
    const runtime::Instruction &Instruction = Program.step().instructions[Index];
    for (runtime::ValueId Id : Instruction.inputs)
      read(Id, Index);
    Operation *Op = opOf(Index);
    for (auto [Number, Id] : llvm::enumerate(Instruction.outputs)) {
      if (!inArena(Id))
        continue;
      if (!Op) {
        StorageUse Use = runtime::PacksWeight(Instruction) ? StorageUse::kWorkspace : StorageUse::kForward;
        begin(Id, Index, {Use, Instruction.kernel, Instruction.scope, typeOf(Id), 0, 0, 0});
        continue;
      }
      OpResult Result = Op->getResult(Number);
      Operation *Producer = producerOf(Result);
      begin(Id, Index, {useOf(Result, Producer), mnemonicOf(Producer), pathOf(Producer).str(), typeOf(Id), 0, 0, 0});
    }
    if (Instruction.workspace_bytes > 0)
      begin(Instruction.workspace_offset, Instruction.workspace_bytes, Index,
            {StorageUse::kWorkspace, Op ? mnemonicOf(Op) : Instruction.kernel, Instruction.scope, "", 0, 0, 0});
  }

  /// Lives at an instruction, each piece of storage once: what is written over an operand takes its place.
  std::vector<std::size_t> liveAt(std::size_t Index) const {
    std::map<std::size_t, std::size_t> ByOffset;
    for (std::size_t Life = 0; Life < Lives.size(); ++Life)
      if (Lives[Life].first <= Index && Index <= Lives[Life].last)
        ByOffset[Offsets[Life]] = Life;
    std::vector<std::size_t> Live;
    for (auto [Offset, Life] : ByOffset)
      Live.push_back(Life);
    return Live;
  }

  MemoryTable tabulate() const {
    MemoryTable Table;
    Table.instructions = Program.step().instructions.size();
    for (std::size_t Index = 0; Index < Table.instructions; ++Index) {
      std::int64_t Bytes = 0, Gradients = 0;
      for (std::size_t Life : liveAt(Index)) {
        Bytes += Lives[Life].bytes;
        Gradients += Lives[Life].use == StorageUse::kGradient ? Lives[Life].bytes : 0;
      }
      Table.activation_bytes = std::max(Table.activation_bytes, Bytes - Gradients);
      if (Bytes > Table.peak_bytes) {
        Table.peak_bytes = Bytes;
        Table.peak = Index;
      }
    }
    if (Table.instructions == 0)
      return Table;
    Operation *Peak = opOf(Table.peak);
    Table.peak_op = Peak ? mnemonicOf(Peak) : Program.step().instructions[Table.peak].kernel;
    Table.peak_path = Program.step().instructions[Table.peak].scope;
    for (std::size_t Life : liveAt(Table.peak))
      Table.rows.push_back(Lives[Life]);
    llvm::stable_sort(Table.rows, [](const MemoryRow &L, const MemoryRow &R) { return L.bytes > R.bytes; });
    return Table;
  }
};

} // namespace

absl::StatusOr<MemoryTable> TabulateMemory(const runtime::Program &Program, const Module &Target) {
  absl::StatusOr<func::FuncOp> Function = findFunction(Target, Program.name);
  if (!Function.ok())
    return Function.status();
  return StorageLives(Program, *Function).run();
}

std::vector<StateCopy> StateCopies(const runtime::Program &Program) {
  std::vector<StateCopy> Copies;
  for (const runtime::ValueCopy &Copy : Program.step().copies) {
    const runtime::StateBinding &State = Program.state[Program.values[Copy.to].index];
    Copies.push_back({State.name, static_cast<std::int64_t>(State.spec.bytes()), Copy.reason});
  }
  return Copies;
}

} // namespace mpc::compiler
