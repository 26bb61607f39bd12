// mpc-bench: how long the compiled training step takes, beside a peer if one is asked for.
#include <iostream>

#include "absl/strings/str_cat.h"
#include "tools/mpc-bench/measure.h"
#include "tools/mpc-bench/options.h"
#include "tools/mpc-bench/peer.h"
#include "tools/mpc-bench/report.h"
#include "tools/mpc-bench/subprocess.h"
#include "tools/support/exit_code.h"

namespace mpc::tools {
namespace {

constexpr char kProgram[] = "mpc-bench";

/// One run of mpc in a process of its own, so that it starts as cold as the peer's.
absl::StatusOr<RunResult> MeasureInProcess(const BenchOptions& options) {
  std::vector<std::string> command = {"/proc/self/exe",
                                      options.model,
                                      "--single",
                                      absl::StrCat("--batch=", options.batch),
                                      absl::StrCat("--amp-level=", options.amp_level),
                                      absl::StrCat("--threads=", options.threads),
                                      absl::StrCat("--warmup=", options.warmup),
                                      absl::StrCat("--steps=", options.steps)};
  if (!options.dtype.empty()) command.push_back(absl::StrCat("--dtype=", options.dtype));
  absl::StatusOr<std::string> output = RunAndCapture(command);
  if (!output.ok()) return output.status();
  return RunFromJson(*output);
}

absl::StatusOr<std::vector<Contestant>> MeasureAll(const BenchOptions& options) {
  std::vector<Contestant> contestants = {{.name = "mpc", .runs = {}}};
  if (!options.peer.empty()) {
    if (absl::Status status = CheckTorch(options); !status.ok()) return status;
    contestants.push_back({.name = options.peer, .runs = {}});
  }
  for (std::int64_t run = 0; run < options.runs; ++run) {
    for (std::size_t i = 0; i < contestants.size(); ++i) {
      absl::StatusOr<RunResult> result = i == 0 ? MeasureInProcess(options) : MeasureTorch(options);
      if (!result.ok()) return result.status();
      contestants[i].runs.push_back(*std::move(result));
    }
  }
  return contestants;
}

int Main(int argc, char** argv) {
  const absl::StatusOr<BenchCommandLine> line = ParseBenchCommandLine(argc, argv);
  if (!line.ok()) return Fail(kProgram, line.status(), kBadUsage);
  if (!line->help.empty()) {
    std::cout << line->help;
    return kSuccess;
  }
  const BenchOptions& options = line->options;
  if (options.single) {
    const absl::StatusOr<RunResult> result = MeasureSteps(options);
    if (!result.ok()) return Fail(kProgram, result.status(), kFailure);
    std::cout << RunToJson(*result).dump() << "\n";
    return kSuccess;
  }
  if (!options.json_path.empty()) {
    if (absl::Status status = CheckWritable(options.json_path); !status.ok()) return Fail(kProgram, status, kFailure);
  }
  const absl::StatusOr<std::vector<Contestant>> contestants = MeasureAll(options);
  if (!contestants.ok()) return Fail(kProgram, contestants.status(), kFailure);
  std::cout << FormatTable(options, *contestants);
  if (!options.json_path.empty()) {
    const absl::Status status = WriteJsonFile(options.json_path, TableToJson(options, *contestants));
    if (!status.ok()) return Fail(kProgram, status, kFailure);
  }
  return kSuccess;
}

}  // namespace
}  // namespace mpc::tools

int main(int argc, char** argv) { return mpc::tools::Main(argc, argv); }
