// The CPU as a device.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/cpu/cpu_features.h"
#include "runtime/executable.h"
#include "runtime/kernel_tuner.h"

namespace mpc::runtime {

class CpuDevice : public Device {
 public:
  std::string_view name() const override { return "cpu"; }
  DType native_low_type() const override { return HasAvx512Bf16() ? DType::kBF16 : DType::kF16; }
  /// What Program::required_cpu_features names where no code is generated.
  std::vector<std::string> required_cpu_features() const override { return {"avx2", "fma", "f16c"}; }

  /// Creates the kernel and asks it. Generated code has no kernel and keeps the workspace that it states. The answer
  /// holds for the thread count at the time of the call. A choice that rules make is not kept in the Program, since
  /// they make it again. It is kept where `tune`, `choice_cache` or `allow_winograd` is set, or where the Program has a
  /// choice already. That of a packed weight stands with the weight.
  absl::StatusOr<InstructionPlan> Plan(const Program& program, const Instruction& instruction,
                                       const PlanOptions& options = {}) const override;
  absl::Status EndPlanning(const PlanOptions& options) const override { return tuner_.WriteCache(options); }
  bool MayAlias(std::string_view kernel, std::size_t output, std::size_t input) const override;
  /// The executable runs `program` itself. Where kernels here need larger workspaces or other packing, it runs a copy
  /// that is fitted. State of flat updates that no Program uses yet moves into buffers of its own, so addresses of it
  /// become invalid. Errors, beside Device::Load's: INVALID_ARGUMENT for no program, for one of another device, and for
  /// one that CheckProgram refuses.
  absl::StatusOr<std::unique_ptr<Executable>> Load(std::shared_ptr<const Program> program, const StateStore& state,
                                                   const LoadOptions& options = {}) const override;

 private:
  mutable KernelTuner tuner_;
};

}  // namespace mpc::runtime
