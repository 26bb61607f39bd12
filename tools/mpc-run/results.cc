#include "tools/mpc-run/results.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/mpc-run/describe.h"
#include "tools/support/byte_size.h"
#include "tools/support/percentiles.h"

namespace mpc::tools {
namespace {

double StepsPerSecond(const TrainResult& train) {
  return static_cast<double>(train.timed_steps) / std::max(train.seconds, 1e-9);
}

double Accuracy(const PredictResult& predict) {
  return static_cast<double>(predict.right) / static_cast<double>(std::max<std::int64_t>(predict.labels, 1));
}

}  // namespace

std::string FormatResults(const Session& session, const RunResults& results) {
  std::string text;
  if (results.load_only) {
    const runtime::Program& program = *session.train_program();
    absl::StrAppend(&text, program.name, " for ", program.device, program.arch.empty() ? "" : " " + program.arch, ": ",
                    program.step().instructions.size(), " instructions\n", DescribeChoices(program, ""));
  }
  if (results.train.has_value()) {
    const TrainResult& train = *results.train;
    const Percentiles seconds = PercentilesOf(train.step_seconds);
    absl::StrAppendFormat(&text, "%d steps, loss %.6g at first, %.6g at last", train.losses.size(),
                          train.losses.front(), train.losses.back());
    if (const std::int64_t skipped = session.skipped_steps(); skipped >= 0) {
      absl::StrAppendFormat(&text, "; %d skipped, loss scale %.10g", skipped, session.loss_scale());
    }
    absl::StrAppendFormat(&text, "\n%d timed: %.1f steps/s; ms a step: median %.3f, p5 %.3f, p95 %.3f\n",
                          train.timed_steps, StepsPerSecond(train), 1e3 * seconds.median, 1e3 * seconds.p5,
                          1e3 * seconds.p95);
    if (session.nodes_per_step() > 0)
      absl::StrAppend(&text, "a step is a graph of ", session.nodes_per_step(), " nodes\n");
  }
  if (results.predict.has_value()) {
    const PredictResult& predict = *results.predict;
    if (predict.labels > 0) {
      absl::StrAppendFormat(&text, "test accuracy %.2f %% (%d of %d%s)", 100 * Accuracy(predict), predict.right,
                            predict.labels, predict.note);
    } else {
      absl::StrAppendFormat(&text, "%d rows predicted", predict.rows);
    }
    absl::StrAppendFormat(&text, " in %.3f s\n", predict.seconds);
  }
  const runtime::MemoryUse memory = session.memory();
  absl::StrAppendFormat(&text, "loaded in %.2f s; peak %.1f MiB: %.1f state, %.1f temporaries, %.1f other\n",
                        session.load_seconds(), MiB(memory.state + memory.arena + memory.other), MiB(memory.state),
                        MiB(memory.arena), MiB(memory.other));
  return text;
}

Json ResultsToJson(const RunOptions& options, const Session& session, const RunResults& results) {
  const runtime::Package& package = session.package();
  Json json;
  json["file"] = options.path;
  json["metadata"] = Json::object();
  for (const auto& [key, value] : package.metadata) json["metadata"][key] = value;
  json["device"] = package.programs.front().device;
  json["arch"] = package.programs.front().arch;
  json["batch"] = session.batch_size();
  json["load_seconds"] = session.load_seconds();
  const runtime::MemoryUse memory = session.memory();
  json["memory_bytes"] = {{"arena", memory.arena},
                          {"state", memory.state},
                          {"other", memory.other},
                          {"total", memory.arena + memory.state + memory.other}};
  if (results.train.has_value()) {
    const TrainResult& train = *results.train;
    const Percentiles seconds = PercentilesOf(train.step_seconds);
    json["data"] = options.data;
    json["steps"] = train.losses.size();
    json["losses"] = train.losses;
    json["timed_steps"] = train.timed_steps;
    json["step_seconds"] = {{"median", seconds.median}, {"p5", seconds.p5}, {"p95", seconds.p95}};
    json["steps_per_second"] = StepsPerSecond(train);
    const std::int64_t skipped = session.skipped_steps();
    json["skipped_steps"] = skipped >= 0 ? Json(skipped) : Json(nullptr);
    json["loss_scale"] = session.loss_scale();
  }
  if (session.train_program() != nullptr) {
    json["graph"] = options.graph.value_or(package.programs.front().device != "cpu");
    json["steps_per_launch"] = options.steps_per_launch;
    json["nodes_per_step"] = session.nodes_per_step();
    json["choices"] = Json::object();
    for (const auto& [key, value] : session.train_program()->choices) json["choices"][key] = value;
  }
  if (results.predict.has_value()) {
    const PredictResult& predict = *results.predict;
    const bool labelled = predict.labels > 0;
    json["test_rows"] = predict.rows;
    json["test_labels"] = predict.labels;
    json["test_right"] = labelled ? Json(predict.right) : Json(nullptr);
    json["test_accuracy"] = labelled ? Json(Accuracy(predict)) : Json(nullptr);
    json["test_seconds"] = predict.seconds;
  }
  return json;
}

Json TimesToJson(const runtime::Program& program, const TrainResult& train) {
  Json json;
  json["instructions"] = Json::array();
  double sum = 0;
  for (std::size_t i = 0; i < train.instruction_us.size(); ++i) {
    if (train.instruction_us[i].empty()) continue;
    const Percentiles times = PercentilesOf(train.instruction_us[i]);
    const runtime::Instruction& instruction = program.step().instructions[i];
    json["instructions"].push_back({{"index", i},
                                    {"kernel", instruction.kernel},
                                    {"scope", instruction.scope},
                                    {"phase", PhaseName(instruction.phase)},
                                    {"median_us", times.median},
                                    {"p95_us", times.p95}});
    sum += times.median;
  }
  json["sum_us"] = sum;
  return json;
}

}  // namespace mpc::tools
