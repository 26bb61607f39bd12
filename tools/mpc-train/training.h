// One run: train, test, save.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/registry.h"
#include "tools/mpc-train/options.h"
#include "tools/mpc-train/step_trace.h"

namespace mpc::tools {

struct TestResult {
  double accuracy = 0;  ///< NaN for text
  double loss = 0;
};

/// What a language model makes of the text that it does not learn from.
struct Validation {
  std::int64_t step = 0;  ///< the validation comes after this step
  double train_loss = 0;  ///< mean over the steps since the last validation whose loss is finite; NaN if none is
  double loss = 0;        ///< nats a byte
};

/// Pictures that TrainOptions::skip_damaged leaves out.
struct LeftOutPictures {
  std::int64_t train = 0;
  std::int64_t test = 0;
  std::string first_error;  ///< names the picture
};

struct EpochResult {
  double train_loss = 0;  ///< mean over the steps whose loss is finite; NaN if none is
  std::int64_t steps = 0;
  double seconds = 0;  ///< seconds of its steps, without compiling and testing
  TestResult test;
};

/// "412 steps/s".
std::string StepRate(std::int64_t steps, double seconds);

/// A network with all that trains it. Members refer to each other: it stays where it is made.
class Training {
 public:
  /// Checks the files to be read and written, loads the data and the checkpoint. Errors: what is wrong with them.
  static absl::StatusOr<std::unique_ptr<Training>> Create(const TrainOptions& options);

  /// Trains what a resumed checkpoint leaves to do, with progress on `progress` (null: none), tests after each epoch
  /// and saves. A signal that asks for the end stops it after the step in flight; it then tests, saves, and writes no
  /// sample.
  absl::Status Run(std::ostream* progress);

  /// What --precision-frontier asks for, in place of Run: prints on `out`, writes the chosen precision.
  absl::Status FindFrontier(std::ostream& out);

  const Model& model() const { return *model_; }
  const std::vector<EpochResult>& epochs() const { return epochs_; }
  /// The test after the last epoch.
  const TestResult& test() const { return test_; }
  /// The validations on text: as TrainOptions::validate_every asks, and after each epoch.
  const std::vector<Validation>& validations() const { return validations_; }
  /// On text, after Run: the prompt and what the network wrote behind it; empty if nothing was asked for.
  const std::string& sample() const { return sample_; }
  /// What the test rows are; see TestSetNote.
  const std::string& test_note() const { return test_note_; }
  /// Number of test rows. 0: synthetic data have no test.
  std::int64_t test_rows() const { return test_rows_; }
  /// Zeros without TrainOptions::skip_damaged.
  const LeftOutPictures& left_out() const { return left_out_; }
  /// SIGINT or SIGTERM, which stopped Run at the end of a step; 0: none did.
  int signal() const { return signal_; }
  /// The profile that TrainOptions::profile_precision asks for, after Run.
  const std::optional<PrecisionProfile>& profile() const { return profile_; }
  /// Steps of all epochs of Run, and the seconds that they took (EpochResult::seconds).
  std::int64_t steps() const;
  double seconds() const;
  /// Seconds of those that steps waited for data.
  double data_wait_seconds() const { return data_wait_seconds_; }

 private:
  /// The epochs of Run, with what watches them: tests, checkpoints, profile and trace.
  /// Errors: the step of --capsule-at is not among those behind `steps_before`. In a run that a signal stopped it is a
  /// warning.
  absl::Status CheckCapsuleStep(std::int64_t steps_before) const;
  /// Where there is a memory budget, runs the test on a batch. Errors: it does not fit.
  absl::Status CheckTestFits();
  absl::Status Train(std::ostream* progress);
  class EpochRecorder;
  explicit Training(const TrainOptions& options) : options_(options) {}
  absl::Status LoadData();
  absl::Status LoadDigits();
  absl::Status LoadPictures();
  void NoteLeftOut(const data::SkippedRows& train, const data::SkippedRows& test);
  absl::Status TestOn(const data::Dataset& rows);
  absl::Status LoadText();
  absl::Status MakeWorkload(const models::WorkloadSizes& sizes);
  absl::Status MakeModel();
  /// Writes and checks the precision locks that are asked for. Errors: what differs from a lock, and those of files.
  absl::Status LockPrecision() const;
  /// Of all epochs. Errors: the warm-up leaves none.
  absl::StatusOr<std::int64_t> StepsToTrain() const;
  absl::StatusOr<TestResult> Test();
  absl::Status Sample();

  TrainOptions options_;
  std::unique_ptr<models::Classifier> classifier_;
  std::unique_ptr<models::Workload> workload_;  ///< in place of it, but on digits and mnist
  nn::SoftmaxCrossEntropyWithLogits loss_{{.sparse = true, .reduction = "mean"}};
  std::unique_ptr<nn::Optimizer> optimizer_;
  std::unique_ptr<Model> model_;
  data::Dataset train_data_{absl::OkStatus()};
  data::Dataset test_data_{absl::OkStatus()};
  std::int64_t test_rows_ = 0;
  std::string test_note_;
  LeftOutPictures left_out_;
  std::string picture_note_;  ///< a line that says what is made of pictures
  std::string resumed_;       ///< a line that says what training goes on from
  std::vector<EpochResult> epochs_;
  TestResult test_;
  double data_wait_seconds_ = 0;
  double test_seconds_ = 0;  ///< seconds of all tests, without compiling
  std::vector<Validation> validations_;
  std::string sample_;
  std::optional<PrecisionProfile> profile_;
  int signal_ = 0;
};

}  // namespace mpc::tools
