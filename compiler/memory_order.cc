#include "compiler/memory_order.h"

#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/state_attributes.h"
#include "compiler/dialect/tensor_values.h"
#include "compiler/lowering/lowering.h"
#include "compiler/lowering/storage_assignment.h"
#include "passes/memory/memory_schedule.h"
#include "runtime/memory_planner.h"

using namespace mlir;

namespace mpc::compiler {

namespace {

/// The workspace of an operation that is an instruction by itself; 0 where the device has none for it.
std::int64_t workspaceOf(Operation *Op, const runtime::Device &Target, const runtime::PlanOptions &Options) {
  if (isa<FusionOp>(Op) || isViewOrConstant(Op))
    return 0;
  runtime::Program Alone;
  runtime::Instruction Instruction;
  Instruction.kernel = Op->getName().stripDialect().str();
  Instruction.attributes = kernelAttributes(Op);
  auto Add = [&](Value V) {
    runtime::Value Record;
    Record.spec = toTensorSpec(cast<RankedTensorType>(V.getType()));
    Alone.values.push_back(Record);
    return static_cast<runtime::ValueId>(Alone.values.size() - 1);
  };
  for (Value Operand : Op->getOperands())
    Instruction.inputs.push_back(Add(Operand));
  for (Value Output : Op->getResults())
    Instruction.outputs.push_back(Output.use_empty() ? runtime::kNoValue : Add(Output));
  // Lowering reports what the device cannot do.
  absl::StatusOr<runtime::InstructionPlan> Plan = Target.Plan(Alone, Instruction, Options);
  return Plan.ok() ? static_cast<std::int64_t>(Plan->workspace_bytes) : 0;
}

/// The arena that lowering plans for the order that the function has now, workspaces of regions aside; kAnyBytes where
/// it takes more than \p Most bytes.
std::size_t plannedArena(func::FuncOp Function, const runtime::Device &Target,
                         const llvm::DenseMap<Operation *, std::int64_t> &Workspaces,
                         std::size_t Most = runtime::kAnyBytes) {
  StorageAssignment Storage(Function, Target);
  std::vector<runtime::LiveInterval> Intervals;
  auto Add = [&](Value V) {
    if (Storage.root(V) != V || V.getDefiningOp<ConstantOp>() || isState(roleOf(V)))
      return;
    auto [First, Last] = Storage.life(V);
    Intervals.push_back({static_cast<std::size_t>(bytesOf(V)), First, Last});
  };
  for (BlockArgument Argument : Function.getArguments())
    Add(Argument);
  for (auto [Index, Op] : llvm::enumerate(Storage.instructions())) {
    for (Value Result : Op->getResults())
      if (!Result.use_empty() || isa<FusionOp>(Op))
        Add(Result);
    if (std::int64_t Bytes = Workspaces.lookup(Op))
      Intervals.push_back({static_cast<std::size_t>(Bytes), Index, Index});
  }
  return runtime::PlanMemory(Intervals, {}, Most).arena_bytes;
}

} // namespace

void lowerPeak(func::FuncOp Function, const runtime::Device &Target, const runtime::PlanOptions &Options) {
  if (!Function.getBody().hasOneBlock())
    return;
  Block &Body = Function.getBody().front();
  llvm::DenseMap<Operation *, std::int64_t> Workspaces;
  if (Target.name() == "cpu" && !Options.tune)
    for (Operation &Op : Body.without_terminator())
      Workspaces[&Op] = workspaceOf(&Op, Target, Options);
  MemoryModel Model;
  Model.Workspace = [&](Operation *Op) { return Workspaces.lookup(Op); };
  Model.MayAlias = [&](Operation *Op, unsigned Result, unsigned Operand) {
    return mayAlias(Op, Result, Operand, Target);
  };
  SmallVector<Operation *> Old;
  for (Operation &Op : Body.without_terminator())
    Old.push_back(&Op);
  MemorySchedule Schedule(Body, Model);
  if (!Schedule.improve())
    return;
  std::size_t Before = plannedArena(Function, Target, Workspaces);
  Schedule.apply();
  if (plannedArena(Function, Target, Workspaces, Before - 1) < Before)
    return;
  for (Operation *Op : Old)
    Op->moveBefore(Body.getTerminator());
}

} // namespace mpc::compiler
