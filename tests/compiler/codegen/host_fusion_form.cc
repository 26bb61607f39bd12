#include <tuple>

#include "compiler/codegen/host_schedule.h"
#include "tests/compiler/codegen/compiled_fusion.h"
#include "tests/compiler/codegen/fusion_form.h"

namespace mpc::test {
namespace {

constexpr TileOrder kOrders[] = {TileOrder::kForward, TileOrder::kReverse, TileOrder::kTwoThreads};

absl::Status Run(const LoadedFusion& region, void* const* operands, void* workspace, int order) {
  RunTiles(region, operands, workspace, kOrders[order]);
  return absl::OkStatus();
}

bool SameTiling(const codegen::CodeTarget& target, FusionOp a, FusionOp b) {
  const auto tiles = [&](FusionOp fusion) {
    const codegen::FusionPlan plan = llvm::cantFail(codegen::FusionPlan::create(fusion));
    const auto schedule = codegen::HostSchedule::create(fusion, plan, target);
    return std::tuple(schedule.width, schedule.copies, schedule.rowsPerTile, schedule.columnsPerTile);
  };
  return tiles(a) == tiles(b);
}

}  // namespace

std::vector<FusionForm> FusionForms() {
  return {{HostTarget(), {}, 3, Run, SameTiling},
          {NarrowTarget(), {}, 3, Run, SameTiling},
          {StreamedTarget(), {}, 3, Run, SameTiling}};
}

}  // namespace mpc::test
