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
                                      absl::StrCat("--image-size=", options.image_size),
                                      absl::StrCat("--tokens=", options.tokens),
                                      absl::StrCat("--threads=", options.threads),
                                      absl::StrCat("--device=", options.device),
                                      absl::StrCat("--steps-per-launch=", options.steps_per_launch),
                                      absl::StrCat("--warmup=", options.warmup),
                                      absl::StrCat("--steps=", options.steps)};
  if (!options.dtype.empty()) command.push_back(absl::StrCat("--dtype=", options.dtype));
  if (!options.graph.empty()) command.push_back(absl::StrCat("--graph=", options.graph));
  if (options.allow_tf32) command.emplace_back("--allow-tf32");
  if (options.tune) command.emplace_back("--tune");
  if (options.choice_cache.has_value()) command.push_back(absl::StrCat("--choice-cache=", *options.choice_cache));
  if (!options.weights_path.empty()) command.push_back(absl::StrCat("--weights=", options.weights_path));
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
  const BenchOptions& first = line->rows.front();
  if (first.single) {
    const absl::StatusOr<RunResult> result = MeasureSteps(first);
    if (!result.ok()) return Fail(kProgram, result.status(), kFailure);
    std::cout << RunToJson(*result).dump() << "\n";
    return kSuccess;
  }
  if (!first.json_path.empty()) {
    if (absl::Status status = CheckWritable(first.json_path); !status.ok()) return Fail(kProgram, status, kFailure);
  }
  Json tables = Json::array();
  for (const BenchOptions& row : line->rows) {
    const absl::StatusOr<std::vector<Contestant>> contestants = MeasureAll(row);
    if (!contestants.ok()) return Fail(kProgram, contestants.status(), kFailure);
    std::cout << (tables.empty() ? "" : "\n") << FormatTable(row, *contestants) << std::flush;
    tables.push_back(TableToJson(row, *contestants));
    // After every row: a long run that ends early leaves what it has measured.
    if (first.json_path.empty()) continue;
    const Json content = line->rows.size() == 1 ? tables[0] : Json{{"rows", tables}};
    if (absl::Status status = WriteJsonFile(first.json_path, content); !status.ok()) {
      return Fail(kProgram, status, kFailure);
    }
  }
  return kSuccess;
}

}  // namespace
}  // namespace mpc::tools

int main(int argc, char** argv) { return mpc::tools::Main(argc, argv); }
