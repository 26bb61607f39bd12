#include "frontend/state/checkpoint_metadata.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mpc::internal {
namespace {

using Json = nlohmann::json;

constexpr char kFormat[] = "mpc";
constexpr char kTraining[] = "training";
constexpr std::int64_t kFormatVersion = 1;

std::optional<std::int64_t> Count(const Json& value) {
  // get_ptr: a number beyond 64 bits is a floating one and no count.
  const auto* number = value.get_ptr<const Json::number_unsigned_t*>();
  if (number == nullptr || *number > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

/// Reads the fields of one file and collects what is wrong with them.
class FieldReader {
 public:
  FieldReader(const TextMap& stored, std::vector<std::string>& problems) : stored_(stored), problems_(problems) {}

  std::string Text(const char* field) { return Has(field) ? stored_.at(field) : ""; }

  std::int64_t Integer(const char* field) {
    const std::optional<Json> json = Parse(field);
    const std::optional<std::int64_t> value = json.has_value() ? Count(*json) : 0;
    if (!value.has_value()) Reject(field, "a count");
    return value.value_or(0);
  }

  TextMap Map(const char* field) {
    const std::optional<Json> json = Parse(field);
    TextMap map;
    if (json.has_value() && !ReadMap(*json, &map)) Reject(field, "an object of texts");
    return map;
  }

  RoleMap Roles(const char* field) {
    RoleMap roles;
    for (const auto& [name, text] : Map(field)) {
      const std::optional<Role> role = ParseRole(text);
      if (role.has_value() && IsState(*role)) {
        roles[name] = *role;
      } else {
        problems_.push_back(
            absl::StrCat("metadata '", field, "' gives '", name, "' the role '", text, "', which is none of state"));
      }
    }
    return roles;
  }

  /// Empty where the field is missing.
  std::vector<std::string> Names(const char* field) {
    if (!stored_.contains(field)) return {};
    std::optional<std::vector<std::string>> names = ParseNames(stored_.at(field));
    if (!names.has_value()) Reject(field, "a list of texts");
    return names.value_or(std::vector<std::string>());
  }

  std::map<std::string, TextMap> MapOfMaps(const char* field) {
    const std::optional<Json> json = Parse(field);
    std::map<std::string, TextMap> maps;
    if (!json.has_value()) return maps;
    bool good = json->is_object();
    if (good) {
      for (const auto& [key, value] : json->items()) good = good && ReadMap(value, &maps[key]);
    }
    if (!good) Reject(field, "an object of objects of texts");
    return maps;
  }

  TrainPosition Position(const char* field) {
    const std::optional<Json> json = Parse(field);
    TrainPosition position;
    if (!json.has_value()) return position;
    const auto read = [&](const char* key, std::int64_t* to) {
      if (!json->is_object() || !json->contains(key)) return false;
      const std::optional<std::int64_t> value = Count((*json)[key]);
      if (value.has_value()) *to = *value;
      return value.has_value();
    };
    if (!read("data_epoch", &position.data_epoch) || !read("run_epoch", &position.run_epoch) ||
        !read("step_in_epoch", &position.step_in_epoch) || !read("steps_per_epoch", &position.steps_per_epoch)) {
      Reject(field, "an object of the counts data_epoch, run_epoch, step_in_epoch and steps_per_epoch");
    } else if (position.steps_per_epoch > 0 && position.step_in_epoch > position.steps_per_epoch) {
      Reject(field, "a step inside its epoch");
    }
    return position;
  }

  std::vector<std::pair<std::string, TensorSpec>> Inputs(const char* field) {
    const std::optional<Json> json = Parse(field);
    std::vector<std::pair<std::string, TensorSpec>> inputs;
    if (!json.has_value()) return inputs;
    bool good = json->is_array();
    if (good) {
      for (const Json& item : *json) good = good && ReadInput(item, &inputs.emplace_back());
    }
    if (!good) Reject(field, "a list of objects with name, dtype and shape");
    return inputs;
  }

 private:
  bool Has(const char* field) {
    if (stored_.contains(field)) return true;
    problems_.push_back(absl::StrCat("metadata '", field, "' is missing"));
    return false;
  }

  std::optional<Json> Parse(const char* field) {
    if (!Has(field)) return std::nullopt;
    Json json = Json::parse(stored_.at(field), nullptr, /*allow_exceptions=*/false);
    if (!json.is_discarded()) return json;
    problems_.push_back(absl::StrCat("metadata '", field, "' is not valid JSON"));
    return std::nullopt;
  }

  void Reject(const char* field, const char* expected) {
    problems_.push_back(absl::StrCat("metadata '", field, "' is not ", expected));
  }

  static bool ReadMap(const Json& json, TextMap* map) {
    if (!json.is_object()) return false;
    for (const auto& [key, value] : json.items()) {
      if (!value.is_string()) return false;
      (*map)[key] = value.get<std::string>();
    }
    return true;
  }

  static bool ReadInput(const Json& json, std::pair<std::string, TensorSpec>* input) {
    if (!json.is_object() || !json.contains("name") || !json.contains("dtype") || !json.contains("shape") ||
        !json["name"].is_string() || !json["dtype"].is_string() || !json["shape"].is_array()) {
      return false;
    }
    const std::optional<DType> dtype = ParseDType(json["dtype"].get<std::string>());
    if (!dtype.has_value()) return false;
    input->first = json["name"].get<std::string>();
    input->second.dtype = *dtype;
    for (const Json& extent : json["shape"]) {
      const std::optional<std::int64_t> value = Count(extent);
      if (!value.has_value()) return false;
      input->second.shape.push_back(*value);
    }
    return true;
  }

  const TextMap& stored_;
  std::vector<std::string>& problems_;
};

absl::Status Problems(const std::string& origin, const std::vector<std::string>& problems) {
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(origin, " is a damaged checkpoint:\n  ", absl::StrJoin(problems, "\n  ")));
}

}  // namespace

std::string FormatNames(const std::vector<std::string>& names) {
  return Json(names).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<std::vector<std::string>> ParseNames(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_array()) return std::nullopt;
  std::vector<std::string> names;
  for (const Json& name : json) {
    if (!name.is_string()) return std::nullopt;
    names.push_back(name.get<std::string>());
  }
  return names;
}

TextMap FormatMetadata(const CheckpointMetadata& metadata) {
  const TrainPosition& position = metadata.position;
  Json inputs = Json::array();
  for (const auto& [name, spec] : metadata.inputs) {
    inputs.push_back({{"name", name}, {"dtype", std::string(DTypeName(spec.dtype))}, {"shape", spec.shape}});
  }
  Json roles = Json::object();
  for (const auto& [name, role] : metadata.roles) roles[name] = std::string(RoleName(role));
  // Words that are not UTF-8 cannot stand in JSON; they are replaced rather than lost with the checkpoint.
  const auto text = [](const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); };
  TextMap stored = {{"format", kFormat},
                    {"format_version", absl::StrCat(kFormatVersion)},
                    {"kind", kTraining},
                    {"model", metadata.model},
                    {"optimizer", metadata.optimizer},
                    {"global_step", absl::StrCat(metadata.global_step)},
                    {"position", text(Json{{"data_epoch", position.data_epoch},
                                           {"run_epoch", position.run_epoch},
                                           {"step_in_epoch", position.step_in_epoch},
                                           {"steps_per_epoch", position.steps_per_epoch}})},
                    {"amp", text(Json(metadata.amp))},
                    {"loss_scale", text(Json(metadata.loss_scale))},
                    {"step", text(Json(metadata.step))},
                    {"precision", text(Json(metadata.precision))},
                    {"choices", text(Json(metadata.choices))},
                    {"environment", text(Json(metadata.environment))},
                    {"roles", text(roles)},
                    {"inputs", text(inputs)}};
  if (!metadata.class_names.empty()) stored["class_names"] = FormatNames(metadata.class_names);
  if (!metadata.callbacks.empty()) stored["callbacks"] = text(Json(metadata.callbacks));
  if (!metadata.last_step.empty()) stored["last_step"] = text(Json(metadata.last_step));
  return stored;
}

bool IsTrainingCheckpoint(const TextMap& stored) {
  const auto format = stored.find("format");
  const auto kind = stored.find("kind");
  return format != stored.end() && format->second == kFormat && kind != stored.end() && kind->second == kTraining;
}

absl::StatusOr<CheckpointMetadata> ParseMetadata(const TextMap& stored, const std::string& origin) {
  std::vector<std::string> problems;
  FieldReader reader(stored, problems);
  const std::int64_t version = reader.Integer("format_version");
  if (problems.empty() && version != kFormatVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat(origin, " has format version ", version, "; this mpc reads version ", kFormatVersion));
  }
  CheckpointMetadata metadata;
  metadata.model = reader.Text("model");
  metadata.optimizer = reader.Text("optimizer");
  metadata.global_step = reader.Integer("global_step");
  metadata.position = reader.Position("position");
  metadata.amp = reader.Map("amp");
  metadata.loss_scale = reader.Map("loss_scale");
  metadata.step = reader.Map("step");
  metadata.precision = reader.Map("precision");
  metadata.choices = reader.MapOfMaps("choices");
  metadata.environment = reader.Map("environment");
  metadata.roles = reader.Roles("roles");
  metadata.inputs = reader.Inputs("inputs");
  metadata.class_names = reader.Names("class_names");
  if (stored.contains("callbacks")) metadata.callbacks = reader.Map("callbacks");
  if (stored.contains("last_step")) metadata.last_step = reader.Map("last_step");
  if (absl::Status status = Problems(origin, problems); !status.ok()) return status;
  return metadata;
}

absl::StatusOr<RoleMap> ParseRoles(const TextMap& stored, const std::string& origin) {
  if (!stored.contains("roles")) return RoleMap();
  std::vector<std::string> problems;
  RoleMap roles = FieldReader(stored, problems).Roles("roles");
  if (absl::Status status = Problems(origin, problems); !status.ok()) return status;
  return roles;
}

}  // namespace mpc::internal
