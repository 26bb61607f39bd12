// What a run measured, kept in memory.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "frontend/train/callback.h"

namespace mpc {

/// Keeps a value of each epoch for every quantity of a run:
///
///     History history;
///     absl::Status trained = model.Fit(10, train_set, valid_set, {}, {history});
///     double best = *std::max_element(history.of("eval_accuracy").begin(), history.of("eval_accuracy").end());
///
/// The quantities are "loss", "loss_scale", "skipped_steps" and the results of evaluation ("eval_loss", ...). Where the
/// Model records them, "gradient_norm" and "learning_rate" are there too. "loss" is that of the epoch's last step,
/// which MindSpore calls "net_output".
class History : public Callback {
 public:
  /// The epochs that ended, in order. A new run begins a new history.
  const std::vector<std::int64_t>& epochs() const { return epochs_; }
  /// The values of each quantity, one for each of `epochs()`. NaN where the epoch did not measure it.
  const std::map<std::string, std::vector<double>>& history() const { return history_; }
  /// Those of one quantity; empty if there is none of that name.
  const std::vector<double>& of(const std::string& name) const;

  void OnTrainBegin(RunContext& context) override;
  void OnEpochEnd(RunContext& context) override;

 private:
  std::vector<std::int64_t> epochs_;
  std::map<std::string, std::vector<double>> history_;
};

}  // namespace mpc
