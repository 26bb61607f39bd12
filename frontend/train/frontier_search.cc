#include "frontend/train/frontier_search.h"

#include <algorithm>
#include <cmath>

#include "compiler/driver/precision_frontier.h"
#include "frontend/train/slot_estimate.h"

namespace mpc {
namespace {

using compiler::PrecisionMap;

/// The seeds that gradients in f16 are tried with, the largest first: a small one loses gradients to zero.
constexpr double kFirstSeed = 32768;

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

double RelativeError(double a, double exact) {
  const double error = exact != 0 ? std::abs(a - exact) / std::abs(exact) : std::abs(a);
  return std::isfinite(error) ? error : INFINITY;
}

/// The root of the mean square, the largest, and the largest with its distance to the least added.
struct Summary {
  explicit Summary(const std::vector<double>& errors) {
    double squares = 0;
    for (const double error : errors) squares += error * error;
    rms = std::sqrt(squares / static_cast<double>(errors.size()));
    const auto [least, most] = std::minmax_element(errors.begin(), errors.end());
    largest = *most;
    bound = std::isfinite(largest) ? largest + (largest - *least) : INFINITY;
  }

  double rms, largest, bound;
};

std::int64_t CountLow(const PrecisionMap& slots) {
  return std::count_if(slots.begin(), slots.end(), [](const auto& slot) { return slot.second != "f32"; });
}

PrecisionMap AllSlots(const std::vector<std::string>& open, const std::string& type) {
  PrecisionMap slots;
  for (const std::string& slot : open) slots[slot] = type;
  return slots;
}

}  // namespace

absl::StatusOr<MeasuredErrors> Model::Impl::FrontierSearch::Measure(const PrecisionMap& slots) {
  if (absl::Status status = RunExact(); !status.ok()) return status;
  std::vector<std::string> names;
  for (const auto& [slot, type] : slots) names.push_back(slot);
  if (absl::Status status = ChooseSeed(names); !status.ok()) return status;
  return RunErrors(slots);
}

absl::StatusOr<PrecisionFrontier> Model::Impl::FrontierSearch::Run(const std::string& network) {
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
  absl::StatusOr<SlotErrors> errors = ErrorsOfSlots(*open, frontier.measured_slots);
  if (!errors.ok()) return errors.status();
  absl::StatusOr<std::vector<compiler::PredictedPrecision>> hull = Predict(*traced, *errors);
  if (!hull.ok()) return hull.status();
  frontier.slot_errors = *std::move(errors);
  frontier.open_slots = static_cast<std::int64_t>(open->size());
  frontier.corners = static_cast<std::int64_t>(hull->size());
  if (absl::Status status = RunCorners(network, *hull, frontier); !status.ok()) return status;
  Choose(frontier);
  return frontier;
}

absl::Status Model::Impl::FrontierSearch::RunExact() {
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

absl::Status Model::Impl::FrontierSearch::ChooseSeed(const std::vector<std::string>& open) {
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

absl::StatusOr<std::map<std::string, PrecisionErrors>> Model::Impl::FrontierSearch::ErrorsOfSlots(
    const std::vector<std::string>& open, std::int64_t& measured) {
  SlotErrors errors;
  if (options_.slot_errors == SlotErrorSource::kEstimated) {
    const DType rounded = low() == "bf16" ? DType::kBF16 : DType::kF16;
    absl::StatusOr<SlotErrors> estimated =
        SlotEstimate(probe_, batches_, exact_, rounded, seed_).Run(open, options_.directions);
    if (!estimated.ok()) return estimated.status();
    errors = *std::move(estimated);
  }
  for (const std::string& slot : open) {
    if (errors.contains(slot)) continue;
    const absl::StatusOr<PrecisionErrors> error = MeasureSlot(open, slot);
    if (!error.ok()) return error.status();
    errors[slot] = *error;
    ++measured;
  }
  return errors;
}

absl::StatusOr<PrecisionErrors> Model::Impl::FrontierSearch::MeasureSlot(const std::vector<std::string>& open,
                                                                         const std::string& slot) {
  PrecisionMap slots = AllSlots(open, "f32");
  slots[slot] = low();
  if (absl::Status status = probe_.CompileWith(batches_.front(), slots, seed_, false); !status.ok()) return status;
  PrecisionErrors squares;
  for (std::size_t i = 0; i < batches_.size(); ++i) {
    const absl::StatusOr<PrecisionErrors> errors = ErrorsOnBatch(i);
    if (!errors.ok()) return errors.status();
    // What is not finite is as bad as a gradient of nothing but errors.
    const double gradient = std::min(errors->gradient, 1.0), loss = std::min(errors->loss, 1.0);
    squares.gradient += gradient * gradient;
    squares.loss += loss * loss;
  }
  const auto count = static_cast<double>(batches_.size());
  return PrecisionErrors{std::sqrt(squares.gradient / count), std::sqrt(squares.loss / count)};
}

absl::StatusOr<std::vector<compiler::PredictedPrecision>> Model::Impl::FrontierSearch::Predict(
    const compiler::Module& traced, const SlotErrors& errors) const {
  std::map<std::string, double> weighed, other;
  for (const auto& [slot, error] : errors) {
    const bool by_loss = options_.weighed == FrontierError::kLoss;
    weighed[slot] = by_loss ? error.loss : error.gradient;
    other[slot] = by_loss ? error.gradient : error.loss;
  }
  return compiler::PredictPrecisionFrontier(traced, probe_.compile_options(), weighed, other);
}

PrecisionErrors Model::Impl::FrontierSearch::PredictedErrors(const compiler::PredictedPrecision& corner) const {
  if (options_.weighed == FrontierError::kLoss) return {corner.other_error, corner.error};
  return {corner.error, corner.other_error};
}

absl::Status Model::Impl::FrontierSearch::RunCorners(const std::string& network, const Hull& hull,
                                                     PrecisionFrontier& frontier) {
  Points points;
  const std::size_t last = hull.size() - 1, wanted = std::min(static_cast<std::size_t>(options_.points), hull.size());
  if (absl::Status status = RunCorner(network, hull, last, points); !status.ok()) return status;
  if (limits_errors()) {
    if (absl::Status status = Bisect(network, hull, wanted, points); !status.ok()) return status;
  } else {
    for (std::size_t i = 0; i + 1 < wanted; ++i) {
      const std::size_t corner = i * last / (wanted - 1);
      if (absl::Status status = RunCorner(network, hull, corner, points); !status.ok()) return status;
    }
  }
  for (auto& [corner, point] : points) frontier.points.push_back(std::move(point));
  return absl::OkStatus();
}

absl::Status Model::Impl::FrontierSearch::RunCorner(const std::string& network, const Hull& hull, std::size_t corner,
                                                    Points& points) {
  absl::StatusOr<PrecisionFrontier::Point> point = RunPoint(network, hull[corner]);
  if (!point.ok()) return point.status();
  points[corner] = *std::move(point);
  return absl::OkStatus();
}

absl::Status Model::Impl::FrontierSearch::Bisect(const std::string& network, const Hull& hull, std::size_t wanted,
                                                 Points& points) {
  // Corners before `begin` are taken to err too much, and those from `end` on are not.
  std::size_t begin = 0, end = hull.size() - 1;
  for (std::size_t next = PlaceWithin(hull); points.size() < wanted && begin < end; next = begin + (end - begin) / 2) {
    next = std::clamp(next, begin, end - 1);
    if (absl::Status status = RunCorner(network, hull, next, points); !status.ok()) return status;
    if (points[next].Keeps(options_)) {
      end = next;
    } else {
      begin = next + 1;
    }
  }
  if (!options_.max_loss_error.has_value()) return absl::OkStatus();
  for (std::size_t next = end; next-- > 0 && points.size() < wanted;) {
    if (!points.contains(next)) {
      if (absl::Status status = RunCorner(network, hull, next, points); !status.ok()) return status;
    }
    if (points[next].measured.bound.gradient > options_.max_gradient_error.value_or(INFINITY)) break;
  }
  return absl::OkStatus();
}

std::size_t Model::Impl::FrontierSearch::PlaceWithin(const Hull& hull) const {
  const auto found = std::find_if(hull.begin(), hull.end(), [&](const compiler::PredictedPrecision& corner) {
    const PrecisionErrors errors = PredictedErrors(corner);
    return errors.gradient <= options_.max_gradient_error.value_or(INFINITY) &&
           errors.loss <= options_.max_loss_error.value_or(INFINITY);
  });
  return static_cast<std::size_t>(std::min(found, std::prev(hull.end())) - hull.begin());
}

absl::StatusOr<MeasuredErrors> Model::Impl::FrontierSearch::RunErrors(const PrecisionMap& slots) {
  if (absl::Status status = probe_.CompileWith(batches_.front(), slots, seed_, true); !status.ok()) return status;
  std::vector<double> gradients, losses;
  for (std::size_t i = 0; i < batches_.size(); ++i) {
    const absl::StatusOr<PrecisionErrors> errors = ErrorsOnBatch(i);
    if (!errors.ok()) return errors.status();
    gradients.push_back(errors->gradient);
    losses.push_back(errors->loss);
  }
  const Summary gradient(gradients), loss(losses);
  return MeasuredErrors{{gradient.rms, loss.rms}, {gradient.largest, loss.largest}, {gradient.bound, loss.bound}};
}

absl::StatusOr<PrecisionErrors> Model::Impl::FrontierSearch::ErrorsOnBatch(std::size_t batch) {
  const absl::StatusOr<GradientProbe::LossAndGradients> run = probe_.Run(batches_[batch]);
  if (!run.ok()) return run.status();
  return PrecisionErrors{RelativeError(run->gradients, exact_[batch].gradients),
                         RelativeError(run->loss, exact_[batch].loss)};
}

absl::StatusOr<PrecisionFrontier::Point> Model::Impl::FrontierSearch::RunPoint(
    const std::string& network, const compiler::PredictedPrecision& corner) {
  PrecisionFrontier::Point point;
  point.precision = {network, low(), corner.slots};
  point.low_slots = CountLow(corner.slots);
  point.predicted_seconds = corner.seconds;
  point.predicted = PredictedErrors(corner);
  absl::StatusOr<MeasuredErrors> measured = RunErrors(corner.slots);
  if (!measured.ok()) return measured.status();
  point.measured = *measured;
  const absl::StatusOr<double> seconds = probe_.TimeTraining(batches_.front(), corner.slots, options_.steps);
  if (!seconds.ok()) return seconds.status();
  point.measured_seconds = *seconds;
  return point;
}

void Model::Impl::FrontierSearch::Choose(PrecisionFrontier& frontier) const {
  if (!limits_errors()) return;
  const auto keeps = [&](const PrecisionFrontier::Point& point) { return point.Keeps(options_); };
  const auto found = std::find_if(frontier.points.begin(), frontier.points.end(), keeps);
  if (found != frontier.points.end()) frontier.chosen = static_cast<std::size_t>(found - frontier.points.begin());
}

}  // namespace mpc
