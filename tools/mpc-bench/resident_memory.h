// How much memory this process holds, as Linux counts it. tools/peers/resident_memory.py counts the same for a peer.
#pragma once

#include <cstddef>
#include <optional>

namespace mpc::tools {

/// What training took beside what the process held before.
struct ResidentGrowth {
  std::size_t steps = 0;    ///< at most, in the steps after the first one
  std::size_t process = 0;  ///< at most, with compiling and the first step
};

/// Pages of files that the process maps, such as libraries, are left out: they come in as code runs for the first time.
class ResidentMemory {
 public:
  /// Growth counts from here on.
  ResidentMemory();
  /// `bytes` that have come since, the batches, are no growth, nor is what making them took.
  void LeaveOut(std::size_t bytes);
  /// What compiling freed goes back to the system, and a new peak begins.
  void EndFirstStep();
  /// Empty where Linux does not tell or does not let the peak be forgotten.
  std::optional<ResidentGrowth> growth() const;

 private:
  std::size_t Growth() const;

  std::size_t base_;
  std::size_t first_step_ = 0;
  bool known_;
};

}  // namespace mpc::tools
