// Logs of a run as text: comma-separated values, JSON lines. MindSpore has neither.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "frontend/train/log_file.h"
#include "frontend/train/run_logger.h"

namespace mpc {

struct CSVLoggerOptions {
  std::string filename;         ///< folders that are missing are made
  std::string separator = ",";  ///< one character: no quote, digit, letter or line break
  bool append = false;          ///< goes on with the file of an earlier run, whose columns must be these
  std::int64_t log_steps = 0;   ///< steps (global count) between two rows within an epoch; 0: a row an epoch
};

/// Writes a row of comma-separated values after every epoch, below a row of names. The columns are "epoch",
/// "step_in_epoch" and "global_step", then the numbers of RunLogger. A cell is empty where there was no evaluation.
/// Numbers are the shortest that read back as the same value. A row is in the file as soon as it is written. The
/// options without `log_steps` are Keras's.
class CSVLogger : public RunLogger {
 public:
  explicit CSVLogger(CSVLoggerOptions options);

 protected:
  absl::Status Open(const RunContext& context) override;
  absl::Status Write(const RunContext& context, const Scalars& scalars) override;
  absl::Status Close() override;

 private:
  absl::Status OpenFile(bool append);
  /// Empties the file, or goes on with it, and writes the names unless they stand there already.
  absl::Status Begin(const RunContext& context, const Scalars& scalars);

  CSVLoggerOptions options_;
  std::vector<std::string> columns_;  ///< those of scalars; empty before the first row
  std::unique_ptr<internal::LogFile> file_;
};

struct JSONLinesLoggerOptions {
  std::string filename;        ///< folders that are missing are made
  bool append = false;         ///< goes on with the file of an earlier run
  std::int64_t log_steps = 0;  ///< steps (global count) between two lines within an epoch; 0: a line an epoch
};

/// Writes a JSON object on a line of its own after every epoch: {"epoch":1,"step_in_epoch":45,"global_step":45,
/// "loss":0.25,...} with the numbers of RunLogger. A number that is not finite is null. A line is in the file as soon
/// as it is written.
class JSONLinesLogger : public RunLogger {
 public:
  explicit JSONLinesLogger(JSONLinesLoggerOptions options);

 protected:
  absl::Status Open(const RunContext& context) override;
  absl::Status Write(const RunContext& context, const Scalars& scalars) override;
  absl::Status Close() override;

 private:
  JSONLinesLoggerOptions options_;
  std::unique_ptr<internal::LogFile> file_;
};

}  // namespace mpc
