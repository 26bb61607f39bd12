// A region compiled for this processor and run as the runtime does, in any order of its tiles.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "tests/compiler/codegen/loaded_fusions.h"

namespace mpc::test {

enum class TileOrder { kForward, kReverse, kTwoThreads };

/// Runs host code: inputs and then outputs; `workspace` has code.workspace_bytes.
void RunTiles(const LoadedFusion& region, void* const* operands, void* workspace, TileOrder order);

class CompiledFusion {
 public:
  using Order = TileOrder;

  /// Errors: INVALID_ARGUMENT where the region cannot be emitted, INTERNAL where LLVM refuses it.
  static absl::StatusOr<std::unique_ptr<CompiledFusion>> Create(FusionOp fusion, const codegen::CodeTarget& target);

  void Run(void* const* operands, void* workspace, Order order = Order::kForward) const {
    RunTiles(region(), operands, workspace, order);
  }
  std::size_t workspace_bytes() const { return region().code.workspace_bytes; }
  llvm::ArrayRef<codegen::Stage> stages() const { return region().code.stages; }

 private:
  CompiledFusion() = default;
  const LoadedFusion& region() const { return loaded_->regions().front(); }

  std::unique_ptr<LoadedFusions> loaded_;
};

/// This processor; the same with half its vector width; with nothing that its caches would keep, so that whole results
/// are stored around them whatever their size.
codegen::CodeTarget HostTarget();
codegen::CodeTarget NarrowTarget();
codegen::CodeTarget StreamedTarget();

}  // namespace mpc::test
