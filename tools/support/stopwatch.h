// The clock that tools measure with.
#pragma once

#include <chrono>

namespace mpc::tools {

using Clock = std::chrono::steady_clock;

inline double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace mpc::tools
