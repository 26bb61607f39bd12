#include "tools/mpc-bench/step_profile.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/report/precision_table.h"
#include "kernels/weight_packing.h"
#include "runtime/executable.h"
#include "runtime/generated_call.h"
#include "tools/mpc-bench/bench_model.h"
#include "tools/mpc-bench/machine_limits.h"
#include "tools/mpc-bench/report.h"
#include "tools/support/stopwatch.h"

namespace mpc::tools {
namespace {

using Bytes = std::vector<absl::Span<const std::uint8_t>>;
using Samples = std::vector<double>;  ///< seconds, one a step

constexpr std::int64_t kLeastSteps = 3;

std::string NameOf(const runtime::Instruction& instruction) {
  return instruction.attributes.GetString(runtime::kOperationsAttribute, instruction.kernel);
}

/// Times of steps, by what their instructions are.
class Collector {
 public:
  explicit Collector(const runtime::Program& program) : program_(program) {}

  void AddStep(const std::vector<runtime::InstructionTime>& times) {
    ++steps_;
    for (const runtime::InstructionTime& time : times) {
      const runtime::Instruction& instruction = program_.step().instructions[time.instruction];
      const Phase phase = instruction.phase;
      Kind& kind = kinds_[{phase, NameOf(instruction)}];
      const double seconds = 1e-6 * time.duration_us;
      Last(kind.seconds) += seconds;
      if (steps_ == 1) ++kind.kernels;
      Kind& whole = phases_[phase];
      Last(whole.seconds) += seconds;
      if (steps_ == 1) ++whole.kernels;
      Last(step_) += seconds;
      if (!IsOfLossScaling(phase)) continue;
      Last(loss_scaling_.seconds) += seconds;
      if (steps_ == 1) ++loss_scaling_.kernels;
    }
  }

  StepProfile Finish() {
    StepProfile profile;
    profile.steps = static_cast<std::int64_t>(steps_);
    profile.seconds = PercentilesOf(step_);
    const auto row = [&](Phase phase, const std::string& name, Kind& kind) {
      Last(kind.seconds);
      const Percentiles seconds = PercentilesOf(kind.seconds);
      const double share = profile.seconds.median > 0 ? seconds.median / profile.seconds.median : 0;
      return ProfileRow{phase, name, kind.kernels, seconds, share};
    };
    for (auto& [key, kind] : kinds_) profile.rows.push_back(row(key.first, key.second, kind));
    std::stable_sort(profile.rows.begin(), profile.rows.end(),
                     [](const ProfileRow& a, const ProfileRow& b) { return a.seconds.median > b.seconds.median; });
    for (auto& [phase, kind] : phases_) profile.phases.push_back(row(phase, "", kind));
    profile.loss_scaling = row(Phase::kScale, "", loss_scaling_);
    return profile;
  }

 private:
  struct Kind {
    std::size_t kernels = 0;
    Samples seconds;
  };

  /// The current step's sample; steps without one before it took no time.
  double& Last(Samples& samples) const {
    samples.resize(steps_);
    return samples.back();
  }

  const runtime::Program& program_;
  std::size_t steps_ = 0;
  Samples step_;
  std::map<std::pair<Phase, std::string>, Kind> kinds_;
  std::map<Phase, Kind> phases_;
  Kind loss_scaling_;
};

/// Matrix work of a step by pass and operation. A region has none, and a kernel's name is its operation's.
struct StepWork {
  std::map<std::pair<Phase, std::string>, double> flops;
  bool low = false;  ///< most of it reads a 16-bit type
};

absl::StatusOr<StepWork> WorkOf(const compiler::Module& final_ir) {
  const absl::StatusOr<std::string> function = compiler::MainFunction(final_ir);
  if (!function.ok()) return function.status();
  const absl::StatusOr<compiler::PrecisionTable> table = compiler::TabulatePrecision(final_ir, *function);
  if (!table.ok()) return table.status();
  StepWork work;
  for (const compiler::PrecisionRow& row : table->rows) {
    if (row.flops > 0) work.flops[{row.backward ? Phase::kBackward : Phase::kForward, row.op}] += row.flops;
  }
  work.low = 2 * table->low_matrix_flops() > table->matrix_flops();
  return work;
}

/// Gives the rows their work, and sums up.
void AddWork(const StepWork& work, StepProfile& profile) {
  MatrixWork& matrix = profile.matrix_work;
  for (ProfileRow& row : profile.rows) {
    if (row.name == kPackWeight) matrix.seconds += row.seconds.median;
    const auto found = work.flops.find({row.phase, row.name});
    if (found == work.flops.end()) continue;
    row.flops = found->second;
    matrix.flops += row.flops;
    matrix.seconds += row.seconds.median;
  }
}

/// What the processor can do in the type that products compute in: f16 is widened.
void MeasureLimit(DType dtype, StepProfile& profile) {
  constexpr int kProbes = 5;
  MatrixWork& matrix = profile.matrix_work;
  if (matrix.flops == 0) return;
  for (int probe = 0; probe < kProbes; ++probe) {
    matrix.flops_a_second = std::max(matrix.flops_a_second, MeasureMultiplyAdd(dtype));
  }
  matrix.instructions = MultiplyAddInstructions(dtype);
}

/// Runs `most` steps, or those that have begun when `seconds` are over.
template <typename Step>
absl::Status Repeat(std::int64_t most, double seconds, const std::vector<Bytes>& batches, const Step& step) {
  const Clock::time_point begin = Clock::now();
  for (std::int64_t i = 0; i < most; ++i) {
    if (i >= kLeastSteps && SecondsSince(begin) > seconds) break;
    if (absl::Status status = step(batches[static_cast<std::size_t>(i) % batches.size()]); !status.ok()) return status;
  }
  return absl::OkStatus();
}

std::string Line(const std::string& name, const ProfileRow& row) {
  const std::string rate =
      row.flops > 0 ? absl::StrFormat(" %9.1f", 1e-9 * row.flops / row.seconds.median) : std::string();
  return absl::StrFormat("%-52s %7d %10.4f %10.4f %10.4f %8.3f%%%s\n", name, row.kernels, 1e3 * row.seconds.median,
                         1e3 * row.seconds.p5, 1e3 * row.seconds.p95, 100 * row.share, rate);
}

std::string Header(const char* what) {
  return absl::StrFormat("%-52s %7s %10s %10s %10s %9s %9s\n", what, "kernels", "ms median", "p5", "p95", "share",
                         "GFLOP/s");
}

/// "backward: relu_grad, batch_norm_train_grad", cut short.
std::string TitleOf(const ProfileRow& row) {
  constexpr std::size_t kLongest = 52;
  std::string title = absl::StrCat(std::string(PhaseName(row.phase)), ": ", row.name);
  if (title.size() > kLongest) title = absl::StrCat(title.substr(0, kLongest - 3), "...");
  return title;
}

Json RowToJson(const ProfileRow& row) {
  Json json = ToJson(row.seconds);
  json["kernels"] = row.kernels;
  json["share"] = row.share;
  if (row.flops > 0) json["flops"] = row.flops;
  return json;
}

}  // namespace

absl::StatusOr<StepProfile> ProfileSteps(const BenchOptions& row) {
  absl::StatusOr<std::unique_ptr<BenchModel>> bench = PrepareBenchModel(row);
  if (!bench.ok()) return bench.status();
  const absl::StatusOr<std::vector<data::Row>> made = BatchesOf(**bench);
  if (!made.ok()) return made.status();
  const std::vector<data::Row>& rows = *made;
  std::vector<Bytes> batches;
  for (const data::Row& columns : rows) {
    Bytes& batch = batches.emplace_back();
    for (const auto& column : columns) batch.push_back(column.bytes());
  }
  const absl::StatusOr<runtime::Executable*> loaded = (*bench)->model().LoadTrainStep(rows[0]);
  if (!loaded.ok()) return loaded.status();
  runtime::Executable& step = **loaded;
  const double seconds = row.seconds_limit();
  absl::Status status =
      Repeat(row.warmup, seconds / 3, batches, [&step](const Bytes& batch) { return step.Run(batch); });
  Collector collector(step.program());
  const auto timed = [&](const Bytes& batch) -> absl::Status {
    const absl::StatusOr<std::vector<runtime::InstructionTime>> times = step.RunTimed(batch);
    if (!times.ok()) return times.status();
    collector.AddStep(*times);
    return absl::OkStatus();
  };
  if (status.ok()) status = Repeat(row.steps, seconds, batches, timed);
  if (!status.ok()) return status;
  const absl::StatusOr<StepWork> work = WorkOf((*bench)->model().compiled().front()->final_ir);
  if (!work.ok()) return work.status();
  StepProfile profile = collector.Finish();
  AddWork(*work, profile);
  if (row.device == "cpu") MeasureLimit(work->low && row.dtype == "bf16" ? DType::kBF16 : DType::kF32, profile);
  return profile;
}

std::string FormatProfile(const BenchOptions& row, const StepProfile& profile) {
  std::string text =
      absl::StrCat(NetworkName(row), ", batch ", row.batch, ", ", ModeName(row), ", ", row.threads,
                   row.threads == 1 ? " thread, " : " threads, ", profile.steps, " steps; ", ProcessorName(), "\n");
  absl::StrAppend(&text, Header("for"));
  std::size_t kernels = 0;
  for (const ProfileRow& phase : profile.phases) {
    absl::StrAppend(&text, Line(std::string(PhaseName(phase.phase)), phase));
    kernels += phase.kernels;
  }
  absl::StrAppend(&text, Line("all", {Phase::kForward, "", kernels, profile.seconds, 1}), Header("kernel"));
  for (const ProfileRow& kernel : profile.rows) absl::StrAppend(&text, Line(TitleOf(kernel), kernel));
  absl::StrAppendFormat(&text, "loss scale, overflow check and skip: %.3f %% of the step's kernels, %.4f ms\n",
                        100 * profile.loss_scaling.share, 1e3 * profile.loss_scaling.seconds.median);
  if (const MatrixWork& work = profile.matrix_work; work.flops > 0) {
    const double rate = work.flops / work.seconds;
    absl::StrAppendFormat(&text, "matrix work: %.2f GFLOP in %.3f ms, %.1f GFLOP/s", 1e-9 * work.flops,
                          1e3 * work.seconds, 1e-9 * rate);
    if (work.flops_a_second > 0) {
      absl::StrAppendFormat(&text, "; multiply-adds on registers (%s): %.1f GFLOP/s, of which this is %.1f %%",
                            work.instructions, 1e-9 * work.flops_a_second, 100 * rate / work.flops_a_second);
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

Json ProfileToJson(const BenchOptions& row, const StepProfile& profile) {
  Json json = {{"model", row.model},
               {"batch", row.batch},
               {"mode", ModeName(row)},
               {"threads", row.threads},
               {"steps", profile.steps},
               {"step", ToJson(profile.seconds)},
               {"loss_scaling", RowToJson(profile.loss_scaling)}};
  if (const MatrixWork& work = profile.matrix_work; work.flops > 0) {
    json["matrix_work"] = {{"flops", work.flops}, {"seconds", work.seconds}};
    if (work.flops_a_second > 0) {
      json["matrix_work"]["limit_flops_a_second"] = work.flops_a_second;
      json["matrix_work"]["limit_instructions"] = work.instructions;
    }
  }
  Json phases = Json::object();
  for (const ProfileRow& phase : profile.phases) {
    phases[std::string(PhaseName(phase.phase))] = RowToJson(phase);
  }
  Json kernels = Json::array();
  for (const ProfileRow& kernel : profile.rows) {
    Json entry = {{"name", kernel.name}, {"for", PhaseName(kernel.phase)}};
    entry.update(RowToJson(kernel));
    kernels.push_back(std::move(entry));
  }
  json["phases"] = std::move(phases);
  json["kernels"] = std::move(kernels);
  return json;
}

}  // namespace mpc::tools
