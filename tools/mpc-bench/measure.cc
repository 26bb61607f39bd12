#include "tools/mpc-bench/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "runtime/executable.h"
#include "tools/mpc-bench/bench_model.h"
#include "tools/support/synthetic_data.h"

namespace mpc::tools {
namespace {

using Clock = std::chrono::steady_clock;
using Bytes = std::vector<absl::Span<const std::uint8_t>>;

/// Runs `total` steps on the batches in turn and returns seconds, one a step.
absl::StatusOr<std::vector<double>> TimeSteps(runtime::Executable& step, const std::vector<Bytes>& batches,
                                              std::int64_t total) {
  const std::int64_t most = step.steps_per_launch();
  const bool runs_ahead = step.steps_kept() >= 2 * static_cast<std::uint64_t>(most);
  std::vector<double> seconds;
  seconds.reserve(static_cast<std::size_t>(total));
  std::int64_t waiting = 0;  ///< steps of the launch whose end has not been seen
  Clock::time_point last_end = Clock::now();
  const auto see_end = [&](std::uint64_t last_step) -> absl::Status {
    if (waiting == 0) return absl::OkStatus();
    if (absl::Status status = step.OutputOfStep(last_step, 0).status(); !status.ok()) return status;
    const Clock::time_point end = Clock::now();
    const double each = std::chrono::duration<double>(end - last_end).count() / static_cast<double>(waiting);
    seconds.insert(seconds.end(), static_cast<std::size_t>(waiting), each);
    last_end = end;
    return absl::OkStatus();
  };
  for (std::int64_t done = 0; done < total;) {
    const std::int64_t count = std::min(most, total - done);
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

std::string SettingsOf(const BenchOptions& options) {
  if (options.device == "cpu") return "";
  return absl::StrCat("graph ", options.graph.empty() ? "on" : options.graph, ", ", options.steps_per_launch,
                      options.steps_per_launch == 1 ? " step" : " steps", " a launch, ",
                      options.tune ? "tuned" : "heuristic choices", ", TF32 ", options.allow_tf32 ? "on" : "off");
}

}  // namespace

absl::StatusOr<RunResult> MeasureSteps(const BenchOptions& options) {
  SetSeed(1);
  if (absl::Status status = SetContext(ContextOf(options, options.threads)); !status.ok()) return status;
  absl::StatusOr<std::unique_ptr<BenchModel>> bench = MakeBenchModel(options);
  if (!bench.ok()) return bench.status();
  if (!options.weights_path.empty()) {
    if (absl::Status status = SaveCheckpoint((*bench)->network(), options.weights_path, {.names = NameMap::PyTorch()});
        !status.ok()) {
      return status;
    }
  }
  const std::vector<data::Row> rows =
      MakeSyntheticBatches({.columns = (*bench)->columns(), .names = {}, .classes = (*bench)->classes()});
  const absl::StatusOr<runtime::Executable*> step = (*bench)->model().LoadTrainStep(rows[0]);
  if (!step.ok()) return step.status();
  std::vector<Bytes> batches;
  for (const data::Row& row : rows) {
    Bytes& batch = batches.emplace_back();
    for (const Tensor& column : row) batch.push_back(column.bytes());
  }

  RunResult result;
  result.version = absl::StrCat("mpc ", MPC_VERSION);
  result.settings = SettingsOf(options);
  absl::StatusOr<std::vector<double>> seconds = TimeSteps(**step, batches, options.warmup + options.steps);
  if (!seconds.ok()) return seconds.status();
  result.step_seconds.assign(seconds->begin() + options.warmup, seconds->end());
  const runtime::NamedValue& loss = (*step)->program().outputs.at(0);
  const absl::StatusOr<absl::Span<const std::uint8_t>> bytes = (*step)->OutputOfStep((*step)->steps_started() - 1, 0);
  if (!bytes.ok()) return bytes.status();
  const TensorSpec& spec = (*step)->program().values[static_cast<std::size_t>(loss.value)].spec;
  result.final_loss = Tensor::FromBytes(spec, bytes->data(), bytes->size()).ToFloats().at(0);
  const runtime::MemoryUse memory = (*step)->memory();
  result.peak_bytes = memory.arena + memory.state + memory.other;
  for (const compiler::PhaseTime& phase : (*bench)->model().compiled().front()->phases) {
    if (phase.depth == 0) result.compile_seconds.emplace_back(phase.name, phase.seconds);
  }
  return result;
}

Json RunToJson(const RunResult& result) {
  Json compile = Json::object();
  for (const auto& [phase, seconds] : result.compile_seconds) compile[phase] = seconds;
  return {{"step_seconds", result.step_seconds}, {"version", result.version},       {"settings", result.settings},
          {"final_loss", result.final_loss},     {"peak_bytes", result.peak_bytes}, {"compile_seconds", compile}};
}

absl::StatusOr<RunResult> RunFromJson(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto has = [&](const char* key, bool (Json::*is)() const noexcept) {
    return json.contains(key) && (json[key].*is)();
  };
  if (!json.is_object() || !has("step_seconds", &Json::is_array) || !has("version", &Json::is_string)) {
    return absl::InvalidArgumentError(absl::StrCat("a run printed no result but '", text.substr(0, 200), "'"));
  }
  RunResult result;
  for (const Json& seconds : json["step_seconds"]) {
    if (seconds.is_number()) result.step_seconds.push_back(seconds.get<double>());
  }
  if (result.step_seconds.empty()) return absl::InvalidArgumentError("a run measured no step");
  result.version = json["version"].get<std::string>();
  if (has("settings", &Json::is_string)) result.settings = json["settings"].get<std::string>();
  if (has("peak_bytes", &Json::is_number_unsigned)) result.peak_bytes = json["peak_bytes"].get<std::size_t>();
  if (has("compile_seconds", &Json::is_object)) {
    for (const auto& [phase, seconds] : json["compile_seconds"].items()) {
      if (seconds.is_number()) result.compile_seconds.emplace_back(phase, seconds.get<double>());
    }
  }
  if (has("first_step_seconds", &Json::is_number)) {
    result.compile_seconds.emplace_back("first step", json["first_step_seconds"].get<double>());
  }
  result.final_loss = has("final_loss", &Json::is_number) ? json["final_loss"].get<double>() : std::nan("");
  return result;
}

}  // namespace mpc::tools
