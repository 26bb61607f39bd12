#include "tools/mpc-bench/run_result.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace mpc::tools {

Json RunToJson(const RunResult& result) {
  Json json = {{"step_seconds", result.step_seconds},
               {"version", result.version},
               {"settings", result.settings},
               {"first_loss", result.first_loss},
               {"final_loss", result.final_loss},
               {"losses", result.losses},
               {"steps_before", result.steps_before},
               {"reduction_seconds", result.reduction_seconds},
               {"reduction_bytes", result.reduction_bytes},
               {"peak_bytes", result.peak_bytes},
               {"first_step_seconds", result.first_step_seconds},
               {"compile_seconds", Json::object()}};
  for (const auto& [phase, seconds] : result.compile_seconds) json["compile_seconds"][phase] = seconds;
  if (result.resident.has_value()) {
    json["steps_resident_bytes"] = result.resident->steps;
    json["resident_bytes"] = result.resident->process;
  }
  return json;
}

absl::StatusOr<RunResult> RunFromJson(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto has = [&](const char* key, bool (Json::*is)() const noexcept) {
    return json.contains(key) && (json[key].*is)();
  };
  if (!json.is_object() || !has("step_seconds", &Json::is_array) || !has("version", &Json::is_string)) {
    return absl::InvalidArgumentError(absl::StrCat("a run printed no result but '", text.substr(0, 200), "'"));
  }
  const auto number = [&](const char* key, double otherwise) {
    return has(key, &Json::is_number) ? json[key].get<double>() : otherwise;
  };
  const auto numbers = [&](const char* key) {
    std::vector<double> found;
    if (!has(key, &Json::is_array)) return found;
    for (const Json& value : json[key]) {
      if (value.is_number()) found.push_back(value.get<double>());
    }
    return found;
  };
  const auto count = [&](const char* key) {
    return has(key, &Json::is_number_unsigned) ? json[key].get<std::size_t>() : std::size_t{0};
  };
  RunResult result;
  result.step_seconds = numbers("step_seconds");
  if (result.step_seconds.empty()) return absl::InvalidArgumentError("a run measured no step");
  result.version = json["version"].get<std::string>();
  if (has("settings", &Json::is_string)) result.settings = json["settings"].get<std::string>();
  result.first_loss = number("first_loss", std::nan(""));
  result.final_loss = number("final_loss", std::nan(""));
  result.losses = numbers("losses");
  result.steps_before = count("steps_before");
  result.reduction_seconds = numbers("reduction_seconds");
  result.reduction_bytes = count("reduction_bytes");
  result.peak_bytes = count("peak_bytes");
  if (has("steps_resident_bytes", &Json::is_number_unsigned)) {
    result.resident = ResidentGrowth{.steps = count("steps_resident_bytes"), .process = count("resident_bytes")};
  }
  result.first_step_seconds = number("first_step_seconds", 0);
  if (has("compile_seconds", &Json::is_object)) {
    for (const auto& [phase, seconds] : json["compile_seconds"].items()) {
      if (seconds.is_number()) result.compile_seconds.emplace_back(phase, seconds.get<double>());
    }
  }
  return result;
}

absl::StatusOr<RunResult> MergeRanks(const std::vector<RunResult>& ranks) {
  RunResult merged = ranks.front();
  const auto share = 1.0 / static_cast<double>(ranks.size());
  const auto scale = [share](std::vector<double>& values) {
    for (double& value : values) value *= share;
  };
  scale(merged.losses);
  merged.first_loss *= share;
  merged.final_loss *= share;
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    const RunResult& other = ranks[rank];
    if (other.step_seconds.size() != merged.step_seconds.size() || other.losses.size() != merged.losses.size() ||
        other.reduction_seconds.size() != merged.reduction_seconds.size()) {
      return absl::InternalError(absl::StrCat("rank 0 measured ", merged.step_seconds.size(), " steps, rank ", rank,
                                              " measured ", other.step_seconds.size()));
    }
    const auto slowest = [](std::vector<double>& times, const std::vector<double>& others) {
      for (std::size_t i = 0; i < times.size(); ++i) times[i] = std::max(times[i], others[i]);
    };
    slowest(merged.step_seconds, other.step_seconds);
    slowest(merged.reduction_seconds, other.reduction_seconds);
    for (std::size_t i = 0; i < merged.losses.size(); ++i) merged.losses[i] += share * other.losses[i];
    merged.first_loss += share * other.first_loss;
    merged.final_loss += share * other.final_loss;
    merged.peak_bytes += other.peak_bytes;
    if (merged.resident.has_value() && other.resident.has_value()) {
      merged.resident->steps += other.resident->steps;
      merged.resident->process += other.resident->process;
    }
    merged.first_step_seconds = std::max(merged.first_step_seconds, other.first_step_seconds);
  }
  return merged;
}

}  // namespace mpc::tools
