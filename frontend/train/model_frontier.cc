// Finds the precisions of a Model's step between the fastest and the most exact one, and trains with one of them.
#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "compiler/driver/precision_frontier.h"
#include "frontend/train/gradient_probe.h"
#include "frontend/train/model_impl.h"
#include "frontend/train/precision_frontier.h"
#include "frontend/train/slot_estimate.h"

namespace mpc {
namespace {

using compiler::PrecisionMap;

/// The seeds that gradients in f16 are tried with, the largest first: a small one loses gradients to zero.
constexpr double kFirstSeed = 32768;

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

/// |a - b| / |b| over all elements. Infinite where `a` is not finite.
double RelativeError(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double exact = b[i], d = a[i] - exact;
    difference += d * d;
    norm += exact * exact;
  }
  const double error = norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
  return std::isfinite(error) ? error : INFINITY;
}

double Norm(const std::vector<float>& a) {
  double squares = 0;
  for (const float element : a) squares += static_cast<double>(element) * element;
  return std::sqrt(squares);
}

std::int64_t CountLow(const PrecisionMap& slots) {
  return std::count_if(slots.begin(), slots.end(), [](const auto& slot) { return slot.second != "f32"; });
}

}  // namespace

/// Measures errors against the step at O0.
class Model::Impl::FrontierSearch {
 public:
  FrontierSearch(GradientProbe& probe, std::vector<data::Row> batches, const PrecisionFrontierOptions& options)
      : probe_(probe), batches_(std::move(batches)), options_(options) {}

  /// The relative error of the gradient with `slots`, the largest of the batches.
  absl::StatusOr<double> MeasureError(const PrecisionMap& slots) {
    if (absl::Status status = RunExact(); !status.ok()) return status;
    std::vector<std::string> names;
    for (const auto& [slot, type] : slots) names.push_back(slot);
    if (absl::Status status = ChooseSeed(names); !status.ok()) return status;
    PrecisionFrontier::Point point;
    if (absl::Status status = RunErrors(slots, point); !status.ok()) return status;
    return point.measured_error;
  }

  absl::StatusOr<PrecisionFrontier> Run(const std::string& network) {
    absl::StatusOr<compiler::Module> traced = probe_.Trace(batches_.front());
    if (!traced.ok()) return traced.status();
    absl::StatusOr<std::vector<std::string>> open = compiler::OpenPrecisionSlots(*traced, probe_.compile_options());
    if (!open.ok()) return open.status();
    if (open->empty()) {
      return absl::FailedPreconditionError(
          "no slot of this step is open at level auto: lists, ToFloat and casts decide all of them");
    }
    if (absl::Status status = RunExact(); !status.ok()) return status;
    if (absl::Status status = ChooseSeed(*open); !status.ok()) return status;
    PrecisionFrontier frontier;
    absl::StatusOr<std::map<std::string, double>> errors = ErrorsOfSlots(*open, frontier.measured_slots);
    if (!errors.ok()) return errors.status();
    absl::StatusOr<std::vector<compiler::PredictedPrecision>> hull =
        compiler::PredictPrecisionFrontier(*traced, probe_.compile_options(), *errors);
    if (!hull.ok()) return hull.status();
    frontier.slot_errors = *std::move(errors);
    frontier.open_slots = static_cast<std::int64_t>(open->size());
    frontier.corners = static_cast<std::int64_t>(hull->size());
    if (absl::Status status = RunCorners(network, *hull, frontier); !status.ok()) return status;
    Choose(frontier);
    return frontier;
  }

 private:
  static PrecisionMap AllSlots(const std::vector<std::string>& open, const std::string& type) {
    PrecisionMap slots;
    for (const std::string& slot : open) slots[slot] = type;
    return slots;
  }

  const std::string& low() const { return probe_.compile_options().dtype; }

  absl::Status RunExact() {
    if (absl::Status status = probe_.CompileExact(batches_.front()); !status.ok()) return status;
    for (const data::Row& batch : batches_) {
      absl::StatusOr<GradientProbe::LossAndGradients> run = probe_.Run(batch);
      if (!run.ok()) return run.status();
      if (!run->IsFinite()) {
        return absl::FailedPreconditionError(
            "the loss or a gradient is not finite at O0, so that no error of a lower precision can be told");
      }
      exact_.push_back(*std::move(run));
    }
    return absl::OkStatus();
  }

  /// In f16 gradients need a scale. It is the largest power of 8 below 2^16 with which all of them are finite where
  /// every open slot is low.
  absl::Status ChooseSeed(const std::vector<std::string>& open) {
    if (low() != "f16") return absl::OkStatus();
    for (seed_ = kFirstSeed; seed_ > 1; seed_ /= 8) {
      if (absl::Status status = probe_.CompileWith(batches_.front(), AllSlots(open, low()), seed_, false); !status.ok())
        return status;
      const absl::StatusOr<GradientProbe::LossAndGradients> run = probe_.Run(batches_.front());
      if (!run.ok()) return run.status();
      if (run->IsFinite()) return absl::OkStatus();
    }
    seed_ = 1;
    return absl::OkStatus();
  }

  /// `measured` receives the number of slots that were run one by one.
  absl::StatusOr<std::map<std::string, double>> ErrorsOfSlots(const std::vector<std::string>& open,
                                                              std::int64_t& measured) {
    std::map<std::string, double> errors;
    if (options_.slot_errors == SlotErrorSource::kEstimated) {
      std::vector<double> norms;
      for (const GradientProbe::LossAndGradients& run : exact_) norms.push_back(Norm(run.gradients));
      absl::StatusOr<std::map<std::string, double>> estimated =
          SlotEstimate(probe_, batches_, std::move(norms), low() == "bf16" ? DType::kBF16 : DType::kF16, seed_)
              .Run(open, options_.directions);
      if (!estimated.ok()) return estimated.status();
      errors = *std::move(estimated);
    }
    for (const std::string& slot : open) {
      if (errors.contains(slot)) continue;
      const absl::StatusOr<double> error = MeasureSlot(open, slot);
      if (!error.ok()) return error.status();
      errors[slot] = *error;
      ++measured;
    }
    return errors;
  }

  /// The root of the mean square over the batches.
  absl::StatusOr<double> MeasureSlot(const std::vector<std::string>& open, const std::string& slot) {
    PrecisionMap slots = AllSlots(open, "f32");
    slots[slot] = low();
    if (absl::Status status = probe_.CompileWith(batches_.front(), slots, seed_, false); !status.ok()) return status;
    double squares = 0;
    for (std::size_t i = 0; i < batches_.size(); ++i) {
      const absl::StatusOr<GradientProbe::LossAndGradients> run = probe_.Run(batches_[i]);
      if (!run.ok()) return run.status();
      // What is not finite is as bad as a gradient of nothing but errors.
      const double error = std::min(RelativeError(run->gradients, exact_[i].gradients), 1.0);
      squares += error * error;
    }
    return std::sqrt(squares / static_cast<double>(batches_.size()));
  }

  /// Runs corners into the points of `frontier`, the fastest first. The most exact one is always among them.
  absl::Status RunCorners(const std::string& network, const std::vector<compiler::PredictedPrecision>& hull,
                          PrecisionFrontier& frontier) {
    std::map<std::size_t, PrecisionFrontier::Point> points;
    const auto run = [&](std::size_t corner) {
      absl::StatusOr<PrecisionFrontier::Point> point = RunPoint(network, hull[corner]);
      if (!point.ok()) return point.status();
      points[corner] = *std::move(point);
      return absl::OkStatus();
    };
    const std::size_t last = hull.size() - 1, wanted = std::min(static_cast<std::size_t>(options_.points), hull.size());
    if (absl::Status status = run(last); !status.ok()) return status;
    if (options_.max_gradient_error.has_value()) {
      const double error = *options_.max_gradient_error;
      // Corners before `begin` have too large an error, and those from `end` on do not.
      std::size_t begin = 0, end = last;
      std::size_t next = PlaceWithin(hull, error);
      while (points.size() < wanted && begin < end) {
        next = std::clamp(next, begin, end - 1);
        if (absl::Status status = run(next); !status.ok()) return status;
        if (points[next].Keeps(error)) {
          end = next;
        } else {
          begin = next + 1;
        }
        next = begin + (end - begin) / 2;
      }
    } else {
      for (std::size_t i = 0; i + 1 < wanted; ++i) {
        if (absl::Status status = run(i * last / (wanted - 1)); !status.ok()) return status;
      }
    }
    for (auto& [corner, point] : points) frontier.points.push_back(std::move(point));
    return absl::OkStatus();
  }

  /// The fastest corner that is predicted to keep the error.
  static std::size_t PlaceWithin(const std::vector<compiler::PredictedPrecision>& hull, double error) {
    const auto found =
        std::find_if(hull.begin(), hull.end(), [&](const auto& corner) { return corner.error <= error; });
    return static_cast<std::size_t>(std::min(found, std::prev(hull.end())) - hull.begin());
  }

  absl::Status RunErrors(const PrecisionMap& slots, PrecisionFrontier::Point& point) {
    if (absl::Status status = probe_.CompileWith(batches_.front(), slots, seed_, true); !status.ok()) return status;
    double least = INFINITY;
    for (std::size_t i = 0; i < batches_.size(); ++i) {
      const absl::StatusOr<GradientProbe::LossAndGradients> run = probe_.Run(batches_[i]);
      if (!run.ok()) return run.status();
      const double loss = exact_[i].loss;
      const double error = RelativeError(run->gradients, exact_[i].gradients);
      point.measured_error = std::max(point.measured_error, error);
      least = std::min(least, error);
      point.loss_error = std::max(point.loss_error, std::abs(run->loss - loss) / std::max(std::abs(loss), 1e-30));
    }
    point.error_spread = std::isfinite(point.measured_error) ? point.measured_error - least : 0;
    return absl::OkStatus();
  }

  absl::StatusOr<PrecisionFrontier::Point> RunPoint(const std::string& network,
                                                    const compiler::PredictedPrecision& corner) {
    PrecisionFrontier::Point point;
    point.precision = {network, low(), corner.slots};
    point.low_slots = CountLow(corner.slots);
    point.predicted_seconds = corner.seconds;
    point.predicted_error = corner.error;
    if (absl::Status status = RunErrors(corner.slots, point); !status.ok()) return status;
    const absl::StatusOr<double> seconds = probe_.Time(batches_.front(), options_.steps);
    if (!seconds.ok()) return seconds.status();
    point.measured_seconds = *seconds;
    return point;
  }

  void Choose(PrecisionFrontier& frontier) const {
    if (!options_.max_gradient_error.has_value()) return;
    for (std::size_t i = 0; i < frontier.points.size(); ++i) {
      if (!frontier.points[i].Keeps(*options_.max_gradient_error)) continue;
      frontier.chosen = i;
      return;
    }
  }

  GradientProbe& probe_;
  std::vector<data::Row> batches_;
  PrecisionFrontierOptions options_;
  std::vector<GradientProbe::LossAndGradients> exact_;
  double seed_ = 1;
};

absl::StatusOr<PrecisionFrontier> Model::FindPrecisionFrontier(const data::Dataset& dataset,
                                                               const PrecisionFrontierOptions& options) {
  if (!impl_->status.ok()) return impl_->status;
  if (!impl_->step.defined()) return absl::FailedPreconditionError("this Model has no training step");
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
  if (options.max_gradient_error.has_value() &&
      !(*options.max_gradient_error > 0 && std::isfinite(*options.max_gradient_error))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "PrecisionFrontierOptions::max_gradient_error is a number above 0, not ", *options.max_gradient_error));
  }
  absl::StatusOr<std::vector<data::Row>> batches = FirstBatches(dataset, options.batches);
  if (!batches.ok()) return batches.status();
  absl::StatusOr<Impl::GradientProbe> probe = Impl::GradientProbe::Create(*impl_, options.rates);
  if (!probe.ok()) return probe.status();
  absl::StatusOr<PrecisionFrontier> frontier =
      Impl::FrontierSearch(*probe, *std::move(batches), options).Run(impl_->network.cell()->TypeName());
  if (absl::Status status = probe->Restore(); !status.ok()) return status;
  return frontier;
}

absl::StatusOr<double> Model::MeasureGradientError(const compiler::ChosenPrecision& chosen,
                                                   const data::Dataset& dataset, std::int64_t count) {
  if (absl::Status status = impl_->CheckChosen(*this, chosen, dataset); !status.ok()) return status;
  if (count < 1) return absl::InvalidArgumentError(absl::StrCat("batches is at least 1, not ", count));
  absl::StatusOr<std::vector<data::Row>> batches = FirstBatches(dataset, count);
  if (!batches.ok()) return batches.status();
  absl::StatusOr<Impl::GradientProbe> probe = Impl::GradientProbe::Create(*impl_, compiler::DeviceRates{});
  if (!probe.ok()) return probe.status();
  const absl::StatusOr<double> error = Impl::FrontierSearch(*probe, *std::move(batches), {}).MeasureError(chosen.slots);
  if (absl::Status status = probe->Restore(); !status.ok()) return status;
  return error;
}

absl::Status Model::UsePrecision(const compiler::ChosenPrecision& chosen, const data::Dataset& dataset) {
  if (absl::Status status = impl_->CheckChosen(*this, chosen, dataset); !status.ok()) return status;
  impl_->KeepAssignment(chosen.slots, /*training=*/true);
  return absl::OkStatus();
}

absl::Status Model::Impl::CheckChosen(const Model& model, const compiler::ChosenPrecision& chosen,
                                      const data::Dataset& dataset) const {
  if (!status.ok()) return status;
  if (!step.defined()) return absl::FailedPreconditionError("this Model has no training step");
  if (precision.level != "auto") {
    return absl::InvalidArgumentError(absl::StrCat("a chosen precision is for level auto, not ", precision.level));
  }
  const std::string name = network.cell()->TypeName();
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
