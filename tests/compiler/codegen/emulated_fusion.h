// The GPU form of a region, compiled for the host and run by the emulation of CUDA, thread by thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "tests/compiler/codegen/loaded_fusions.h"

namespace mpc::test {

/// What LoadedFusions::Create provides to code for EmulatedTarget().
llvm::ArrayRef<ProvidedFunction> EmulationFunctions();

/// Inputs and then outputs; `workspace` has code.workspace_bytes. The seed gives the order of blocks and of threads;
/// shared memory is poisoned when a block begins and guarded. One call at a time. Errors: what the emulation finds.
absl::Status RunEmulated(const LoadedFusion& region, void* const* operands, void* workspace, std::uint64_t seed);

class EmulatedFusion {
 public:
  /// Errors: INVALID_ARGUMENT where the region cannot be emitted, INTERNAL where LLVM refuses it.
  static absl::StatusOr<std::unique_ptr<EmulatedFusion>> Create(FusionOp fusion, const codegen::CodeTarget& target);

  absl::Status Run(void* const* operands, void* workspace, std::uint64_t seed) const {
    return RunEmulated(region(), operands, workspace, seed);
  }
  std::size_t workspace_bytes() const { return region().code.workspace_bytes; }
  llvm::ArrayRef<codegen::Stage> stages() const { return region().code.stages; }

 private:
  EmulatedFusion() = default;
  const LoadedFusion& region() const { return loaded_->regions().front(); }

  std::unique_ptr<LoadedFusions> loaded_;
};

/// The GPU form for an H200, as code for this processor.
codegen::CodeTarget EmulatedTarget();

}  // namespace mpc::test
