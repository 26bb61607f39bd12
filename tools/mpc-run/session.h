// One run of a package: its state, and the Programs that are bound to it.
#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "frontend/data/dataset.h"
#include "frontend/graph/tensor.h"
#include "runtime/executable.h"
#include "runtime/program_file.h"
#include "tools/mpc-run/options.h"

namespace mpc::tools {

struct TrainResult {
  std::vector<double> losses;        ///< one a step; NaN and infinities are possible
  std::vector<double> step_seconds;  ///< seconds of the timed launches, each divided by its steps
  std::int64_t timed_steps = 0;
  /// With RunOptions::times_path: microseconds of each instruction in each of the timed steps.
  std::vector<std::vector<double>> instruction_us;
  double seconds = 0;  ///< seconds of the timed steps, from the first launch until the last one has ended
};

struct PredictResult {
  std::int64_t rows = 0;
  std::int64_t labels = 0;  ///< number of labels: one a row, for text one a token; 0: there are none
  std::int64_t right = 0;   ///< labels that are the class with the largest prediction
  std::string note;         ///< what the rows are; see TestSetNote
  double seconds = 0;       ///< seconds of the Program's runs
  Tensor predictions;       ///< predictions of all rows; with RunOptions::predictions_path
};

class Session {
 public:
  /// Checks the device, makes the initial state, loads and binds what is to be run. Errors: what is missing or does not
  /// fit, with the file.
  static absl::StatusOr<std::unique_ptr<Session>> Open(const RunOptions& options, runtime::Package package);

  /// RunOptions::steps training steps, with losses on `progress` as RunOptions::print_every asks. Losses are read a
  /// launch late, so that a device with a queue never waits for the host. Errors: those of the data and the device.
  absl::StatusOr<TrainResult> Train(std::ostream& progress);
  /// The test rows once.
  absl::StatusOr<PredictResult> Predict();
  /// Errors: the path and the reason.
  absl::Status DumpState() const;

  /// The training Program as it was bound, with the choices in force; null if nothing is trained or loaded for it.
  const runtime::Program* train_program() const { return train_ == nullptr ? nullptr : &train_->program(); }
  /// Nodes of the graph of one training step; 0: it is no graph.
  std::size_t nodes_per_step() const { return train_ == nullptr ? 0 : train_->nodes_per_step(); }
  const runtime::Package& package() const { return package_; }
  std::int64_t batch_size() const { return batch_size_; }
  double load_seconds() const { return load_seconds_; }
  /// Arena, state and the rest of the Programs that are loaded; they share their state.
  runtime::MemoryUse memory() const;
  /// Skipped steps of all scalers together, counted since the state began. -1: nothing scales losses.
  std::int64_t skipped_steps() const;
  /// The scale of the first scaler; 1 without one.
  double loss_scale() const;

 private:
  Session(const RunOptions& options, runtime::Package package) : options_(options), package_(std::move(package)) {}
  absl::Status CheckDevice() const;
  absl::StatusOr<std::unique_ptr<runtime::Executable>> Load(std::string_view name,
                                                            const runtime::LoadOptions& load) const;
  /// Starts a step for each of `rows`. With RunOptions::times_path a timed step is run to its end and measured.
  absl::Status Start(const std::vector<data::Row>& rows, bool timed, TrainResult* result);
  /// INVALID_ARGUMENT, naming the file, where the predictions are not by rows.
  absl::Status CheckPredictions() const;
  std::uint64_t seed() const;
  /// Number of classes of labels and tokens: the last extent of the predictions. Empty if the file has no predictions.
  std::optional<std::int64_t> classes() const;
  double Scalar(const runtime::StateEntry& entry) const;

  RunOptions options_;
  runtime::Package package_;
  const runtime::Device* device_ = nullptr;
  runtime::StateStore state_;
  std::unique_ptr<runtime::Executable> train_;
  std::unique_ptr<runtime::Executable> predict_;
  std::int64_t batch_size_ = 0;
  double load_seconds_ = 0;
};

}  // namespace mpc::tools
