// The names of what the records of a loss-scale wrap count.
#pragma once

#include <string_view>

namespace mpc {

/// The name of a norm of gradients that a check takes in. It follows the names of the check's gradients. No parameter
/// has this name.
inline constexpr std::string_view kNormOfGradients = "the norm of the gradients";

} // namespace mpc
