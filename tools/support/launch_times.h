// How long steps take on a device that may run ahead of the host.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/executable.h"
#include "tools/support/stopwatch.h"

namespace mpc::tools {

/// Takes what passes between the ends of launches for their time. A device that runs ahead has ended a launch when the
/// host has started the next one and has read the first one's result. Of another device each launch ends before the
/// next one is started.
class LaunchTimes {
 public:
  explicit LaunchTimes(bool runs_ahead) : runs_ahead_(runs_ahead) {}
  /// `step` runs ahead if it keeps the results of two launches.
  explicit LaunchTimes(const runtime::Executable& step)
      : LaunchTimes(step.steps_kept() >= 2 * static_cast<std::uint64_t>(step.steps_per_launch())) {}

  bool runs_ahead() const { return runs_ahead_; }

  /// Time begins for the next launch. On a device that runs ahead that counts before the first one alone.
  void Begin(Clock::time_point now = Clock::now());
  /// A launch of `steps` steps was started. It has ended, or on a device that runs ahead the one before it has.
  void Add(std::int64_t steps, Clock::time_point now = Clock::now());
  /// Every launch has ended.
  void Finish(Clock::time_point now = Clock::now());

  /// Seconds of each step: a launch's, shared out over its steps.
  std::vector<double> TakeStepSeconds() { return std::move(step_seconds_); }

 private:
  void SeeEnd(Clock::time_point now);

  bool runs_ahead_;
  std::int64_t under_way_ = 0;  ///< steps of the launch whose end has not been seen
  Clock::time_point last_end_;
  std::vector<double> step_seconds_;
};

}  // namespace mpc::tools
