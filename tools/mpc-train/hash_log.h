// The hashes of a run's state as a file, one line a step.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

#include "mpc/train.h"

namespace mpc::tools {

/// Writes RunContext::state_hash of every step that changed the state, to a file that ReadStateHashes reads. A line is
/// in the file when its step has ended. Ends the run where the file cannot be written.
class HashLog : public Callback {
 public:
  explicit HashLog(std::string path) : path_(std::move(path)) {}

  void OnTrainBegin(RunContext& context) override;
  void OnStepEnd(RunContext& context) override;

 private:
  void Write(const std::string& line, RunContext& context);

  std::string path_;
  std::ofstream file_;
  std::int64_t last_step_ = 0;
};

}  // namespace mpc::tools
