// A first loss scale that follows from the ranges of a Model's step.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"
#include "compiler/driver/analyze_ranges.h"
#include "frontend/train/known_range.h"
#include "frontend/train/model_impl.h"

namespace mpc {
namespace {

using compiler::KnownRange;

/// The interval of both, and the larger of what is typical of them.
KnownRange Joined(const KnownRange& a, const KnownRange& b) {
  return {.low = std::min(a.low, b.low),
          .high = std::max(a.high, b.high),
          .typical = std::max(a.typical.value_or(0), b.typical.value_or(0))};
}

}  // namespace

absl::StatusOr<compiler::RangeTable> Model::Impl::RangesOn(const Model& model, const data::Dataset& dataset,
                                                           internal::StepOptions step_options) const {
  absl::StatusOr<std::unique_ptr<data::DatasetIterator>> rows = dataset.NewIterator(0);
  if (!rows.ok()) return rows.status();
  data::Row batch;
  const absl::StatusOr<bool> found = (*rows)->Next(&batch);
  if (!found.ok()) return found.status();
  if (!*found) return absl::InvalidArgumentError("the data set has no batch, whose values ranges begin with");
  compiler::RangeAssumptions assumptions;
  for (const Tensor& column : batch) {
    const std::optional<KnownRange> known = internal::KnownRangeOf(column);
    if (!known.has_value()) continue;
    const KnownRange interval = Joined(*known, assumptions.inputs.value_or(*known));
    assumptions.inputs = interval;
  }
  absl::StatusOr<std::map<std::string, KnownRange>> state = internal::KnownState(*cells.root());
  if (!state.ok()) return state.status();
  assumptions.state = *std::move(state);
  absl::StatusOr<internal::StepOptions> precise = WithPrecision(std::move(step_options));
  if (!precise.ok()) return precise.status();
  precise->compile.function = precise->name;
  absl::StatusOr<compiler::Module> traced = model.TraceTrainStep(internal::SpecsOf(batch));
  if (!traced.ok()) return traced.status();
  return compiler::AnalyzeRanges(*traced, precise->compile, assumptions);
}

absl::Status Model::Impl::DeriveLossScale(const Model& model, const data::Dataset& dataset) {
  LossScaler* const scaler = scalers.own();
  const bool is_first = position.global_step() == 0 && scaler != nullptr && scaler->skipped_steps() == 0;
  if (!options.amp.enabled || options.amp.loss_scale.text() != "derived" || !is_first ||
      scaler->scale() != scalers.config().init) {
    return absl::OkStatus();
  }
  // Equal updates begin with one scale: that of one process which accumulates all their micro-batches.
  internal::StepOptions of_one = TrainOptions({});
  const bool is_mean = updates.is_shared && processes.options().gradients_mean;
  if (is_mean) {
    of_one.compile.accumulation_steps = updates.all();
    of_one.compile.processes = 1;
  }
  absl::StatusOr<compiler::RangeTable> table = RangesOn(model, dataset, std::move(of_one));
  // A network that exchanges values itself has no step of one process.
  if (!table.ok() && is_mean && updates.processes > 1) table = RangesOn(model, dataset);
  if (!table.ok()) return table.status();
  if (table->derived_scale == 0) {
    remarks.Say(absl::StrFormat("remark: no f16 tensor of the step grows with the loss scale, which begins at %.10g",
                                scalers.config().init));
    return absl::OkStatus();
  }
  for (const std::string& warning : compiler::OverflowWarnings(*table)) remarks.Say("warning: " + warning);
  const double scale = std::clamp(table->derived_scale, scalers.config().minimum, scalers.config().maximum);
  remarks.Say(absl::StrFormat("remark: the loss scale begins at %.10g: %s is expected to reach %.3g with it", scale,
                              table->derived_from, table->derived_peak * scale));
  return scaler->SetScale(scale);
}

}  // namespace mpc
