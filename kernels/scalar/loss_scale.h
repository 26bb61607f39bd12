// The loss-scale state machine: one transition a step, the same on every device.
//
// Scaling the loss and skipping steps that overflow is from Micikevicius et al. 2018, "Mixed precision training". The
// counters are those of PyTorch's GradScaler and of Paddle's AmpScaler. The scale answers overflow alone: values that
// underflow to 0 go unnoticed. After each growth a step may overflow and be skipped.
#pragma once

#include <cstdint>

#include "kernels/host_device.h"

namespace mpc::scalar {

struct LossScaleState {
  float scale;
  std::int32_t good, bad, skipped, consecutive;
};

struct LossScaleOptions {
  float growth, backoff, minimum, maximum;
  std::int32_t interval, bad_limit;
  bool dynamic, skip;
};

/// `first_bad` is the result of the finite check. It is the position of a gradient that is not finite, -1 where all are
/// finite, and -2 where only the loss is not. "At least" below: the limits are state, and one may have been lowered
/// below the count.
MPC_HOST_DEVICE inline LossScaleState NextState(std::int32_t first_bad, LossScaleState state,
                                                const LossScaleOptions& options) {
  const float minimum = options.minimum < 0x1p-126f ? 0x1p-126f : options.minimum;
  const float maximum = 0x1p126f < options.maximum ? 0x1p126f : options.maximum;
  if (first_bad >= 0) {
    state.good = 0;
    if (options.dynamic && ++state.bad >= options.bad_limit) {
      const float reduced = state.scale * options.backoff;
      state.scale = minimum < reduced ? reduced : minimum;
      state.bad = 0;
    }
  } else if (first_bad == -1) {
    state.bad = 0;
    if (options.dynamic && ++state.good >= options.interval) {
      const float grown = state.scale * options.growth;
      if (grown - grown == 0.0f) state.scale = grown < maximum ? grown : maximum;  // finite
      state.good = 0;
    }
  }
  if (options.skip) {
    const bool finite = first_bad == -1;
    state.skipped += finite ? 0 : 1;
    state.consecutive = finite ? 0 : state.consecutive + 1;
  }
  return state;
}

}  // namespace mpc::scalar
