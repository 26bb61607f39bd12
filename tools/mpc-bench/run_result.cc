#include "tools/mpc-bench/run_result.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace mpc::tools {

Json RunToJson(const RunResult& result) {
  Json json = {{"step_seconds", result.step_seconds},
               {"version", result.version},
               {"settings", result.settings},
               {"first_loss", result.first_loss},
               {"final_loss", result.final_loss},
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
  const auto bytes = [&](const char* key) {
    return has(key, &Json::is_number_unsigned) ? json[key].get<std::size_t>() : std::size_t{0};
  };
  RunResult result;
  for (const Json& seconds : json["step_seconds"]) {
    if (seconds.is_number()) result.step_seconds.push_back(seconds.get<double>());
  }
  if (result.step_seconds.empty()) return absl::InvalidArgumentError("a run measured no step");
  result.version = json["version"].get<std::string>();
  if (has("settings", &Json::is_string)) result.settings = json["settings"].get<std::string>();
  result.first_loss = number("first_loss", std::nan(""));
  result.final_loss = number("final_loss", std::nan(""));
  result.peak_bytes = bytes("peak_bytes");
  if (has("steps_resident_bytes", &Json::is_number_unsigned)) {
    result.resident = ResidentGrowth{.steps = bytes("steps_resident_bytes"), .process = bytes("resident_bytes")};
  }
  result.first_step_seconds = number("first_step_seconds", 0);
  if (has("compile_seconds", &Json::is_object)) {
    for (const auto& [phase, seconds] : json["compile_seconds"].items()) {
      if (seconds.is_number()) result.compile_seconds.emplace_back(phase, seconds.get<double>());
    }
  }
  return result;
}

}  // namespace mpc::tools
