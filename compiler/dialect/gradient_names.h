// What the records of a loss-scale wrap call what they count.
#pragma once

#include <string_view>

namespace mpc {

/// Behind the names of a check's gradients: the norm of gradients, which it may take in, too. No parameter has it.
inline constexpr std::string_view kNormOfGradients = "the norm of the gradients";

} // namespace mpc
