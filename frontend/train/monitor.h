// A quantity that a callback watches from epoch to epoch, and what counts as better. Not part of the public API.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "frontend/train/run_context.h"

namespace mpc::internal {

/// Options that callbacks which watch a quantity share.
struct MonitorOptions {
  std::string owner;  ///< name of the callback, for errors
  std::string monitor;
  std::string mode;
  double min_delta = 0;
};

class Monitor {
 public:
  explicit Monitor(MonitorOptions options);

  /// Forgets the best value and learns which way is better. Errors (INVALID_ARGUMENT): a mode other than "auto", "min"
  /// and "max"; a `min_delta` that is negative or not finite. Also: a quantity that this run does not have; those that
  /// it has are listed.
  absl::Status Begin(const RunContext& context);
  /// The quantity at the end of an epoch; empty where the epoch was interrupted or not evaluated.
  std::optional<double> ValueAt(const RunContext& context) const;
  /// Whether `value` is better than `than` by more than min_delta. NaN is never better.
  bool IsBetter(double value, double than) const;
  /// Whether `value` is better than every one before it; it is then the best. The first one is, unless it is NaN.
  bool Improves(double value);
  /// The best value since Begin; empty before the first.
  const std::optional<double>& best() const { return best_; }

  /// "EarlyStopping of eval_loss (auto)": Callback::StateName of its owner.
  std::string StateName() const;
  /// Callback::SaveState of an owner that has these counts beside the best value: "best=0.25 wait=3".
  std::string SaveState(std::initializer_list<std::pair<const char*, std::int64_t>> counts) const;
  /// Takes such a text over, behind Begin. Errors (INVALID_ARGUMENT): it is none; nothing is changed then.
  absl::Status LoadState(const std::string& state, std::initializer_list<std::pair<const char*, std::int64_t*>> counts);

 private:
  /// The quantity's name among the results of an evaluation.
  std::string ResultName(const RunContext& context) const;

  MonitorOptions options_;
  bool larger_is_better_ = true;  ///< known from Begin on
  std::optional<double> best_;
};

}  // namespace mpc::internal
