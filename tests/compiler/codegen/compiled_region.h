// A region compiled for this processor and run as the runtime does, in any order of its tiles.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "compiler/codegen/region_emitter.h"

namespace llvm::orc {
class LLJIT;
}

namespace mpc::test {

class CompiledRegion {
 public:
  enum class Order { kForward, kReverse, kTwoThreads };

  /// Errors: INVALID_ARGUMENT where the region cannot be emitted, INTERNAL where LLVM refuses it.
  static absl::StatusOr<std::unique_ptr<CompiledRegion>> Create(FusionOp fusion, const codegen::CodeTarget& target);
  ~CompiledRegion();

  /// Inputs and then outputs; `workspace` has workspace_bytes.
  void Run(void* const* operands, void* workspace, Order order = Order::kForward) const;
  std::size_t workspace_bytes() const { return code_.workspace_bytes; }
  llvm::ArrayRef<codegen::Stage> stages() const { return code_.stages; }

 private:
  using Function = void (*)(void* const*, void*, std::int64_t);
  CompiledRegion() = default;

  std::unique_ptr<llvm::orc::LLJIT> jit_;
  codegen::RegionCode code_;
  llvm::SmallVector<Function> functions_;
};

/// This processor, and the same with half its vector width.
codegen::CodeTarget HostTarget();
codegen::CodeTarget NarrowTarget();

}  // namespace mpc::test
