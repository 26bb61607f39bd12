// A callback that gathers the precision profile of a training run.
#pragma once

#include <cstdint>

#include "frontend/inspect/precision_profile.h"
#include "frontend/train/callback.h"
#include "frontend/train/model.h"

namespace mpc {

struct PrecisionProfilerOptions {
  std::int64_t every = 50;  ///< steps between two measurements; the first step is measured
  DType low = DType::kF16;  ///< the type whose losses are counted
};

/// Measures the values of training steps, computed in f32 at the scale of the moment, before the steps run: nothing of
/// the training changes. Errors of measuring end the run.
///
///     PrecisionProfiler profiler(model);
///     model.Train(10, train_set, {profiler});
///     std::cout << profiler.profile().Table();
class PrecisionProfiler : public Callback {
 public:
  /// `model` must outlive the profiler.
  explicit PrecisionProfiler(Model& model, const PrecisionProfilerOptions& options = {});
  const PrecisionProfile& profile() const { return profile_; }
  /// True for the step before one that it measures: the measurement begins with the state which that step leaves.
  bool NeedsState(const RunContext& context) const override;
  void OnStepBegin(RunContext& context) override;

 private:
  Model& model_;
  PrecisionProfilerOptions options_;
  PrecisionProfile profile_;
  std::int64_t steps_ = 0;
};

}  // namespace mpc
