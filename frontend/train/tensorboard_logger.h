// Logs of a run for TensorBoard. MindSpore has SummaryCollector, whose files MindInsight reads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "frontend/train/log_file.h"
#include "frontend/train/run_logger.h"

namespace mpc {

struct TensorBoardLoggerOptions {
  std::string log_dir;         ///< what `tensorboard --logdir` is given, or a folder below it; made if it is missing
  std::int64_t log_steps = 0;  ///< steps (global count) between two points within an epoch; 0: a point an epoch
};

/// Writes the numbers of RunLogger to a new file "log_dir/events.out.tfevents.*" as scalars over the global step, under
/// their names. The file is there from the beginning of the run, and a point as soon as it is written. Values are
/// rounded to f32. A run that is resumed in the same folder draws on in the same curves.
class TensorBoardLogger : public RunLogger {
 public:
  explicit TensorBoardLogger(TensorBoardLoggerOptions options);

  /// The file of the last run; empty before the first.
  const std::string& path() const { return path_; }

 protected:
  absl::Status Open(const RunContext& context) override;
  absl::Status Write(const RunContext& context, const Scalars& scalars) override;
  absl::Status Close() override;

 private:
  TensorBoardLoggerOptions options_;
  std::string path_;
  std::unique_ptr<internal::LogFile> file_;
};

}  // namespace mpc
