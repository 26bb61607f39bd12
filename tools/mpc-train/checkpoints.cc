#include "tools/mpc-train/checkpoints.h"

#include <filesystem>
#include <iostream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "mpc/train.h"
#include "tools/support/json_file.h"

namespace mpc::tools {
namespace {

namespace fs = std::filesystem;

bool IsFolder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

/// Writes one file again and again.
class FileSaver : public Callback {
 public:
  FileSaver(std::string path, std::int64_t every) : path_(std::move(path)), every_(every) {}

  bool NeedsState(const RunContext& context) const override {
    return every_ > 0 && (context.global_step + 1) % every_ == 0;
  }
  void OnTrainBegin(RunContext& context) override {
    // New files are made beside what a link leads to.
    const fs::path path(runtime::FollowLinks(path_).value_or(path_));
    const std::string folder = path.parent_path().empty() ? "." : path.parent_path().string();
    RemoveUnfinishedFiles(folder, path.filename().string());
    last_step_ = context.global_step;
  }
  void OnStepEnd(RunContext& context) override {
    const bool stepped = context.global_step != last_step_;
    last_step_ = context.global_step;
    if (stepped && every_ > 0 && context.global_step % every_ == 0) context.Fail(context.SaveCheckpoint(path_));
  }
  void OnTrainEnd(RunContext& context) override { context.Fail(context.SaveCheckpoint(path_)); }

 private:
  std::string path_;
  std::int64_t every_;
  std::int64_t last_step_ = 0;
};

/// The checkpoint to go on from. Errors (NOT_FOUND): there is none.
absl::StatusOr<std::string> FindCheckpoint(const std::string& path) {
  if (IsFolder(path)) return LatestCheckpoint(path);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return absl::NotFoundError(absl::StrCat("there is no checkpoint ", path));
  return path;
}

}  // namespace

absl::Status CheckSavePath(const TrainOptions& options) {
  if (options.save_path.empty()) return absl::OkStatus();
  if (!SavesToFolder(options)) return CheckWritable(options.save_path);
  if (IsFolder(options.save_path)) return CheckWritable((fs::path(options.save_path) / kCheckpointPrefix).string());
  return CheckWritable(options.save_path.substr(0, options.save_path.find_last_not_of('/') + 1));
}

std::unique_ptr<Callback> MakeSaver(const TrainOptions& options) {
  if (options.save_path.empty()) return nullptr;
  if (!SavesToFolder(options)) return std::make_unique<FileSaver>(options.save_path, options.save_every);
  ModelCheckpointOptions saving;
  saving.directory = options.save_path;
  saving.save_checkpoint_steps = options.save_every;
  saving.keep_checkpoint_max = options.keep;
  return std::make_unique<ModelCheckpoint>(saving);
}

absl::Status InFlags(const absl::Status& status) {
  return absl::Status(
      status.code(),
      absl::StrReplaceAll(status.message(),
                          {{"LoadCheckpoint(path, {.continue_run = false})", "--load=FILE in place of --resume"},
                           {"LoadParamIntoNet(network, path)", "--load=FILE in place of --resume"}}));
}

absl::StatusOr<std::string> Resume(const TrainOptions& options, Model& model) {
  if (!options.resume) return std::string();
  const bool named = !options.resume_path.empty();
  absl::StatusOr<std::string> path = FindCheckpoint(named ? options.resume_path : options.save_path);
  if (!named && absl::IsNotFound(path.status())) {
    return absl::StrCat("no checkpoint in ", options.save_path, " yet: training begins");
  }
  if (!path.ok()) return path.status();
  absl::StatusOr<ResumeReport> report = model.LoadCheckpoint(*path);
  if (!report.ok()) return InFlags(report.status());
  for (const std::string& difference : report->differences) std::cerr << "warning: " << difference << "\n";
  const absl::StatusOr<Tensor> seed = model.State("rng.seed").Value();
  if (seed.ok() && seed->Item<std::int64_t>() != options.seed) {
    std::cerr << "warning: the checkpoint was trained with --seed=" << seed->Item<std::int64_t>()
              << "; with --seed=" << options.seed << " the data come in another order\n";
  }
  const TrainPosition& position = report->position;
  return absl::StrCat("resumed ", *path, ": ", report->global_step, " steps, ", position.run_epoch, " epochs",
                      position.step_in_epoch > 0
                          ? absl::StrCat(" and ", position.step_in_epoch, " of ", position.steps_per_epoch, " steps")
                          : "",
                      " done");
}

}  // namespace mpc::tools
