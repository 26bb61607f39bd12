#include "tools/mpc-bench/peer.h"
#include "tools/mpc-bench/report.h"

namespace mpc::tools {

Json ToJson(const Percentiles& values) { return {{"median", values.median}, {"p5", values.p5}, {"p95", values.p95}}; }

namespace {

Json ToJson(const BenchOptions& row, const Contestant& contestant) {
  const Percentiles seconds = PercentilesOf(AllSteps(contestant));
  const RunResult& last = contestant.runs.back();
  const auto samples = static_cast<double>(row.batch);
  Json json = ToJson(seconds);
  json["name"] = contestant.name;
  json["version"] = last.version;
  json["settings"] = last.settings;
  json["samples_per_second"] =
      ToJson(Percentiles{.p5 = samples / seconds.p95, .median = samples / seconds.median, .p95 = samples / seconds.p5});
  json["first_loss"] = last.first_loss;
  json["final_loss"] = last.final_loss;
  json["peak_bytes"] = last.peak_bytes == 0 ? Json() : Json(last.peak_bytes);
  json["steps_resident_bytes"] = last.resident.has_value() ? Json(last.resident->steps) : Json();
  json["resident_bytes"] = last.resident.has_value() ? Json(last.resident->process) : Json();
  const FirstStep first = FirstStepOf(contestant);
  json["first_step_seconds"] = {{"cold", first.cold}, {"cached", first.cached > 0 ? Json(first.cached) : Json()}};
  for (const auto& [phase, spent] : contestant.runs.front().compile_seconds) json["compile_seconds"][phase] = spent;
  std::vector<double> reductions;
  for (const RunResult& run : contestant.runs) {
    reductions.insert(reductions.end(), run.reduction_seconds.begin(), run.reduction_seconds.end());
  }
  if (!reductions.empty()) {
    json["reduction"] = ToJson(PercentilesOf(reductions));
    json["reduction"]["bytes"] = last.reduction_bytes;
  }
  json["runs"] = Json::array();
  for (const RunResult& run : contestant.runs) json["runs"].push_back(ToJson(PercentilesOf(run.step_seconds)));
  return json;
}

}  // namespace

std::vector<Json> RowsToJson(const BenchOptions& row, const std::vector<Contestant>& contestants) {
  Json common = {{"model", row.model},           {"batch", row.batch},
                 {"mode", ModeName(row)},        {"sizes", Json::object()},
                 {"device", row.device},         {"ranks", row.ranks},
                 {"threads", row.threads},       {"busy", row.busy},
                 {"warmup", row.warmup},         {"steps", row.steps},
                 {"processor", ProcessorName()}, {"mpc", ToJson(row, contestants[0])}};
  for (const SizeFlag& flag : SizeFlags()) {
    if (row.sizes.*flag.size > 0) common["sizes"][flag.name] = row.sizes.*flag.size;
  }
  if (const std::vector<double> overheads = OverheadsByRun(row, contestants); !overheads.empty()) {
    common["overhead"] = ToJson(PercentilesOf(overheads));
    common["overhead"]["runs"] = overheads;
  }
  if (contestants.size() == 1) return {common};
  std::vector<Json> rows;
  for (std::size_t i = 1; i < contestants.size(); ++i) {
    Json& json = rows.emplace_back(common);
    const std::vector<double> ratios = RatiosByRun(contestants[0], contestants[i]);
    json["peer"] = ToJson(row, contestants[i]);
    json["ratio"] = ToJson(PercentilesOf(ratios));
    json["ratio"]["runs"] = ratios;
    const std::optional<LossDistance> distance =
        IsTorch(contestants[i].name) ? LossDifference(contestants[0], contestants[i]) : std::nullopt;
    if (distance.has_value()) json["loss_difference"] = {{"largest", distance->largest}, {"steps", distance->steps}};
  }
  return rows;
}

}  // namespace mpc::tools
