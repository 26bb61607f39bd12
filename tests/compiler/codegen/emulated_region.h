// The GPU form of a region, compiled for the host and run by the emulation of CUDA, thread by thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "compiler/codegen/region_emitter.h"

namespace llvm::orc {
class LLJIT;
}

namespace mpc::test {

class EmulatedRegion {
 public:
  /// Errors: INVALID_ARGUMENT where the region cannot be emitted, INTERNAL where LLVM refuses it.
  static absl::StatusOr<std::unique_ptr<EmulatedRegion>> Create(FusionOp fusion, const codegen::CodeTarget& target);
  ~EmulatedRegion();

  /// Inputs and then outputs; `workspace` has workspace_bytes. The seed gives the order of blocks and of threads;
  /// shared memory is poisoned when a block begins and guarded. Errors: what the emulation finds.
  absl::Status Run(void* const* operands, void* workspace, std::uint64_t seed) const;
  std::size_t workspace_bytes() const { return code_.workspace_bytes; }
  llvm::ArrayRef<codegen::Stage> stages() const { return code_.stages; }

 private:
  using Function = void (*)(void* const*, void*, std::int64_t);
  EmulatedRegion() = default;

  std::unique_ptr<llvm::orc::LLJIT> jit_;
  codegen::RegionCode code_;
  llvm::SmallVector<Function> functions_;
};

/// The GPU form for an H200, as code for this processor.
codegen::CodeTarget EmulatedTarget();

}  // namespace mpc::test
