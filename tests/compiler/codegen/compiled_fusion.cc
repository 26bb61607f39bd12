#include "tests/compiler/codegen/compiled_fusion.h"

#include <thread>
#include <utility>

#include "compiler/codegen/code_generator.h"

namespace mpc::test {

void RunTiles(const LoadedFusion& region, void* const* operands, void* workspace, TileOrder order) {
  for (auto [function, stage] : llvm::zip_equal(region.functions, region.code.stages)) {
    const auto run = [&, call = function, blocks = stage.blocks](std::int64_t first, std::int64_t step) {
      for (std::int64_t i = first; i < blocks; i += step) {
        call(operands, workspace, order == TileOrder::kReverse ? blocks - 1 - i : i);
      }
    };
    if (order != TileOrder::kTwoThreads) {
      run(0, 1);
      continue;
    }
    std::thread other(run, 1, 2);
    run(0, 2);
    other.join();
  }
}

absl::StatusOr<std::unique_ptr<CompiledFusion>> CompiledFusion::Create(FusionOp fusion,
                                                                       const codegen::CodeTarget& target) {
  std::unique_ptr<CompiledFusion> region(new CompiledFusion);
  auto loaded = LoadedFusions::Create({fusion}, target);
  if (!loaded.ok()) return loaded.status();
  region->loaded_ = *std::move(loaded);
  return region;
}

codegen::CodeTarget HostTarget() { return llvm::cantFail(codegen::hostTarget()); }

codegen::CodeTarget NarrowTarget() {
  codegen::CodeTarget target = HostTarget();
  target.cpu = "x86-64-v3";
  target.vector_bits = 256;
  return target;
}

codegen::CodeTarget StreamedTarget() {
  codegen::CodeTarget target = HostTarget();
  target.cache_bytes = 0;
  return target;
}

}  // namespace mpc::test
