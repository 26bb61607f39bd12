// The state of a loss scaler after each step of a device that runs ahead of the host. Not part of the public API.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "frontend/graph/loss_scale.h"
#include "kernels/cpu/kernel.h"

namespace mpc::amp::internal {

/// The device holds the state of its newest step only, and reading that would wait for the step. The host therefore
/// computes the state again, with the kernel that the CPU's steps run. It starts from the state at the beginning and
/// applies each step's `first_bad` and the host's own writes.
class ScalerHistory {
 public:
  /// Fields that the host has written: their indices in LossScaler::state and the values' bits.
  using Writes = std::vector<std::pair<std::size_t, std::uint32_t>>;

  /// Begins with the present state of `scaler`, which must outlive the history. Errors: those of reading it.
  static absl::StatusOr<std::unique_ptr<ScalerHistory>> Create(const LossScaler& scaler);

  /// Call before a launch. Returns what the host has written since the last launch.
  absl::StatusOr<Writes> TakeWrites();
  /// Call after a launch, so that what its steps write does not count as the host's.
  void NoteLaunch();
  /// Follows the next step in order. `writes` are the host's writes before it. `first_bad` is its record; null if the
  /// step leaves the state as it was (a micro-step that is not the last).
  void Step(const Writes& writes, const std::int32_t* first_bad);

  // After the last Step.
  double scale() const;
  std::int64_t skipped_steps() const { return Integer(ScalerField::kSkipped); }
  std::int64_t consecutive_skips() const { return Integer(ScalerField::kConsecutive); }

 private:
  static constexpr std::size_t kFields = kScalerFieldNames.size();
  static constexpr std::size_t kMoving = static_cast<std::size_t>(kFirstScalerSetting);

  explicit ScalerHistory(const LossScaler& scaler) : scaler_(scaler) {}
  std::int64_t Integer(ScalerField field) const {
    return static_cast<std::int32_t>(fields_[static_cast<std::size_t>(field)]);
  }

  const LossScaler& scaler_;
  std::array<std::uint32_t, kFields> fields_{};    ///< 4 bytes each, f32 or i32
  std::array<std::uint64_t, kFields> versions_{};  ///< versions of the state entries after the last launch
  std::unique_ptr<cpu::Kernel> update_;
};

}  // namespace mpc::amp::internal
