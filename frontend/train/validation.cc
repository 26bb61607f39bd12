#include "frontend/train/validation.h"

#include <algorithm>
#include <utility>

namespace mpc::internal {
namespace {

constexpr char kEvalPrefix[] = "eval_";

}  // namespace

Validation::Validation(const data::Dataset& dataset, const MetricList& given, FitOptions options)
    : dataset_(dataset), options_(std::move(options)) {
  // The loss is measured whether the Model has the metric or not, as MindSpore does.
  std::vector<MetricRef> refs;
  bool has_loss = false;
  for (const auto& [name, metric] : given.entries()) {
    refs.emplace_back(name, metric);
    has_loss |= name == "loss";
  }
  if (!has_loss) refs.emplace_back("loss");
  metrics_ = MetricList(refs);
}

std::vector<std::string> Validation::names() const {
  std::vector<std::string> names;
  for (const auto& [name, metric] : metrics_.entries()) names.push_back(kEvalPrefix + name);
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> Validation::smaller_is_better() const {
  std::vector<std::string> names;
  for (const auto& [name, metric] : metrics_.entries()) {
    if (metric->SmallerIsBetter()) names.push_back(kEvalPrefix + name);
  }
  return names;
}

std::map<std::string, double> Validation::Named(const std::map<std::string, double>& values) {
  std::map<std::string, double> results;
  for (const auto& [name, value] : values) results[kEvalPrefix + name] = value;
  return results;
}

}  // namespace mpc::internal
