#include "tools/mpc-bench/measure.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "runtime/executable.h"
#include "runtime/version.h"
#include "tools/mpc-bench/bench_model.h"
#include "tools/mpc-bench/resident_memory.h"
#include "tools/support/stopwatch.h"

namespace mpc::tools {
namespace {

using Bytes = std::vector<absl::Span<const std::uint8_t>>;

/// How many steps: `most`, or those that have begun when `seconds` are over, but `least`.
struct StepLimit {
  std::int64_t most = 0;
  std::int64_t least = 0;
  double seconds = 0;
};

/// Runs steps on the batches in turn and returns seconds, one a step.
absl::StatusOr<std::vector<double>> TimeSteps(runtime::Executable& step, const std::vector<Bytes>& batches,
                                              const StepLimit& limit) {
  const std::int64_t most = step.steps_per_launch();
  const bool runs_ahead = step.steps_kept() >= 2 * static_cast<std::uint64_t>(most);
  std::vector<double> seconds;
  seconds.reserve(static_cast<std::size_t>(limit.most));
  std::int64_t waiting = 0;  ///< steps of the launch whose end has not been seen
  const Clock::time_point begin = Clock::now();
  Clock::time_point last_end = begin;
  const auto see_end = [&](std::uint64_t last_step) -> absl::Status {
    if (waiting == 0) return absl::OkStatus();
    if (absl::Status status = step.OutputOfStep(last_step, 0).status(); !status.ok()) return status;
    const Clock::time_point end = Clock::now();
    const double each = std::chrono::duration<double>(end - last_end).count() / static_cast<double>(waiting);
    seconds.insert(seconds.end(), static_cast<std::size_t>(waiting), each);
    last_end = end;
    return absl::OkStatus();
  };
  for (std::int64_t done = 0; done < limit.most;) {
    if (done >= limit.least && SecondsSince(begin) > limit.seconds) break;
    const std::int64_t count = std::min(most, limit.most - done);
    std::vector<runtime::StepInputs> inputs;
    for (std::int64_t i = 0; i < count; ++i) {
      inputs.emplace_back(batches[static_cast<std::size_t>(done + i) % batches.size()]);
    }
    const std::uint64_t before = step.steps_started();
    if (!runs_ahead) last_end = Clock::now();
    if (absl::Status status = count == 1 ? step.Run(inputs[0]) : step.RunSteps(inputs); !status.ok()) return status;
    if (runs_ahead) {
      if (absl::Status status = see_end(before - 1); !status.ok()) return status;
    }
    waiting = count;
    if (!runs_ahead) {
      if (absl::Status status = see_end(step.steps_started() - 1); !status.ok()) return status;
    }
    done += count;
  }
  if (runs_ahead) {
    if (absl::Status status = see_end(step.steps_started() - 1); !status.ok()) return status;
  }
  return seconds;
}

/// The loss of the last step that was started; waits for the step.
absl::StatusOr<double> LossOfLastStep(const runtime::Executable& step) {
  const absl::StatusOr<absl::Span<const std::uint8_t>> bytes = step.OutputOfStep(step.steps_started() - 1, 0);
  if (!bytes.ok()) return bytes.status();
  const runtime::NamedValue& loss = step.program().outputs.at(0);
  const TensorSpec& spec = step.program().values[static_cast<std::size_t>(loss.value)].spec;
  return Tensor::FromBytes(spec, bytes->data(), bytes->size()).ToFloats().at(0);
}

std::string SettingsOf(const BenchOptions& options) {
  if (options.device == "cpu") {
    return absl::StrCat(options.fuses() ? "fused regions" : "unfused", options.tune ? ", tuned" : "",
                        options.allow_winograd ? ", Winograd" : "");
  }
  return absl::StrCat("graph ", options.graph.empty() ? "on" : options.graph, ", ", options.steps_per_launch,
                      options.steps_per_launch == 1 ? " step" : " steps", " a launch, ",
                      options.tune ? "tuned" : "heuristic choices", ", TF32 ", options.allow_tf32 ? "on" : "off",
                      options.allow_conv_statistics ? ", statistics in convolutions" : "");
}

}  // namespace

absl::StatusOr<RunResult> MeasureSteps(const BenchOptions& options) {
  ResidentMemory memory;
  absl::StatusOr<std::unique_ptr<BenchModel>> bench = PrepareBenchModel(options);
  if (!bench.ok()) return bench.status();
  const std::vector<data::Row> rows = BatchesOf(**bench);
  std::vector<Bytes> batches;
  std::size_t batch_bytes = 0;
  for (const data::Row& row : rows) {
    Bytes& batch = batches.emplace_back();
    for (const Tensor& column : row) batch_bytes += batch.emplace_back(column.bytes()).size();
  }
  memory.LeaveOut(batch_bytes);

  RunResult result;
  result.version = absl::StrCat("mpc ", MPC_VERSION);
  result.settings = SettingsOf(options);
  const Clock::time_point begin = Clock::now();
  const absl::StatusOr<runtime::Executable*> loaded = (*bench)->model().LoadTrainStep(rows[0]);
  if (!loaded.ok()) return loaded.status();
  runtime::Executable& step = **loaded;
  if (absl::Status status = step.Run(batches[0]); !status.ok()) return status;
  absl::StatusOr<double> loss = LossOfLastStep(step);
  if (!loss.ok()) return loss.status();
  result.first_step_seconds = SecondsSince(begin);
  result.first_loss = *loss;
  memory.EndFirstStep();

  const double seconds = options.seconds_limit();
  const StepLimit warmup = {.most = options.warmup, .least = 1, .seconds = seconds / 3};
  if (absl::Status status = TimeSteps(step, batches, warmup).status(); !status.ok()) return status;
  const StepLimit measured = {.most = options.steps, .least = 3, .seconds = seconds};
  absl::StatusOr<std::vector<double>> samples = TimeSteps(step, batches, measured);
  if (!samples.ok()) return samples.status();
  result.step_seconds = *std::move(samples);
  loss = LossOfLastStep(step);
  if (!loss.ok()) return loss.status();
  result.final_loss = *loss;
  result.resident = memory.growth();
  const runtime::MemoryUse planned = step.memory();
  result.peak_bytes = planned.arena + planned.state + planned.other;
  for (const compiler::PhaseTime& phase : (*bench)->model().compiled().front()->phases) {
    if (phase.depth == 0) result.compile_seconds.emplace_back(phase.name, phase.seconds);
  }
  return result;
}

}  // namespace mpc::tools
