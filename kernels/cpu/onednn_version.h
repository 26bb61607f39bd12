// Which oneDNN runs the kernels.
#pragma once

#include <string>

namespace mpc::cpu {

/// "2.7.4".
std::string OnednnVersion();

}  // namespace mpc::cpu
