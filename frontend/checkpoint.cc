#include "frontend/checkpoint.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/safetensors.h"

namespace mpc {

absl::Status SaveCheckpoint(nn::Cell& net, const std::string& path) {
  const auto parameters = net.ParametersAndNames();
  Safetensors content;
  for (const auto& [name, parameter] : parameters) {
    absl::StatusOr<Tensor> value = parameter.Value();
    if (!value.ok()) return value.status();
    content.tensors.emplace_back(name, *std::move(value));
  }
  content.metadata["format"] = "mpc";
  return SaveSafetensors(path, content);
}

absl::StatusOr<LoadReport> LoadParamIntoNet(nn::Cell& net, const std::string& path, const LoadOptions& options) {
  absl::StatusOr<Safetensors> content = LoadSafetensors(path);
  if (!content.ok()) return content.status();
  LoadReport report;
  std::vector<std::string> problems;
  std::vector<std::pair<Parameter, Tensor>> assignments;
  const auto parameters = net.ParametersAndNames();
  for (const auto& [name, parameter] : parameters) {
    const Tensor* found = content->Find(name);
    if (found == nullptr) {
      report.missing.push_back(name);
      continue;
    }
    if (found->shape() != parameter.shape() || !IsFloating(found->dtype())) {
      problems.push_back(absl::StrCat("'", name, "' is ", found->spec().ToString(), " in the file, ",
                                      TensorSpec{parameter.dtype(), parameter.shape()}.ToString(), " in the network"));
      continue;
    }
    assignments.emplace_back(parameter, found->To(parameter.dtype()));
    report.loaded.push_back(name);
  }
  for (const auto& [name, tensor] : content->tensors) {
    bool known = false;
    for (const auto& [own, parameter] : parameters) known |= own == name;
    if (!known) report.unexpected.push_back(name);
  }
  if (options.strict) {
    for (const std::string& name : report.missing) problems.push_back(absl::StrCat("'", name, "' is missing"));
    for (const std::string& name : report.unexpected) {
      problems.push_back(absl::StrCat("'", name, "' is no parameter of ", net.TypeName()));
    }
  }
  if (!problems.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, " does not fit ", net.TypeName(), ":\n  ",
                                                   absl::StrJoin(problems, "\n  "), "\nnothing was loaded"));
  }
  for (auto& [parameter, value] : assignments) {
    if (absl::Status status = parameter.SetData(value); !status.ok()) return status;
  }
  return report;
}

}  // namespace mpc
