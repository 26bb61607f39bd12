// The names that a training step's loss-scale records give to what they check.
#pragma once

#include <string_view>

namespace mpc {

/// The name of a norm of gradients among what a finiteness check reads. The names of the gradients' parameters come
/// first. No parameter has this name.
inline constexpr std::string_view kNormOfGradients = "the norm of the gradients";

} // namespace mpc
