#include "compiler/codegen/gpu_region.h"

#include "compiler/codegen/gpu_stages.h"

#include <vector>

namespace mpc::codegen {

// The multiprocessors of the largest GPU of the architecture; an H200's where the architecture is not known.
static unsigned multiprocessorsOf(const CodeTarget &Target) { return Target.cpu == "sm_80" ? 108 : 132; }

// From now on these outputs are loaded where their values are needed. They may have overwritten the inputs that they
// are computed from.
static void readBack(GpuRegion &Region, llvm::ArrayRef<unsigned> Outputs) {
  for (unsigned Output : Outputs)
    if (mlir::Value V = Region.yielded(Output); V.getDefiningOp())
      Region.stored[V].output = Output;
}

llvm::Expected<RegionCode> emitGpuRegion(FusionOp Fusion, const RegionPlan &Plan, llvm::StringRef Name,
                                         const CodeTarget &Target, llvm::Module &Module) {
  GpuRegion Region(Fusion, Plan, Name, Target, Module);
  std::vector<Sweep> Sweeps = sweepsOf(Fusion, Plan);
  for (size_t I = 0; I + 1 < Sweeps.size(); ++I) {
    const Sweep &S = Sweeps[I], &Next = Sweeps[I + 1];
    Partials Left;
    if (S.visits()) {
      SweepTiling T = tilingOf(Plan, Fusion, S, multiprocessorsOf(Target));
      Left = T.flat ? emitFlatSweep(Region, S, Next, T) : emitRowSweep(Region, S, Next, T);
    }
    readBack(Region, S.stores);
    // Values of columns may depend on reductions of everything.
    bool AllIsDone = !S.allSteps.empty() && Left.allParts == 0;
    if (!AllIsDone && (!S.allSteps.empty() || !Next.singleStores.empty()))
      emitCombination(Region, S.allSteps, Next, Left);
    bool ColumnsAreDone = !S.columnSteps.empty() && Left.columnParts == 0;
    if (!ColumnsAreDone && (!S.columnSteps.empty() || !Next.columnStores.empty()))
      emitColumnCombination(Region, S.columnSteps, Next, Left);
    readBack(Region, Next.singleStores);
    readBack(Region, Next.columnStores);
  }
  // Kernels that take a workspace are given one.
  if (Region.hasWorkspace() && Region.code.workspace_bytes == 0)
    Region.allocate(1);
  return std::move(Region.code);
}

} // namespace mpc::codegen
