// The losses of a run, read while its steps go on.
#pragma once

#include <cstdint>
#include <ostream>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/executable.h"

namespace mpc::tools {

/// Reads losses in the order of their steps, each while its step is still kept.
class LossReader {
 public:
  /// Reads from the next step of `step` on. Prints every `print_every`-th loss on `progress`; 0: none.
  LossReader(const runtime::Executable& step, std::int64_t print_every, std::ostream& progress)
      : step_(step), print_every_(print_every), progress_(progress), next_(step.steps_started()) {}

  /// Reads the losses of the steps before number `end`. Errors: those of the device; a step that is no longer kept.
  absl::Status ReadUntil(std::uint64_t end);

  std::vector<double> TakeLosses() { return std::move(losses_); }

 private:
  const runtime::Executable& step_;
  std::int64_t print_every_;
  std::ostream& progress_;
  std::uint64_t next_;
  std::vector<double> losses_;
};

}  // namespace mpc::tools
