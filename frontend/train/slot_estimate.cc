#include "frontend/train/slot_estimate.h"

#include <algorithm>
#include <cmath>

#include "kernels/float16.h"

namespace mpc {
namespace {

/// Half the distance of 1 to the next number.
double UnitRoundoff(DType low) { return low == DType::kBF16 ? 0x1p-9 : 0x1p-12; }

double SquaredNorm(const std::vector<float>& a) {
  double squares = 0;
  for (const float element : a) squares += static_cast<double>(element) * element;
  return squares;
}

/// The square of a relative error. What is not finite is as bad as a result of nothing but errors.
double RelativeSquare(double square, double exact) {
  const double relative = exact > 0 ? square / exact : square;
  return std::isfinite(relative) ? std::min(relative, 1.0) : 1;
}

}  // namespace

Model::Impl::SlotEstimate::SlotEstimate(GradientProbe& probe, const std::vector<data::Row>& batches,
                                        const std::vector<GradientProbe::LossAndGradients>& exact, DType low,
                                        double seed)
    : probe_(probe), batches_(batches), exact_(exact), low_(low), seed_(seed) {}

absl::StatusOr<std::map<std::string, PrecisionErrors>> Model::Impl::SlotEstimate::Run(
    const std::vector<std::string>& open, std::int64_t directions) {
  const absl::StatusOr<SlotProbes> probes = probe_.CompileProbes(batches_.front(), open);
  if (!probes.ok()) return probes.status();
  std::map<std::string, PrecisionErrors> squares;
  for (std::size_t batch = 0; batch < batches_.size(); ++batch) {
    const absl::StatusOr<std::vector<PointError>> errors =
        ErrorsOfPoints(batches_[batch], probes->points, directions, batch);
    if (!errors.ok()) return errors.status();
    const double gradient = SquaredNorm(exact_[batch].gradients), loss = exact_[batch].loss * exact_[batch].loss;
    for (const SlotProbe& slot : probes->slots) {
      PrecisionErrors changes;
      for (const SlotPoint& point : slot.points) {
        const PointError& error = (*errors)[static_cast<std::size_t>(point.place)];
        if (point.roundsValue) changes.gradient += error.gradient_by_value;
        if (point.roundsCotangent) changes.gradient += error.gradient_by_cotangent;
        if (point.roundsValue) changes.loss += error.loss;
      }
      squares[slot.slot].gradient += RelativeSquare(changes.gradient, gradient);
      squares[slot.slot].loss += RelativeSquare(changes.loss, loss);
    }
  }
  const auto count = static_cast<double>(batches_.size());
  for (auto& [slot, square] : squares) square = {std::sqrt(square.gradient / count), std::sqrt(square.loss / count)};
  return squares;
}

Model::Impl::SlotEstimate::PointTensors Model::Impl::SlotEstimate::TakePoints(std::int64_t points) const {
  PointTensors taken;
  for (std::int64_t place = 0; place < points; ++place) {
    taken.values.push_back(probe_.PointValue(place));
    taken.cotangents.push_back(probe_.PointCotangent(place));
  }
  return taken;
}

double Model::Impl::SlotEstimate::RoundingError(float x, double scale) const {
  const auto scaled = static_cast<float>(x * scale);
  const float rounded = low_ == DType::kBF16 ? static_cast<float>(BFloat16(scaled)) : static_cast<float>(Half(scaled));
  return (static_cast<double>(rounded) - scaled) / scale;
}

absl::StatusOr<std::vector<Model::Impl::SlotEstimate::PointError>> Model::Impl::SlotEstimate::ErrorsOfPoints(
    const data::Row& batch, std::int64_t points, std::int64_t directions, std::uint64_t seed) {
  // Where an operation has a kink, such as relu, the estimate depends on the distance: its square falls with 1 /
  // distance. So the parameters move by about as much as rounding one slot moves what it computes.
  const double distance = std::max(UnitRoundoff(low_) / 2 * probe_.ParameterSize(), 1e-30);
  if (absl::Status status = probe_.RunMoved(batch, {}); !status.ok()) return status;
  const PointTensors exact = TakePoints(points);
  std::vector<PointError> errors(static_cast<std::size_t>(points));
  for (std::size_t i = 0; i < errors.size(); ++i) {
    const absl::Span<const float> v = exact.values[i].data<float>(), c = exact.cotangents[i].data<float>();
    double change = 0;
    for (std::size_t k = 0; k < v.size(); ++k) change += c[k] * RoundingError(v[k], 1);
    errors[i].loss = change * change;
  }
  for (std::int64_t direction = 0; direction < directions; ++direction) {
    const std::uint64_t drawn = seed * 1000003 + static_cast<std::uint64_t>(direction);
    if (absl::Status status = probe_.RunMoved(batch, {drawn, distance}); !status.ok()) return status;
    const PointTensors ahead = TakePoints(points);
    if (absl::Status status = probe_.RunMoved(batch, {drawn, -distance}); !status.ok()) return status;
    const PointTensors behind = TakePoints(points);
    const double weight = 1 / (4 * distance * distance * static_cast<double>(directions));
    const auto add = [&](const Tensor& rounded, double scale, const Tensor& from, const Tensor& to, double& sum) {
      const absl::Span<const float> r = rounded.data<float>(), a = from.data<float>(), b = to.data<float>();
      for (std::size_t i = 0; i < r.size(); ++i) {
        const double slope = static_cast<double>(b[i]) - a[i];
        const double change = RoundingError(r[i], scale) * slope;
        sum += change * change * weight;
      }
    };
    for (std::size_t i = 0; i < errors.size(); ++i) {
      add(exact.values[i], 1, behind.cotangents[i], ahead.cotangents[i], errors[i].gradient_by_value);
      add(exact.cotangents[i], seed_, behind.values[i], ahead.values[i], errors[i].gradient_by_cotangent);
    }
  }
  return errors;
}

}  // namespace mpc
