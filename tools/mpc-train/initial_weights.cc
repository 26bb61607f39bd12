#include "tools/mpc-train/initial_weights.h"

#include <algorithm>
#include <iostream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "frontend/state/checkpoint_metadata.h"
#include "frontend/state/foreign_weights.h"
#include "frontend/state/safetensors.h"
#include "mpc/train.h"

namespace mpc::tools {
namespace {

/// The last layers of the ResNets and of Vit, which alone take --classes.
constexpr const char* kHeads[] = {"fc", "head"};

/// Those that `network` has.
std::vector<std::string> HeadsOf(nn::Cell& network) {
  std::vector<std::string> heads;
  const std::vector<std::pair<std::string, Parameter>> parameters = network.ParametersAndNames();
  std::copy_if(std::begin(kHeads), std::end(kHeads), std::back_inserter(heads), [&](const std::string& head) {
    return std::any_of(parameters.begin(), parameters.end(), [&](const auto& parameter) {
      return absl::StartsWith(parameter.first, absl::StrCat(head, "."));
    });
  });
  return heads;
}

/// The flag that makes the head new, where the file fits but for that; else empty.
std::string HeadAdvice(nn::Cell& network, const std::map<std::string, Tensor>& parameters, LoadOptions loading) {
  loading.filter_prefix = HeadsOf(network);
  if (loading.filter_prefix.empty() || !internal::FitWeights(network, parameters, loading).problems.empty()) return "";
  const absl::StatusOr<Parameter> bias = network.GetParameter(loading.filter_prefix.front() + ".bias");
  if (!bias.ok()) return "";
  return absl::StrCat("; --classes=", bias->shape()[0], " begins with a new '", loading.filter_prefix.front(), "'");
}

/// What published files call the Parameters of a network.
NameMap PublishedNames(const std::string& model) {
  for (const std::string& preset : NameMap::PresetNames()) {
    const std::string network = preset.substr(preset.find('/') + 1);
    if (absl::StartsWith(model, network)) return *NameMap::Preset(preset);
  }
  return NameMap::PyTorch();
}

/// How many Parameters of `network` the file has under the names of `map`.
std::ptrdiff_t CountFound(nn::Cell& network, const std::vector<std::string>& entries, const NameMap& map) {
  const std::vector<std::string> meanings = map.Meanings(entries);
  const std::set<std::string> known(meanings.begin(), meanings.end());
  const std::vector<std::pair<std::string, Parameter>> parameters = network.ParametersAndNames();
  return std::count_if(parameters.begin(), parameters.end(),
                       [&](const auto& parameter) { return known.contains(map.Foreign(parameter.first)); });
}

}  // namespace

absl::Status Freeze(const TrainOptions& options, nn::Cell& network) {
  const std::vector<std::string> paths = absl::StrSplit(options.freeze, ',', absl::SkipEmpty());
  for (const std::string& path : paths) {
    if (absl::Status status = network.SetRequiresGrad(path, false); !status.ok()) return status;
  }
  if (paths.empty() || !network.TrainableParams().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--freeze=", options.freeze, " leaves no parameter of ", options.model,
                                                 " to train; give fewer paths"));
}

absl::Status CheckClassNames(const TrainOptions& options, const std::vector<std::string>& names) {
  if (options.load_path.empty() || names.empty()) return absl::OkStatus();
  const absl::StatusOr<Safetensors> file = LoadSafetensors(options.load_path);
  if (!file.ok()) return absl::OkStatus();  // loading says what is wrong with it
  const auto stored = file->metadata.find("class_names");
  const std::string of_data = internal::FormatNames(names);
  if (stored == file->metadata.end() || stored->second == of_data) return absl::OkStatus();
  const std::string message = absl::StrCat("--load=", options.load_path, " was trained on the classes ", stored->second,
                                           ", and the data have ", of_data);
  if (options.epochs == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(message, ": labels would mean other classes; test on data with the classes of the file"));
  }
  std::cerr << "warning: " << message << ": what the head has learnt means other classes\n";
  return absl::OkStatus();
}

absl::Status LoadInitialWeights(const TrainOptions& options, nn::Cell& network) {
  if (!options.load_path.empty()) return LoadParamIntoNet(network, options.load_path).status();
  if (options.init_path.empty()) return absl::OkStatus();
  const absl::StatusOr<std::map<std::string, Tensor>> parameters = LoadCheckpoint(options.init_path);
  if (!parameters.ok()) return parameters.status();
  std::vector<std::string> entries;
  for (const auto& [name, tensor] : *parameters) entries.push_back(name);
  LoadOptions loading;
  NameMap published = PublishedNames(options.model);
  if (CountFound(network, entries, published) > CountFound(network, entries, {})) loading.names = std::move(published);
  if (options.classes > 0) loading.filter_prefix = HeadsOf(network);
  const absl::Status status = LoadParamIntoNet(network, *parameters, loading).status();
  if (status.ok()) return status;
  const std::string advice = options.classes > 0 ? "" : HeadAdvice(network, *parameters, loading);
  return absl::Status(status.code(), absl::StrCat(options.init_path, ": ", status.message(), advice));
}

}  // namespace mpc::tools
