#include "frontend/state/checkpoint.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/state/checkpoint_file.h"
#include "frontend/state/checkpoint_metadata.h"

namespace mpc {
namespace {

using ParameterMap = std::map<std::string, Tensor>;

/// Loads `entries` that come from `origin`, "the parameters" or a file.
absl::StatusOr<LoadReport> LoadEntries(nn::Cell& net, const ParameterMap& entries, const std::string& origin,
                                       const LoadOptions& options) {
  LoadReport report;
  std::vector<std::string> problems;
  std::vector<std::pair<Parameter, Tensor>> assignments;
  std::set<std::string> used;
  for (const auto& [name, parameter] : net.ParametersAndNames()) {
    const std::string foreign = options.names.Foreign(name);
    const std::string shown =
        foreign == name ? absl::StrCat("'", name, "'") : absl::StrCat("'", foreign, "' (", name, ")");
    const auto found = entries.find(foreign);
    if (found == entries.end()) {
      report.missing.push_back(name);
      if (options.strict) problems.push_back(absl::StrCat(shown, " is missing"));
      continue;
    }
    if (!used.insert(foreign).second) problems.push_back(absl::StrCat(shown, " stands for two parameters"));
    const Tensor& value = found->second;
    if (!value.defined() || !value.status().ok() || !value.concrete()) {
      problems.push_back(absl::StrCat(shown, " has no value"));
      continue;
    }
    const bool converts =
        value.dtype() == parameter.dtype() || (IsFloating(value.dtype()) && IsFloating(parameter.dtype()));
    if (value.shape() != parameter.shape() || !converts) {
      problems.push_back(absl::StrCat(shown, " is ", value.spec().ToString(), " in the file, ",
                                      TensorSpec{parameter.dtype(), parameter.shape()}.ToString(), " in the network"));
      continue;
    }
    assignments.emplace_back(parameter, value.To(parameter.dtype()));
    report.loaded.push_back(name);
  }
  for (const auto& [name, tensor] : entries) {
    if (used.contains(name) || options.names.Ignores(name)) continue;
    report.unexpected.push_back(name);
    if (options.strict) problems.push_back(absl::StrCat("'", name, "' is no parameter of ", net.TypeName()));
  }
  if (!problems.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(origin, " does not fit ", net.TypeName(), ":\n  ",
                                                   absl::StrJoin(problems, "\n  "), "\nnothing was loaded"));
  }
  for (auto& [parameter, value] : assignments) {
    if (absl::Status status = parameter.SetData(value); !status.ok()) return status;
  }
  return report;
}

}  // namespace

absl::Status SaveCheckpoint(nn::Cell& net, const std::string& path, const SaveOptions& options) {
  Safetensors content;
  for (const auto& [name, parameter] : net.ParametersAndNames()) {
    absl::StatusOr<Tensor> value = parameter.Value();
    if (!value.ok()) return value.status();
    content.tensors.emplace_back(options.names.Foreign(name), *std::move(value));
  }
  content.metadata["format"] = options.names.format();
  return internal::WriteCheckpointFile(path, std::move(content));
}

absl::StatusOr<ParameterMap> LoadCheckpoint(const std::string& path) {
  absl::StatusOr<Safetensors> content = internal::ReadCheckpointFile(path);
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

}  // namespace mpc
