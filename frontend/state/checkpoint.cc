#include "frontend/state/checkpoint.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/state/checkpoint_file.h"
#include "frontend/state/checkpoint_metadata.h"
#include "frontend/state/finite_conversion.h"
#include "frontend/state/foreign_weights.h"
#include "frontend/state/weights_file.h"

namespace mpc {
namespace {

using ParameterMap = std::map<std::string, Tensor>;

/// Loads `entries` that come from `origin`, "the given map" or a file.
absl::StatusOr<LoadReport> LoadEntries(nn::Cell& net, const ParameterMap& entries, const std::string& origin,
                                       const LoadOptions& options) {
  internal::WeightsFit fit = internal::FitWeights(net, entries, options);
  if (!fit.problems.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(origin, " does not fit ", net.TypeName(), ":\n  ",
                                                   absl::StrJoin(fit.problems, "\n  "), "\n", fit.advice,
                                                   fit.advice.empty() ? "" : "\n", "nothing was loaded"));
  }
  for (auto& [parameter, value] : fit.assignments) {
    if (absl::Status status = parameter.SetData(value); !status.ok()) return status;
  }
  return std::move(fit.report);
}

/// Stores floating tensors in `dtype`.
absl::Status Convert(Safetensors& content, DType dtype, const std::string& path) {
  if (!IsFloating(dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot save ", path, ": dtype ", std::string(DTypeName(dtype)), " is no floating type"));
  }
  for (auto& [name, tensor] : content.tensors) {
    if (!IsFloating(tensor.dtype())) continue;
    Tensor converted = tensor.To(dtype);
    if (const std::string lost = internal::LostValues(tensor, converted); !lost.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("cannot save ", path, ": '", name, "' ", lost));
    }
    tensor = std::move(converted);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SaveCheckpoint(nn::Cell& net, const std::string& path, const SaveOptions& options) {
  absl::StatusOr<std::vector<std::pair<std::string, Tensor>>> tensors = internal::ForeignTensors(net, options.names);
  if (!tensors.ok()) {
    return absl::Status(tensors.status().code(), absl::StrCat("cannot save ", path, ": ", tensors.status().message()));
  }
  Safetensors content;
  content.tensors = *std::move(tensors);
  if (options.dtype.has_value()) {
    if (absl::Status status = Convert(content, *options.dtype, path); !status.ok()) return status;
  }
  content.metadata["format"] = options.names.format();
  return internal::WriteCheckpointFile(path, std::move(content));
}

absl::Status SaveCheckpoint(nn::Cell& net, const std::string& path, std::string_view preset) {
  absl::StatusOr<NameMap> names = NameMap::Preset(preset);
  if (!names.ok()) return names.status();
  return SaveCheckpoint(net, path, SaveOptions{.names = *std::move(names)});
}

absl::StatusOr<ParameterMap> LoadCheckpoint(const std::string& path) {
  absl::StatusOr<Safetensors> content = internal::ReadWeightsFile(path);
  if (!content.ok()) return content.status();
  absl::StatusOr<internal::RoleMap> roles = internal::RoleMap();
  if (internal::IsTrainingCheckpoint(content->metadata)) roles = internal::ParseRoles(content->metadata, path);
  if (!roles.ok()) return roles.status();
  ParameterMap parameters;
  for (auto& [name, tensor] : content->tensors) {
    const auto role = roles->find(name);
    const bool weight = role == roles->end() || role->second == Role::kParameter || role->second == Role::kStatistic;
    if (weight) parameters[name] = std::move(tensor);
  }
  return parameters;
}

absl::StatusOr<LoadReport> LoadParamIntoNet(nn::Cell& net, const std::string& path, const LoadOptions& options) {
  absl::StatusOr<ParameterMap> parameters = LoadCheckpoint(path);
  if (!parameters.ok()) return parameters.status();
  return LoadEntries(net, *parameters, path, options);
}

absl::StatusOr<LoadReport> LoadParamIntoNet(nn::Cell& net, const ParameterMap& parameters, const LoadOptions& options) {
  return LoadEntries(net, parameters, "the given map", options);
}

absl::StatusOr<LoadReport> LoadParamIntoNet(nn::Cell& net, const std::string& path, std::string_view preset) {
  absl::StatusOr<NameMap> names = NameMap::Preset(preset);
  if (!names.ok()) return names.status();
  return LoadParamIntoNet(net, path, LoadOptions{.names = *std::move(names)});
}

}  // namespace mpc
