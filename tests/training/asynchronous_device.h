// A device that is behind the host, on the host: what a GPU does to training, without one.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/executable.h"

namespace mpc::testing {

/// What the device was asked to do, and how it behaves. One for the process.
struct AsynchronousDeviceControl {
  // What its executables of "train_step" are like.
  std::optional<std::string> fail_with;  ///< the step below fails, and everything after it
  std::uint64_t fail_step = 0;           ///< of the executable, from 0
  // What happened.
  std::vector<std::size_t> launches;  ///< steps of each launch of "train_step"
  int downloads = 0;                  ///< of state
  std::size_t most_waiting = 0;       ///< pieces of work that waited at one time
  runtime::LoadOptions load;          ///< of the last "train_step"
  runtime::PlanOptions plan;          ///< of the last instruction
};

/// Registers the device as "cuda". Work that it is given waits until somebody needs its result: the results of a step,
/// or state. The results of two launches are kept. State has a copy of its own, as on a GPU.
AsynchronousDeviceControl& UseAsynchronousDevice();

}  // namespace mpc::testing
