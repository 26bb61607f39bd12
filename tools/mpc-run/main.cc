// mpc-run: trains and tests with compiled Programs, on the runtime alone.
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frontend/state/safetensors.h"
#include "tools/mpc-run/describe.h"
#include "tools/mpc-run/replay.h"
#include "tools/mpc-run/results.h"
#include "tools/support/path_flags.h"
#include "tools/support/run_main.h"

namespace mpc::tools {
namespace {

constexpr char kProgram[] = "mpc-run";

absl::Status CheckOutputs(const RunOptions& options) {
  for (const std::string* path :
       {&options.dump_state_path, &options.predictions_path, &options.json_path, &options.times_path}) {
    if (path->empty()) continue;
    if (absl::Status status = CheckWritable(*path); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Run(const RunOptions& options) {
  if (absl::Status status = CheckOutputs(options); !status.ok()) return status;
  if (absl::Status status = CheckChoiceCache(options.choice_cache, options.tune); !status.ok()) return status;
  absl::StatusOr<runtime::Package> package = runtime::ReadProgramFile(options.path);
  if (!package.ok()) return package.status();
  if (options.describe) std::cout << DescribePackage(options.path, *package);
  if (!options.runs()) return absl::OkStatus();
  const absl::StatusOr<std::unique_ptr<Session>> session = Session::Open(options, *std::move(package));
  if (!session.ok()) return session.status();
  RunResults results;
  results.load_only = options.load_only;
  if (options.steps > 0) {
    absl::StatusOr<TrainResult> train = (*session)->Train(std::cout);
    if (!train.ok()) return train.status();
    results.train = *std::move(train);
  }
  if (options.predict) {
    absl::StatusOr<PredictResult> predict = (*session)->Predict();
    if (!predict.ok()) return predict.status();
    results.predict = *std::move(predict);
    if (!options.predictions_path.empty()) {
      const absl::Status status =
          SaveSafetensors(options.predictions_path, {{{"predictions", results.predict->predictions}}, {}});
      if (!status.ok()) return status;
    }
  }
  if (!options.dump_state_path.empty()) {
    if (absl::Status status = (*session)->DumpState(); !status.ok()) return status;
  }
  std::cout << FormatResults(**session, results);
  if (!options.times_path.empty()) {
    const absl::Status status =
        WriteJsonFile(options.times_path, TimesToJson(*(*session)->train_program(), *results.train));
    if (!status.ok()) return status;
  }
  if (options.json_path.empty()) return absl::OkStatus();
  return WriteJsonFile(options.json_path, ResultsToJson(options, **session, results));
}

int Main(int argc, char** argv) {
  const absl::StatusOr<RunCommandLine> line = ParseRunCommandLine(argc, argv);
  if (!line.ok()) return Fail(kProgram, line.status(), kBadUsage);
  if (!line->help.empty()) {
    std::cout << line->help;
    return kSuccess;
  }
  const RunOptions& options = line->options;
  if (!options.replay_path.empty()) {
    const absl::StatusOr<ReplayReport> replay = ReplayCapsule(options);
    if (!replay.ok()) return Fail(kProgram, replay.status(), kFailure);
    std::cout << replay->text;
    return replay->is_equal ? kSuccess : kFailure;
  }
  const absl::Status status = Run(options);
  if (status.ok() && !options.runs() && !options.describe) {
    return Fail(kProgram,
                absl::InvalidArgumentError(absl::StrCat("nothing to do with ", options.path, ": give ",
                                                        "--steps=N, --predict, --load-only, --dump-state=FILE or ",
                                                        "--describe")),
                kBadUsage);
  }
  return status.ok() ? kSuccess : Fail(kProgram, status, kFailure);
}

}  // namespace
}  // namespace mpc::tools

int main(int argc, char** argv) { return mpc::tools::RunMain(mpc::tools::kProgram, mpc::tools::Main, argc, argv); }
