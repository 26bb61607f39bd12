#include "frontend/train/history.h"

#include <limits>

#include "frontend/train/run_scalars.h"

namespace mpc {

const std::vector<double>& History::of(const std::string& name) const {
  static const std::vector<double> none;
  const auto found = history_.find(name);
  return found == history_.end() ? none : found->second;
}

void History::OnTrainBegin(RunContext& context) {
  epochs_.clear();
  history_.clear();
}

void History::OnEpochEnd(RunContext& context) {
  const std::size_t before = epochs_.size();
  epochs_.push_back(context.epoch);
  for (const auto& [name, value] : internal::RunScalars(context)) {
    std::vector<double>& values = history_[name];
    values.resize(before, std::numeric_limits<double>::quiet_NaN());
    values.push_back(value);
  }
  for (auto& [name, values] : history_) values.resize(epochs_.size(), std::numeric_limits<double>::quiet_NaN());
}

}  // namespace mpc
