#include "compiler/lowering/arena_plan.h"

#include "runtime/memory_planner.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <vector>

namespace mpc::compiler {

void planArena(llvm::ArrayRef<ArenaPlace> Places, runtime::Program &Program) {
  std::vector<runtime::LiveInterval> Intervals;
  for (const ArenaPlace &Place : Places) {
    std::size_t Bytes = 0;
    for (runtime::ValueId Id : Place.values)
      Bytes = std::max(Bytes, Program.values[Id].spec.bytes());
    Intervals.push_back({Bytes, Place.first, Place.last});
  }
  std::vector<runtime::Instruction *> WithWorkspace;
  for (auto [Index, Instruction] : llvm::enumerate(Program.instructions)) {
    if (Instruction.workspace_bytes == 0)
      continue;
    Intervals.push_back({Instruction.workspace_bytes, Index, Index});
    WithWorkspace.push_back(&Instruction);
  }
  runtime::MemoryPlan Plan = runtime::PlanMemory(Intervals);
  for (auto [Place, Offset] : llvm::zip_first(Places, Plan.offsets))
    for (runtime::ValueId Id : Place.values)
      Program.values[Id].offset = Offset;
  for (auto [Instruction, Offset] : llvm::zip_equal(WithWorkspace, llvm::drop_begin(Plan.offsets, Places.size())))
    Instruction->workspace_offset = Offset;
  Program.arena_bytes = Plan.arena_bytes;
}

} // namespace mpc::compiler
