#include "tools/mpc-bench/measure.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/executable.h"
#include "runtime/version.h"
#include "tools/mpc-bench/bench_model.h"
#include "tools/mpc-bench/rank_group.h"
#include "tools/mpc-bench/resident_memory.h"
#include "tools/mpc-bench/step_reductions.h"
#include "tools/support/launch_times.h"
#include "tools/support/percentiles.h"
#include "tools/support/stopwatch.h"

namespace mpc::tools {
namespace {

using Bytes = std::vector<absl::Span<const std::uint8_t>>;

constexpr std::size_t kMostReductions = 100;  ///< samples of a step's reductions without the step, at most

/// How many steps: `most`, or those that have begun when `seconds` are over, but `least`.
struct StepLimit {
  std::int64_t most = 0;
  std::int64_t least = 0;
  double seconds = 0;
};

/// What was seen of the steps that ran.
struct TimedSteps {
  std::vector<double> seconds;  ///< one a step
  std::vector<double> losses;   ///< one a step; empty on a device that runs ahead
};

/// The loss of the last step that was started; waits for the step.
absl::StatusOr<double> LossOfLastStep(const runtime::Executable& step) {
  const absl::StatusOr<absl::Span<const std::uint8_t>> bytes = step.OutputOfStep(step.steps_started() - 1, 0);
  if (!bytes.ok()) return bytes.status();
  const runtime::NamedValue& loss = step.program().outputs.at(0);
  const TensorSpec& spec = step.program().values[static_cast<std::size_t>(loss.value)].spec;
  return Tensor::FromBytes(spec, bytes->data(), bytes->size()).ToFloats().at(0);
}

/// Runs steps on the batches in turn: each step of the run takes the batch of its number.
absl::StatusOr<TimedSteps> TimeSteps(runtime::Executable& step, const std::vector<Bytes>& batches,
                                     const StepLimit& limit) {
  const std::uint64_t first = step.steps_started();
  const std::int64_t most = step.steps_per_launch();
  TimedSteps timed;
  LaunchTimes times(step);
  const Clock::time_point begin = Clock::now();
  for (std::int64_t done = 0; done < limit.most;) {
    if (done >= limit.least && SecondsSince(begin) > limit.seconds) break;
    const std::int64_t count = std::min(most, limit.most - done);
    std::vector<runtime::StepInputs> inputs;
    for (std::int64_t i = 0; i < count; ++i) {
      inputs.emplace_back(batches[(first + static_cast<std::uint64_t>(done + i)) % batches.size()]);
    }
    const std::uint64_t before = step.steps_started();
    times.Begin();
    if (absl::Status status = count == 1 ? step.Run(inputs[0]) : step.RunSteps(inputs); !status.ok()) return status;
    const std::uint64_t ended = times.runs_ahead() ? before : step.steps_started();
    if (ended > first) {
      if (absl::Status status = step.OutputOfStep(ended - 1, 0).status(); !status.ok()) return status;
    }
    times.Add(count);
    if (!times.runs_ahead()) {
      const absl::StatusOr<double> loss = LossOfLastStep(step);
      if (!loss.ok()) return loss.status();
      timed.losses.push_back(*loss);
    }
    done += count;
  }
  if (times.runs_ahead()) {
    if (absl::Status status = step.OutputOfStep(step.steps_started() - 1, 0).status(); !status.ok()) return status;
  }
  times.Finish();
  timed.seconds = times.TakeStepSeconds();
  return timed;
}

/// In several ranks a number of steps that all of them run. It is how many rank 0 can in the limit's time, if one takes
/// `step_seconds`. In one process it is the limit itself, which the clock ends.
absl::StatusOr<StepLimit> AgreedLimit(const RankGroup& group, StepLimit limit, double step_seconds) {
  if (group.communicator() == nullptr) return limit;
  const double fitting = std::min(limit.seconds / step_seconds, static_cast<double>(limit.most));
  limit.most = std::min(limit.most, std::max(limit.least, static_cast<std::int64_t>(fitting)));
  if (absl::Status status = group.TakeFromFirst(limit.most); !status.ok()) return status;
  limit.seconds = std::numeric_limits<double>::infinity();
  return limit;
}

/// Adds the time of what ranks send each other in a step, without the rest of it.
absl::Status AddReductions(const runtime::Program& program, Communicator& communicator, RunResult& result) {
  absl::StatusOr<StepReductions> reductions = StepReductions::Create(program);
  if (!reductions.ok()) return reductions.status();
  absl::StatusOr<std::vector<double>> seconds = TimeReductions(
      *reductions, communicator, static_cast<int>(std::min(result.step_seconds.size(), kMostReductions)));
  if (!seconds.ok()) return seconds.status();
  result.reduction_seconds = *std::move(seconds);
  result.reduction_bytes = reductions->bytes();
  return absl::OkStatus();
}

/// Warms up and measures. `step_seconds` is what one step took.
absl::Status MeasureTimes(runtime::Executable& step, const std::vector<Bytes>& batches, const BenchOptions& options,
                          const RankGroup& group, double step_seconds, RunResult& result) {
  const double seconds = options.seconds_limit();
  const absl::StatusOr<StepLimit> warmup =
      AgreedLimit(group, {.most = options.warmup, .least = 1, .seconds = seconds / 3}, step_seconds);
  if (!warmup.ok()) return warmup.status();
  const absl::StatusOr<TimedSteps> warm = TimeSteps(step, batches, *warmup);
  if (!warm.ok()) return warm.status();
  if (!warm->seconds.empty()) step_seconds = PercentilesOf(warm->seconds).median;
  const absl::StatusOr<StepLimit> measured =
      AgreedLimit(group, {.most = options.steps, .least = 3, .seconds = seconds}, step_seconds);
  if (!measured.ok()) return measured.status();
  result.steps_before = step.steps_started();
  absl::StatusOr<TimedSteps> samples = TimeSteps(step, batches, *measured);
  if (!samples.ok()) return samples.status();
  result.step_seconds = std::move(samples->seconds);
  result.losses = std::move(samples->losses);
  return absl::OkStatus();
}

std::string SettingsOf(const BenchOptions& options) {
  if (options.device == "cpu") {
    return absl::StrCat(options.fuses() ? "fused regions" : "unfused", options.tune ? ", tuned" : "",
                        options.allow_winograd ? ", Winograd" : "");
  }
  return absl::StrCat("graph ", options.graph.value_or(true) ? "on" : "off", ", ", options.steps_per_launch,
                      options.steps_per_launch == 1 ? " step" : " steps", " a launch, ",
                      options.tune ? "tuned" : "heuristic choices", ", TF32 ", options.allow_tf32 ? "on" : "off",
                      !options.pad_classes.has_value() ? ""
                      : *options.pad_classes           ? ", heads padded"
                                                       : ", heads not padded",
                      options.allow_conv_statistics ? ", statistics in convolutions" : "");
}

}  // namespace

absl::StatusOr<RunResult> MeasureSteps(const BenchOptions& options) {
  const absl::StatusOr<std::unique_ptr<RankGroup>> joined = RankGroup::Join(options);
  if (!joined.ok()) return joined.status();
  const RankGroup& group = **joined;
  ResidentMemory memory;
  absl::StatusOr<std::unique_ptr<BenchModel>> bench = PrepareBenchModel(options);
  if (!bench.ok()) return bench.status();
  absl::StatusOr<std::vector<data::Row>> made = BatchesOf(**bench);
  if (!made.ok()) return made.status();
  const std::vector<data::Row> rows = group.RowsOf(*std::move(made));
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
  const Clock::time_point run_begin = Clock::now();
  if (absl::Status status = step.Run(batches[0]); !status.ok()) return status;
  absl::StatusOr<double> loss = LossOfLastStep(step);
  if (!loss.ok()) return loss.status();
  result.first_step_seconds = SecondsSince(begin);
  result.first_loss = *loss;
  const double step_seconds = SecondsSince(run_begin);
  memory.EndFirstStep();

  if (absl::Status status = MeasureTimes(step, batches, options, group, step_seconds, result); !status.ok()) {
    return status;
  }
  loss = LossOfLastStep(step);
  if (!loss.ok()) return loss.status();
  result.final_loss = *loss;
  result.resident = memory.growth();
  const runtime::MemoryUse planned = step.memory();
  result.peak_bytes = planned.arena + planned.state + planned.other;
  for (const compiler::PhaseTime& phase : (*bench)->model().compiled().front()->phases) {
    if (phase.depth == 0) result.compile_seconds.emplace_back(phase.name, phase.seconds);
  }
  if (group.communicator() == nullptr) return result;
  const absl::Status reduced = AddReductions(step.program(), *group.communicator(), result);
  if (!reduced.ok()) return reduced;
  return result;
}

}  // namespace mpc::tools
