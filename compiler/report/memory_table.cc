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
#include <numeric>

using namespace mlir;

namespace mpc::compiler {

const char *StorageUseName(StorageUse use) {
  switch (use) {
  case StorageUse::Input:
    return "inputs";
  case StorageUse::Forward:
    return "forward";
  case StorageUse::Backward:
    return "backward";
  case StorageUse::Gradient:
    return "gradients";
  case StorageUse::Update:
    return "update";
  case StorageUse::Workspace:
    return "workspaces";
  }
  return "";
}

std::int64_t MemoryTable::bytes(StorageUse use) const {
  std::int64_t sum = 0;
  for (const MemoryRow &row : rows)
    if (row.use == use)
      sum += row.bytes;
  return sum;
}

namespace {

/// The operation that computes a value, inside its region where it has one.
Operation *producerOf(OpResult result) {
  auto fusion = dyn_cast<FusionOp>(result.getOwner());
  if (!fusion)
    return result.getOwner();
  Value yielded = fusion.getBody().front().getTerminator()->getOperand(result.getResultNumber());
  Operation *producer = behindViews(yielded).getDefiningOp();
  return producer ? producer : fusion.getOperation();
}

/// Whether an update of parameters reads a value, under one shape or another.
bool isParameterGradient(Value v) {
  return llvm::any_of(v.getUsers(), [](Operation *user) {
    if (auto view = dyn_cast<ViewLikeOpInterface>(user))
      return isParameterGradient(view.getViewDest());
    bool updates = user->hasTrait<StateUpdate>() && !isa<BatchNormRunningUpdateOp>(user);
    return updates || has<Property::ReadsParameterGradients>(user);
  });
}

/// Follows the storage in the arena from instruction to instruction.
class StorageLives {
public:
  StorageLives(const runtime::Program &program, func::FuncOp function) : program(program), facts(function) {
    for (Operation &op : function.getBody().front().without_terminator())
      if (!isViewOrConstant(&op))
        ops.push_back(&op);
  }

  absl::StatusOr<MemoryTable> run() {
    if (absl::Status matched = matchOps(); !matched.ok())
      return matched;
    for (const runtime::NamedValue &input : program.inputs)
      begin(input.value, 0, {StorageUse::Input, input.name, "", typeOf(input.value), 0, 0, 0});
    for (std::size_t index = 0; index < program.step().instructions.size(); ++index)
      visit(index);
    for (const runtime::NamedValue &output : program.outputs)
      read(output.value, program.step().instructions.size() - 1);
    for (const runtime::ValueCopy &copy : program.step().copies)
      read(copy.from, program.step().instructions.size() - 1);
    return tabulate();
  }

private:
  const runtime::Program &program;
  FunctionFacts facts;
  SmallVector<Operation *> ops;
  std::vector<Operation *> opOfInstruction;
  std::vector<MemoryRow> lives;
  std::map<std::size_t, std::size_t> lifeAtOffset; ///< the last one that began there

  bool inArena(runtime::ValueId id) const {
    return id != runtime::kNoValue && (program.values[id].storage == runtime::Storage::kTemporary ||
                                       program.values[id].storage == runtime::Storage::kInput);
  }

  std::string typeOf(runtime::ValueId id) const { return program.values[id].spec.ToString(); }

  /// Null for instructions that lowering adds: copies of state before the first operation, packed weights.
  Operation *opOf(std::size_t index) const { return opOfInstruction[index]; }

  absl::Status matchOps() {
    std::size_t packs = llvm::count_if(program.step().instructions, runtime::PacksWeight);
    if (ops.size() + packs > program.step().instructions.size())
      return absl::InvalidArgumentError(absl::StrCat("program \"", program.name, "\" has ",
                                                     program.step().instructions.size() - packs,
                                                     " instructions, its function ", ops.size(), " operations"));
    opOfInstruction.assign(program.step().instructions.size() - packs - ops.size(), nullptr);
    const auto *next = ops.begin();
    for (const runtime::Instruction &instruction :
         llvm::drop_begin(program.step().instructions, opOfInstruction.size()))
      opOfInstruction.push_back(runtime::PacksWeight(instruction) ? nullptr : *next++);
    return absl::OkStatus();
  }

  void begin(runtime::ValueId id, std::size_t index, MemoryRow row) {
    std::size_t bytes = program.values[id].spec.bytes();
    if (bytes > 0)
      begin(program.values[id].offset, bytes, index, std::move(row));
  }

  void begin(std::size_t offset, std::size_t bytes, std::size_t index, MemoryRow row) {
    row.bytes = static_cast<std::int64_t>(runtime::AlignedBuffer::Padded(bytes));
    row.first = row.last = index;
    row.offset = offset;
    lifeAtOffset[offset] = lives.size();
    lives.push_back(std::move(row));
  }

  void read(runtime::ValueId id, std::size_t index) {
    if (!inArena(id))
      return;
    if (auto life = lifeAtOffset.find(program.values[id].offset); life != lifeAtOffset.end())
      lives[life->second].last = index;
  }

  StorageUse useOf(Value v, Operation *producer) const {
    if (isParameterGradient(v) && cast<RankedTensorType>(v.getType()).getNumElements() > 1)
      return StorageUse::Gradient;
    if (facts.isBackward(producer))
      return StorageUse::Backward;
    return facts.isUpdate(producer) ? StorageUse::Update : StorageUse::Forward;
  }

  void visit(std::size_t index) {
    const runtime::Instruction &instruction = program.step().instructions[index];
    for (runtime::ValueId id : instruction.inputs)
      read(id, index);
    Operation *op = opOf(index);
    for (auto [number, id] : llvm::enumerate(instruction.outputs)) {
      if (!inArena(id))
        continue;
      if (!op) {
        StorageUse use = runtime::PacksWeight(instruction) ? StorageUse::Workspace : StorageUse::Forward;
        begin(id, index, {use, instruction.kernel, instruction.scope, typeOf(id), 0, 0, 0});
        continue;
      }
      OpResult result = op->getResult(number);
      Operation *producer = producerOf(result);
      begin(id, index, {useOf(result, producer), mnemonicOf(producer), pathOf(producer).str(), typeOf(id), 0, 0, 0});
    }
    if (instruction.workspace_bytes > 0)
      begin(instruction.workspace_offset, instruction.workspace_bytes, index,
            {StorageUse::Workspace, op ? mnemonicOf(op) : instruction.kernel, instruction.scope, "", 0, 0, 0});
  }

  /// Lives at an instruction, each piece of storage once: what is written over an operand takes its place.
  std::vector<std::size_t> liveAt(std::size_t index) const {
    std::map<std::size_t, std::size_t> byOffset;
    for (std::size_t life = 0; life < lives.size(); ++life)
      if (lives[life].first <= index && index <= lives[life].last)
        byOffset[lives[life].offset] = life;
    std::vector<std::size_t> live;
    for (auto [offset, life] : byOffset)
      live.push_back(life);
    return live;
  }

  MemoryTable tabulate() const {
    MemoryTable table;
    table.instructions = program.step().instructions.size();
    table.lives = lives;
    for (std::size_t index = 0; index < table.instructions; ++index) {
      auto &byUse = table.live.emplace_back();
      for (std::size_t life : liveAt(index))
        byUse[static_cast<std::size_t>(lives[life].use)] += lives[life].bytes;
      std::int64_t bytes = std::accumulate(byUse.begin(), byUse.end(), std::int64_t{0});
      std::int64_t gradients = byUse[static_cast<std::size_t>(StorageUse::Gradient)];
      table.activation_bytes = std::max(table.activation_bytes, bytes - gradients);
      if (opOf(index))
        table.operations.push_back(index);
      if (bytes > table.peak_bytes) {
        table.peak_bytes = bytes;
        table.peak = index;
      }
    }
    if (table.instructions == 0)
      return table;
    Operation *peak = opOf(table.peak);
    table.peak_op = peak ? mnemonicOf(peak) : program.step().instructions[table.peak].kernel;
    table.peak_path = program.step().instructions[table.peak].scope;
    for (std::size_t life : liveAt(table.peak))
      table.rows.push_back(lives[life]);
    llvm::stable_sort(table.rows, [](const MemoryRow &l, const MemoryRow &r) { return l.bytes > r.bytes; });
    return table;
  }
};

} // namespace

absl::StatusOr<MemoryTable> TabulateMemory(const runtime::Program &program, const Module &target) {
  absl::StatusOr<func::FuncOp> function = findFunction(target, program.name);
  if (!function.ok())
    return function.status();
  return StorageLives(program, *function).run();
}

std::vector<StateCopy> StateCopies(const runtime::Program &program) {
  std::vector<StateCopy> copies;
  for (const runtime::ValueCopy &copy : program.step().copies) {
    const runtime::StateBinding &state = program.state[program.values[copy.to].index];
    copies.push_back({state.name, static_cast<std::int64_t>(state.spec.bytes()), copy.reason});
  }
  return copies;
}

} // namespace mpc::compiler
