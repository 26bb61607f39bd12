#include "compiler/codegen/gpu_fusion.h"

#include "compiler/codegen/gpu_stages.h"

#include <vector>

namespace mpc::codegen {

// An H200's where the architecture is not known. Code for sm_80 runs on every card of 8.x, of which 8.6 and 8.9 have
// the least shared memory.
static Multiprocessors multiprocessorsOf(const CodeTarget &target) {
  Multiprocessors known = target.cpu == "sm_80" ? Multiprocessors{108, 100 << 10} : Multiprocessors{132, 228 << 10};
  if (target.multiprocessors != 0)
    known.number = target.multiprocessors;
  if (target.shared_bytes != 0)
    known.sharedBytes = target.shared_bytes;
  return known;
}

// From now on these outputs are loaded where their values are needed. They may have overwritten the inputs that they
// are computed from.
static void readBack(GpuFusion &region, llvm::ArrayRef<unsigned> outputs) {
  for (unsigned output : outputs)
    if (mlir::Value v = region.yielded(output); v.getDefiningOp())
      region.stored[v].output = output;
}

llvm::Expected<FusionCode> emitGpuFusion(FusionOp fusion, const FusionPlan &plan, llvm::StringRef name,
                                         const CodeTarget &target, llvm::Module &module) {
  GpuFusion region(fusion, plan, name, target, module);
  std::vector<Sweep> sweeps = sweepsOf(fusion, plan);
  for (size_t i = 0; i + 1 < sweeps.size(); ++i) {
    const Sweep &s = sweeps[i], &next = sweeps[i + 1];
    Partials left;
    if (s.visits()) {
      SweepTiling t = tilingOf(plan, fusion, s, multiprocessorsOf(target));
      left = t.flat ? emitFlatSweep(region, s, next, t) : emitRowSweep(region, s, next, t);
    }
    readBack(region, s.stores);
    // Values of columns may depend on reductions of everything.
    bool allIsDone = !s.allSteps.empty() && left.allParts == 0;
    if (!allIsDone && (!s.allSteps.empty() || !next.singleStores.empty()))
      emitCombination(region, s.allSteps, next, left);
    bool columnsAreDone = !s.columnSteps.empty() && left.columnParts == 0;
    if (!columnsAreDone && (!s.columnSteps.empty() || !next.columnStores.empty()))
      emitColumnCombination(region, s.columnSteps, next, left);
    readBack(region, next.singleStores);
    readBack(region, next.columnStores);
  }
  // Kernels that take a workspace are given one.
  if (region.hasWorkspace() && region.code.workspace_bytes == 0)
    region.allocate(1);
  return std::move(region.code);
}

} // namespace mpc::codegen
