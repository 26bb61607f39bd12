// Which convolutions CUDA's own kernels take before cuDNN.
#pragma once

#include <algorithm>
#include <cstdint>

namespace mpc {

/// True for little work on few channels. `results` and `sources` are channels of a group. cuDNN pads channels to whole
/// tensor-core tiles, mostly for nothing there: the project's direct convolution is taken, in either data format. A
/// large one (the first layer of a ResNet) should pay for the padding. Where the border lies has not been measured;
/// tuning measures both sides of it.
inline bool IsSmallAndNarrow(std::int64_t results, std::int64_t sources, std::int64_t products) {
  constexpr std::int64_t kNarrow = 16;
  constexpr std::int64_t kSmall = std::int64_t{1} << 30;
  return std::min(results, sources) < kNarrow && products < kSmall;
}

}  // namespace mpc
