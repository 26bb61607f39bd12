#include <tuple>

#include "compiler/codegen/gpu_sweep.h"
#include "tests/compiler/codegen/emulated_fusion.h"
#include "tests/compiler/codegen/fusion_form.h"

namespace mpc::test {
namespace {

constexpr std::uint64_t kSeeds[] = {0, 1, 77};

absl::Status Run(const LoadedFusion& region, void* const* operands, void* workspace, int order) {
  return RunEmulated(region, operands, workspace, kSeeds[order]);
}

using Tiling = std::tuple<bool, bool, unsigned, unsigned, unsigned, unsigned, std::int64_t, std::int64_t, std::int64_t>;

std::vector<Tiling> TilingsOf(FusionOp fusion) {
  constexpr codegen::Multiprocessors kOfAnH200 = {132, 228 << 10};
  const codegen::FusionPlan plan = llvm::cantFail(codegen::FusionPlan::create(fusion));
  std::vector<Tiling> tilings;
  for (const codegen::Sweep& sweep : codegen::sweepsOf(fusion, plan)) {
    if (!sweep.visits()) continue;
    const codegen::SweepTiling t = codegen::tilingOf(plan, fusion, sweep, kOfAnH200);
    tilings.emplace_back(t.flat, t.shifted, t.vector, t.lanes, t.places, t.threads, t.columnTiles, t.rowBlocks,
                         t.rowsPerBlock);
  }
  return tilings;
}

bool SameTiling(const codegen::CodeTarget&, FusionOp a, FusionOp b) { return TilingsOf(a) == TilingsOf(b); }

}  // namespace

std::vector<FusionForm> FusionForms() { return {{EmulatedTarget(), EmulationFunctions(), 3, Run, SameTiling}}; }

}  // namespace mpc::test
