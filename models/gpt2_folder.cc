#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/gpt2.h"

namespace mpc::models {
namespace {

using Json = nlohmann::json;

constexpr char kConfigName[] = "config.json";
constexpr std::int64_t kMostOfASize = std::int64_t{1} << 24;
constexpr std::int64_t kMostLayers = 4096;

/// A field that changes numbers, with the values under which they are Gpt2's. transformers takes the first one where
/// the file does not have the field.
struct FixedField {
  const char* name;
  std::vector<Json> accepted;
};

const std::vector<FixedField>& FixedFields() {
  static const auto* const fields = new std::vector<FixedField>{
      {"model_type", {"gpt2"}},
      {"activation_function", {"gelu_new", "gelu_pytorch_tanh"}},
      {"add_cross_attention", {false}},
      {"pruned_heads", {Json::object(), nullptr}},
      {"quantization_config", {nullptr}},
      {"reorder_and_upcast_attn", {false}},
      {"scale_attn_by_inverse_layer_idx", {false}},
      {"scale_attn_weights", {true}},
      {"tie_word_embeddings", {true}},
  };
  return *fields;
}

/// Reads the fields of one file and collects those that Gpt2 does not take.
class ConfigReader {
 public:
  explicit ConfigReader(const Json& json) : json_(json) {}

  Gpt2Config Read() {
    ReadSize("vocab_size", kMostOfASize, config_.vocabulary);
    ReadSize("n_positions", kMostOfASize, config_.context);
    ReadSize("n_embd", kMostOfASize, config_.width);
    ReadSize("n_layer", kMostLayers, config_.layers);
    ReadSize("n_head", kMostOfASize, config_.heads);
    if (problems_.empty() && config_.width % config_.heads != 0) {
      problems_.push_back(absl::StrCat("n_embd is ", config_.width, ", which the ", config_.heads,
                                       " heads of n_head do not share equally"));
    }
    ReadEpsilon();
    CheckInner();
    for (const FixedField& field : FixedFields()) CheckFixed(field);
    return config_;
  }
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  void ReadSize(const char* name, std::int64_t most, std::int64_t& size) {
    const auto found = json_.find(name);
    if (found == json_.end()) return;
    const std::uint64_t given = found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
    if (given < 1 || given > static_cast<std::uint64_t>(most)) {
      problems_.push_back(absl::StrCat(name, " is ", found->dump(), "; accepted are 1 to ", most));
    } else {
      size = static_cast<std::int64_t>(given);
    }
  }

  void ReadEpsilon() {
    constexpr char kName[] = "layer_norm_epsilon";
    const auto found = json_.find(kName);
    if (found == json_.end()) return;
    const double epsilon = found->is_number() ? found->get<double>() : 0;
    if (!std::isfinite(epsilon) || epsilon <= 0) {
      problems_.push_back(absl::StrCat(kName, " is ", found->dump(), "; accepted are numbers above 0"));
    } else {
      config_.epsilon = epsilon;
    }
  }

  /// The features between the two layers of a block are four times the width.
  void CheckInner() {
    constexpr char kName[] = "n_inner";
    const auto found = json_.find(kName);
    if (found == json_.end() || found->is_null() || *found == 4 * config_.width) return;
    problems_.push_back(
        absl::StrCat(kName, " is ", found->dump(), "; accepted are null and ", 4 * config_.width, ", 4 n_embd"));
  }

  void CheckFixed(const FixedField& field) {
    const auto found = json_.find(field.name);
    if (found == json_.end()) return;
    if (std::find(field.accepted.begin(), field.accepted.end(), *found) != field.accepted.end()) return;
    std::vector<std::string> accepted;
    for (const Json& value : field.accepted) accepted.push_back(value.dump());
    problems_.push_back(
        absl::StrCat(field.name, " is ", found->dump(), "; accepted is ", absl::StrJoin(accepted, " or ")));
  }

  const Json& json_;
  Gpt2Config config_;
  std::vector<std::string> problems_;
};

}  // namespace

absl::StatusOr<Gpt2Config> ReadGpt2Config(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  const Json json = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return absl::InvalidArgumentError(absl::StrCat(path, ": not valid JSON"));
  if (!json.is_object()) return absl::InvalidArgumentError(absl::StrCat(path, ": not a JSON object"));
  ConfigReader reader(json);
  const Gpt2Config config = reader.Read();
  if (reader.problems().empty()) return config;
  return absl::InvalidArgumentError(
      absl::StrCat(path, " is of a network that Gpt2 is not:\n  ", absl::StrJoin(reader.problems(), "\n  ")));
}

absl::StatusOr<Gpt2> Gpt2::FromFolder(const std::string& path) {
  const absl::StatusOr<Gpt2Config> config = ReadGpt2Config((std::filesystem::path(path) / kConfigName).string());
  if (!config.ok()) return config.status();
  Gpt2 network(*config);
  if (absl::Status status = LoadParamIntoNet(network, path, "huggingface/gpt2").status(); !status.ok()) return status;
  return network;
}

}  // namespace mpc::models
