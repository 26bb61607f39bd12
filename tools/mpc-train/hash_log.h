// The hashes of a run's state as a file, one line a step.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

#include "mpc/train.h"

namespace mpc::tools {

/// Writes RunContext::state_hash of every step that changed the state, to a file that ReadStateHashes reads. A line is
/// in the file when its step has ended. A resumed run keeps the lines of the steps before it, where the file has them.
/// A file that cannot be begun ends the run before its first step. So does, in a resumed run, one that cannot be read.
/// Where a later line cannot be written, a warning says so, and the file keeps the lines before it.
class HashLog : public Callback {
 public:
  explicit HashLog(std::string path) : path_(std::move(path)) {}

  void OnTrainBegin(RunContext& context) override;
  void OnStepEnd(RunContext& context) override;

 private:
  /// The lines of the steps that were done before this run.
  absl::StatusOr<std::string> LinesBefore() const;

  std::string path_;
  std::ofstream file_;
  std::uintmax_t bytes_ = 0;  ///< length of the whole lines
  std::int64_t last_step_ = 0;
};

}  // namespace mpc::tools
