// mpc-bench measures how long the compiled training step takes, beside peers if they are asked for, and where its time
// goes. It also measures how fast operations are beside what the machine can do, how fast pictures are read, and how
// long sums over processes take.
#include <iostream>

#include "runtime/atomic_file.h"
#include "tools/mpc-bench/chart.h"
#include "tools/mpc-bench/data_contest.h"
#include "tools/mpc-bench/data_report.h"
#include "tools/mpc-bench/op_bench.h"
#include "tools/mpc-bench/op_report.h"
#include "tools/mpc-bench/options.h"
#include "tools/mpc-bench/reduction_bench.h"
#include "tools/mpc-bench/report.h"
#include "tools/mpc-bench/start.h"
#include "tools/mpc-bench/step_profile.h"
#include "tools/support/run_main.h"

namespace mpc::tools {
namespace {

constexpr char kProgram[] = "mpc-bench";

absl::Status CheckOutputs(const BenchCommandLine& line) {
  for (const std::string& path : {line.json_path, line.svg_path}) {
    if (path.empty()) continue;
    if (absl::Status status = CheckWritable(path); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status MeasureOnce(const BenchOptions& row) {
  const absl::StatusOr<RunResult> result = MeasureSteps(row);
  if (!result.ok()) return result.status();
  std::cout << RunToJson(*result).dump() << "\n";
  return absl::OkStatus();
}

absl::Status MeasureNetworks(const BenchCommandLine& line) {
  std::vector<Json> rows;
  for (const BenchOptions& row : line.rows) {
    const absl::StatusOr<std::vector<Contestant>> contestants = MeasureRow(row);
    if (!contestants.ok()) return contestants.status();
    std::cout << (rows.empty() ? "" : "\n") << FormatTable(row, *contestants) << std::flush;
    for (Json& json : RowsToJson(row, *contestants)) rows.push_back(std::move(json));
    // After every row: a long run that ends early leaves what it has measured.
    if (!line.json_path.empty()) {
      if (absl::Status status = WriteJsonFile(line.json_path, Json{{"rows", rows}}); !status.ok()) return status;
    }
    if (!line.svg_path.empty()) {
      if (absl::Status status = runtime::WriteTextFile(line.svg_path, RatioChart(rows)); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

absl::Status ProfileNetworks(const BenchCommandLine& line) {
  Json rows = Json::array();
  for (const BenchOptions& row : line.rows) {
    const absl::StatusOr<StepProfile> profile = ProfileSteps(row);
    if (!profile.ok()) return profile.status();
    std::cout << (rows.empty() ? "" : "\n") << FormatProfile(row, *profile) << std::flush;
    rows.push_back(ProfileToJson(row, *profile));
  }
  if (line.json_path.empty()) return absl::OkStatus();
  return WriteJsonFile(line.json_path, Json{{"profiles", rows}});
}

absl::Status MeasureOperations(const BenchCommandLine& line) {
  const absl::StatusOr<OpTable> table = MeasureOps(line.ops);
  if (!table.ok()) return table.status();
  std::cout << FormatOpTable(line.ops, *table) << std::flush;
  if (line.json_path.empty()) return absl::OkStatus();
  return WriteJsonFile(line.json_path, OpTableToJson(line.ops, *table));
}

absl::Status MeasurePictures(const BenchCommandLine& line) {
  const absl::StatusOr<DataTable> table = MeasureData(line.data);
  if (!table.ok()) return table.status();
  std::cout << FormatDataTable(line.data, *table) << std::flush;
  if (line.json_path.empty()) return absl::OkStatus();
  return WriteJsonFile(line.json_path, DataTableToJson(line.data, *table));
}

absl::Status MeasureSums(const BenchCommandLine& line) {
  const absl::StatusOr<std::vector<ReductionTimes>> times = MeasureReductions(line.reductions);
  if (!times.ok()) return times.status();
  std::cout << FormatReductions(line.reductions, *times) << std::flush;
  if (line.json_path.empty()) return absl::OkStatus();
  return WriteJsonFile(line.json_path, ReductionsToJson(line.reductions, *times));
}

int Main(int argc, char** argv) {
  const absl::StatusOr<BenchCommandLine> line = ParseBenchCommandLine(argc, argv);
  if (!line.ok()) return Fail(kProgram, line.status(), kBadUsage);
  if (!line->help.empty()) {
    std::cout << line->help;
    return kSuccess;
  }
  absl::Status status = CheckOutputs(*line);
  if (status.ok()) {
    if (!line->ops.names.empty()) {
      status = MeasureOperations(*line);
    } else if (line->data.measured) {
      status = MeasurePictures(*line);
    } else if (line->reductions.measured) {
      status = MeasureSums(*line);
    } else if (line->rows.front().single) {
      status = MeasureOnce(line->rows.front());
    } else if (line->rows.front().profile) {
      status = ProfileNetworks(*line);
    } else if (!line->rows.front().start_folder.empty()) {
      status = WriteStart(line->rows.front(), line->rows.front().start_folder);
    } else {
      status = MeasureNetworks(*line);
    }
  }
  return status.ok() ? kSuccess : Fail(kProgram, status, kFailure);
}

}  // namespace
}  // namespace mpc::tools

int main(int argc, char** argv) { return mpc::tools::RunMain(mpc::tools::kProgram, mpc::tools::Main, argc, argv); }
