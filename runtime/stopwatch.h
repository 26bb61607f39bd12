// Measures how long something takes.
#pragma once

#include <chrono>

namespace mpc::runtime {

/// A stopwatch that starts when it is made.
class Stopwatch {
 public:
  /// Returns how many seconds have passed since then.
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace mpc::runtime
