#include "tools/support/launch_times.h"

#include <chrono>
#include <cstddef>

namespace mpc::tools {

void LaunchTimes::Begin(Clock::time_point now) {
  if (under_way_ == 0) last_end_ = now;
}

void LaunchTimes::Add(std::int64_t steps, Clock::time_point now) {
  if (runs_ahead_) SeeEnd(now);
  under_way_ = steps;
  if (!runs_ahead_) SeeEnd(now);
}

void LaunchTimes::Finish(Clock::time_point now) { SeeEnd(now); }

void LaunchTimes::SeeEnd(Clock::time_point now) {
  if (under_way_ == 0) return;
  const double each = std::chrono::duration<double>(now - last_end_).count() / static_cast<double>(under_way_);
  step_seconds_.insert(step_seconds_.end(), static_cast<std::size_t>(under_way_), each);
  last_end_ = now;
  under_way_ = 0;
}

}  // namespace mpc::tools
