// mpc-train: trains a network of models/ and says how well it does.
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <numbers>
#include <string>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/report/report.h"
#include "compiler/report/step_page.h"
#include "mpc/distributed.h"
#include "runtime/atomic_file.h"
#include "tools/mpc-train/dcgan.h"
#include "tools/mpc-train/emit.h"
#include "tools/mpc-train/process_options.h"
#include "tools/mpc-train/sample.h"
#include "tools/mpc-train/summary.h"
#include "tools/mpc-train/timing_tree.h"
#include "tools/mpc-train/training.h"
#include "tools/support/run_main.h"

namespace mpc::tools {
namespace {

constexpr char kProgram[] = "mpc-train";

void PrintResults(const TrainOptions& options, const Training& training) {
  const Model& model = training.model();
  if (options.data == kText) {
    std::cout << absl::StrFormat("validation loss %s (%.3f bits a byte, %d windows)\n",
                                 FormatLoss(training.test().loss), training.test().loss / std::numbers::ln2,
                                 training.test_rows());
  } else if (training.test_rows() > 0) {
    const auto right = std::llround(training.test().accuracy * static_cast<double>(training.test_rows()));
    std::cout << absl::StrFormat("test accuracy %.2f %% (%d of %d%s), test loss %s\n", 100 * training.test().accuracy,
                                 right, training.test_rows(), training.test_note(), FormatLoss(training.test().loss));
  }
  if (const LeftOutPictures& left_out = training.left_out(); left_out.train + left_out.test > 0) {
    std::cout << absl::StrFormat("damaged pictures left out: %d of training, %d of the test; the first: %s\n",
                                 left_out.train, left_out.test, left_out.first_error);
  }
  if (training.steps() > 0) {
    std::cout << absl::StrFormat("%d steps in %.2f s, %s; %d skipped, loss scale %.10g\n", training.steps(),
                                 training.seconds(), StepRate(training.steps(), training.seconds()),
                                 model.skipped_steps(), model.loss_scale());
  }
  std::cout << absl::StrFormat("%d programs compiled in %.2f s; peak %.1f MiB of state, temporaries and constants\n",
                               model.compiled().size(), TotalSeconds(model.compiled()),
                               static_cast<double>(model.peak_bytes()) / (1 << 20));
  if (!training.sample().empty()) {
    std::cout << absl::StrFormat("sample at temperature %g:\n%s\n", options.temperature, Printable(training.sample()));
  }
}

/// The training step on a full batch, which is compiled before others, or the test if nothing was trained. Null:
/// nothing was compiled.
const compiler::CompileResult* ReportedProgram(const Training& training) {
  const std::vector<const compiler::CompileResult*> programs = training.model().compiled();
  for (const compiler::CompileResult* program : programs) {
    if (program->options.function == "train_step") return program;
  }
  return programs.empty() ? nullptr : programs.front();
}

void PrintReport(const Training& training) {
  const compiler::CompileResult* const program = ReportedProgram(training);
  if (program != nullptr) std::cout << compiler::PrecisionReport(*program);
}

/// Writes the page of the step that PrintReport prints.
absl::Status WritePage(const TrainOptions& options, const Training& training) {
  const compiler::CompileResult* const program = ReportedProgram(training);
  if (program == nullptr) return absl::FailedPreconditionError("--report-html shows a step, and none was compiled");
  const absl::StatusOr<std::string> page =
      compiler::StepPage(options.model, {{program->options.level, program, ""}}, 0);
  return page.ok() ? runtime::WriteTextFile(options.report_html_path, *page) : page.status();
}

absl::Status WriteResults(const TrainOptions& options, const Training& training) {
  if (!options.report_html_path.empty()) {
    if (absl::Status status = WritePage(options, training); !status.ok()) return status;
  }
  if (options.summary_path.empty()) return absl::OkStatus();
  return WriteJsonFile(options.summary_path, MakeSummary(options, training));
}

/// Where compiling spent its time, and how long steps waited for data.
void PrintTiming(const Training& training) {
  std::cout << FormatTimingTree(training.model().compiled());
  const double share = training.data_wait_seconds() / std::max(training.seconds(), 1e-12);
  std::cout << absl::StrFormat("steps waited %.6f s for data, %.2f%% of their time\n", training.data_wait_seconds(),
                               100 * share);
}

/// Says why a run ended early, and gives the exit code. Of several processes each does, whichever got the signal.
int EndOf(const TrainOptions& options, int signal, int processes = 1) {
  if (signal == 0) return kSuccess;
  // One piece, since the other processes write there too.
  std::cerr << absl::StrFormat(
      "%s: stopped by %s at the end of a step%s; %s\n", kProgram, signal == SIGINT ? "SIGINT" : "SIGTERM",
      processes > 1 ? absl::StrFormat(", as all %d processes", processes) : "",
      options.save_path.empty() ? "nothing is saved without --save" : "saved in " + options.save_path);
  return StoppedBy(signal);
}

/// Says what has failed, and tells it to the processes of the group.
int FailInGroup(const absl::Status& status) {
  const int code = Fail(kProgram, status, kFailure);
  distributed::Finalize(status);
  return code;
}

int MainOfDcgan(const TrainOptions& options) {
  const absl::StatusOr<DcganResult> result = TrainDcgan(options, options.quiet ? nullptr : &std::cout);
  if (!result.ok()) return Fail(kProgram, result.status(), kFailure);
  std::vector<std::string> scales;
  for (double scale : result->loss_scales) scales.push_back(absl::StrFormat("%.10g", scale));
  std::cout << absl::StrFormat("%d steps in %.2f s, %.0f steps/s; %d skipped, loss scales %s\n", result->steps,
                               result->seconds, static_cast<double>(result->steps) / std::max(result->seconds, 1e-9),
                               result->skipped, scales.empty() ? "none" : absl::StrJoin(scales, ", "));
  if (!options.summary_path.empty()) {
    const absl::Status status = WriteJsonFile(options.summary_path, result->Summary(options));
    if (!status.ok()) return Fail(kProgram, status, kFailure);
  }
  return EndOf(options, result->signal);
}

/// Joins the processes that a launcher has started. Rank 0 alone prints and writes files. Threads are shared by the
/// ranks of a machine.
absl::Status JoinProcesses(TrainOptions& options) {
  absl::Status status = SetAutoParallelContext(ParallelOptionsOf(options));
  if (status.ok()) status = distributed::Init({.transport = TransportOf(options)});
  if (status.ok()) status = SetRanks(distributed::GetRankSize(), options);
  if (!status.ok()) return status;
  if (options.threads == 0) options.threads = distributed::GetRankThreads();
  if (distributed::GetRank() == 0) {
    if (!options.quiet) {
      std::cout << absl::StrFormat("%d processes train together, each with %d threads\n", distributed::GetRankSize(),
                                   options.threads);
    }
    return absl::OkStatus();
  }
  std::cout.rdbuf(nullptr);
  options.quiet = true;
  options.profile_precision = false;
  options.sample_bytes = 0;
  options.amp.verbosity = 0;
  // A plot needs a record that is compiled, in every rank. Rank 0 alone has its callback.
  for (std::string* path : {&options.summary_path, &options.trace_path, &options.profile_path,
                            &options.lock_precision_path, &options.report_html_path}) {
    path->clear();
  }
  return absl::OkStatus();
}

void WarnOfProcessesAlone(const TrainOptions& options) {
  const std::string note = NoteOfProcessesAlone(options);
  if (!note.empty()) std::cerr << kProgram << ": " << note << "\n";
}

int Main(int argc, char** argv) {
  absl::StatusOr<CommandLine> line = ParseCommandLine(argc, argv);
  if (!line.ok()) return Fail(kProgram, line.status(), kBadUsage);
  if (!line->help.empty()) {
    std::cout << line->help;
    return kSuccess;
  }
  const TrainOptions& options = line->options;
  WarnOfProcessesAlone(options);
  if (!options.emit_path.empty()) {
    const absl::Status status = EmitPrograms(options, options.quiet ? nullptr : &std::cout);
    return status.ok() ? kSuccess : Fail(kProgram, status, kFailure);
  }
  if (options.model == kDcgan) return MainOfDcgan(options);
  if (options.distributed) {
    if (absl::Status status = JoinProcesses(line->options); !status.ok()) return FailInGroup(status);
  }
  absl::StatusOr<std::unique_ptr<Training>> created = Training::Create(options);
  if (!created.ok()) return FailInGroup(created.status());
  Training& training = **created;
  if (options.precision_frontier_points > 0) {
    const absl::Status status = training.FindFrontier(std::cout);
    return status.ok() ? kSuccess : Fail(kProgram, status, kFailure);
  }
  if (absl::Status status = training.Run(options.quiet ? nullptr : &std::cout); !status.ok()) {
    return FailInGroup(status);
  }
  const int processes = distributed::GetRankSize();
  const bool prints = distributed::GetRank() == 0;
  if (prints) PrintResults(options, training);
  distributed::Finalize();
  if (!prints) return EndOf(options, training.signal(), processes);
  if (training.profile().has_value()) std::cout << training.profile()->Table();
  if (options.timing) PrintTiming(training);
  if (options.report) PrintReport(training);
  if (absl::Status status = WriteResults(options, training); !status.ok()) return Fail(kProgram, status, kFailure);
  return EndOf(options, training.signal(), processes);
}

}  // namespace
}  // namespace mpc::tools

int main(int argc, char** argv) { return mpc::tools::RunMain(mpc::tools::kProgram, mpc::tools::Main, argc, argv); }
