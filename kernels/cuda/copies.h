// Many small copies in one launch. A step copies its inputs, its outputs, and the state that could not be updated in
// place. A single copy of four bytes costs as much as a kernel.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/copy_range.h"
#include "kernels/cuda/kernel.h"

namespace mpc::cuda {

/// Beyond this many bytes a copy between device memories gains nothing from sharing a launch.
inline constexpr std::size_t kLargeCopy = std::size_t{1} << 20;

/// Starts `copies`, none of which touches what another one writes. Those above kLargeCopy go to LaunchQueue::Copy and
/// must lie in device memory.
absl::Status EnqueueCopies(absl::Span<const CopyRange> copies, LaunchQueue& queue);

}  // namespace mpc::cuda
