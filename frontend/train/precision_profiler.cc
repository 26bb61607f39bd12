#include "frontend/train/precision_profiler.h"

#include <algorithm>

namespace mpc {

PrecisionProfiler::PrecisionProfiler(Model& model, const PrecisionProfilerOptions& options)
    : model_(model), options_(options), profile_(options.low) {
  options_.every = std::max<std::int64_t>(1, options_.every);
}

bool PrecisionProfiler::NeedsState(const RunContext&) const { return steps_ % options_.every == 0; }

void PrecisionProfiler::OnStepBegin(RunContext& context) {
  if (steps_++ % options_.every != 0 || context.batch() == nullptr) return;
  absl::StatusOr<std::vector<ValueStatistics>> values = model_.Measure(*context.batch(), {.full_precision = true});
  if (!values.ok()) return context.Fail(values.status());
  profile_.Add(*values, model_.loss_scale());
}

}  // namespace mpc
