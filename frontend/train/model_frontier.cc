// Finds the precisions of a Model's step between the fastest and the most exact one, and trains with one of them.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/driver/precision_frontier.h"
#include "frontend/train/frontier_search.h"
#include "frontend/train/gradient_probe.h"
#include "frontend/train/model_impl.h"

namespace mpc {
namespace {

absl::StatusOr<std::vector<data::Row>> FirstBatches(const data::Dataset& dataset, std::int64_t count) {
  absl::StatusOr<std::unique_ptr<data::DatasetIterator>> rows = dataset.NewIterator(0);
  if (!rows.ok()) return rows.status();
  std::vector<data::Row> batches;
  for (data::Row batch; static_cast<std::int64_t>(batches.size()) < count;) {
    const absl::StatusOr<bool> found = (*rows)->Next(&batch);
    if (!found.ok()) return found.status();
    if (!*found) break;
    // One Program runs all of them.
    if (!batches.empty() && batch.front().spec() != batches.front().front().spec()) break;
    batches.push_back(batch);
  }
  if (batches.empty()) return absl::InvalidArgumentError("the data set has no batch to measure gradients on");
  return batches;
}

}  // namespace

absl::StatusOr<PrecisionFrontier> Model::FindPrecisionFrontier(const data::Dataset& dataset,
                                                               const PrecisionFrontierOptions& options) {
  const std::scoped_lock lock(impl_->mutex);
  if (!impl_->status.ok()) return impl_->status;
  if (impl_->cells.step() == nullptr) return absl::FailedPreconditionError("this Model has no training step");
  if (impl_->precision.level != "auto") {
    return absl::InvalidArgumentError(absl::StrCat("a frontier of precision is for level auto, not ",
                                                   impl_->precision.level, ": the other levels decide without times"));
  }
  for (const auto& [name, value] : {std::pair<const char*, std::int64_t>{"points", options.points},
                                    {"steps", options.steps},
                                    {"batches", options.batches},
                                    {"directions", options.directions}}) {
    if (value < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("PrecisionFrontierOptions::", name, " is at least 1, not ", value));
    }
  }
  for (const auto& [name, value] :
       {std::pair<const char*, std::optional<double>>{"gradient", options.max_gradient_error},
        {"loss", options.max_loss_error}}) {
    if (value.has_value() && !(*value > 0 && std::isfinite(*value))) {
      return absl::InvalidArgumentError(
          absl::StrCat("PrecisionFrontierOptions::max_", name, "_error is a number above 0, not ", *value));
    }
  }
  absl::StatusOr<std::vector<data::Row>> batches = FirstBatches(dataset, options.batches);
  if (!batches.ok()) return batches.status();
  absl::StatusOr<Impl::GradientProbe> probe = Impl::GradientProbe::Create(*impl_, options.rates);
  if (!probe.ok()) return probe.status();
  absl::StatusOr<PrecisionFrontier> frontier =
      Impl::FrontierSearch(*probe, *std::move(batches), options).Run(impl_->cells.network()->TypeName());
  if (absl::Status status = probe->Restore(); !status.ok()) return status;
  return frontier;
}

absl::StatusOr<MeasuredErrors> Model::MeasurePrecisionErrors(const compiler::ChosenPrecision& chosen,
                                                             const data::Dataset& dataset, std::int64_t count) {
  const std::scoped_lock lock(impl_->mutex);
  if (absl::Status status = impl_->CheckChosen(*this, chosen, dataset); !status.ok()) return status;
  if (count < 1) return absl::InvalidArgumentError(absl::StrCat("batches is at least 1, not ", count));
  absl::StatusOr<std::vector<data::Row>> batches = FirstBatches(dataset, count);
  if (!batches.ok()) return batches.status();
  absl::StatusOr<Impl::GradientProbe> probe = Impl::GradientProbe::Create(*impl_, compiler::DeviceRates{});
  if (!probe.ok()) return probe.status();
  const absl::StatusOr<MeasuredErrors> errors =
      Impl::FrontierSearch(*probe, *std::move(batches), {}).Measure(chosen.slots);
  if (absl::Status status = probe->Restore(); !status.ok()) return status;
  return errors;
}

absl::Status Model::UsePrecision(const compiler::ChosenPrecision& chosen, const data::Dataset& dataset) {
  const std::scoped_lock lock(impl_->mutex);
  if (absl::Status status = impl_->CheckChosen(*this, chosen, dataset); !status.ok()) return status;
  impl_->decision.Keep(chosen.slots, /*training=*/true);
  return absl::OkStatus();
}

absl::Status Model::Impl::CheckChosen(const Model& model, const compiler::ChosenPrecision& chosen,
                                      const data::Dataset& dataset) const {
  if (!status.ok()) return status;
  if (cells.step() == nullptr) return absl::FailedPreconditionError("this Model has no training step");
  if (precision.level != "auto") {
    return absl::InvalidArgumentError(absl::StrCat("a chosen precision is for level auto, not ", precision.level));
  }
  const std::string name = cells.network()->TypeName();
  if (chosen.network != name) {
    return absl::InvalidArgumentError(
        absl::StrCat("the precision is of the network ", chosen.network, ", this one is ", name));
  }
  const std::string low(DTypeName(precision.dtype));
  if (chosen.low != low) {
    return absl::InvalidArgumentError(absl::StrCat("the precision has the low type ", chosen.low, ", this Model has ",
                                                   low, "; give it dtype = ", chosen.low));
  }
  const absl::StatusOr<std::vector<data::Row>> batches = FirstBatches(dataset, 1);
  if (!batches.ok()) return batches.status();
  absl::StatusOr<compiler::Module> traced = model.TraceTrainStep(internal::SpecsOf(batches->front()));
  if (!traced.ok()) return traced.status();
  compiler::CompileOptions options = model.compile_options(/*training=*/true);
  options.dtype = low;
  const absl::StatusOr<std::vector<std::string>> open = compiler::OpenPrecisionSlots(*traced, options);
  if (!open.ok()) return open.status();
  for (const std::string& slot : *open) {
    if (!chosen.slots.contains(slot)) {
      return absl::InvalidArgumentError(absl::StrCat("the precision does not have ", slot, ", which this ", name,
                                                     " has: another variant of the network wrote it"));
    }
  }
  for (const auto& [slot, type] : chosen.slots) {
    if (std::find(open->begin(), open->end(), slot) == open->end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the precision has ", slot, ", which is no open slot of this ", name));
    }
  }
  return absl::OkStatus();
}

}  // namespace mpc
