// What loss and gradient of a Model's step lose where one slot is low, from f32 steps. Not part of the public API.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "frontend/train/gradient_probe.h"
#include "frontend/train/precision_frontier.h"

namespace mpc {

/// Estimates errors of slots: those of gradient and loss with one slot low.
///
/// A slot rounds values v and cotangents c. Let r be a random direction of the parameters whose elements are +1 or -1,
/// and let a prime be the derivative along r. The gradient is linear in each c, and its derivative by v is that of c by
/// the parameters. So the gradient's component along r changes by sum(c' (round(v) - v)) + sum(v' (round(c) - c)), to
/// first order. Its mean square over r is the square of the gradient's change. Rounding errors of different elements
/// are taken as independent, so that squares add up. Both derivatives are central differences of f32 steps.
///
/// To first order the loss changes by sum(c (round(v) - v)) where one tensor of values v is rounded. Cotangents have no
/// part in it. What a slot writes is rounded after what it reads, which has moved it. So the sums of its tensors are
/// taken as independent, and their squares add up.
class Model::Impl::SlotEstimate {
 public:
  /// `exact`: what each batch gives at O0. In f16 cotangents are rounded as those of the loss by `seed`.
  SlotEstimate(GradientProbe& probe, const std::vector<data::Row>& batches,
               const std::vector<GradientProbe::LossAndGradients>& exact, DType low, double seed);

  /// The errors by slot: each the root of its mean square over the batches, at most 1. Slots of `open` that cannot be
  /// probed are left out. Each batch takes one step, and two more for each of `directions`, >= 1. Three copies of
  /// what slots read and write are held meanwhile.
  absl::StatusOr<std::map<std::string, PrecisionErrors>> Run(const std::vector<std::string>& open,
                                                             std::int64_t directions);

 private:
  /// The squared changes that rounding at a point makes.
  struct PointError {
    double gradient_by_value = 0;
    double gradient_by_cotangent = 0;
    double loss = 0;  ///< by the value
  };
  /// Tensors of all points, as floats.
  struct PointTensors {
    std::vector<Tensor> values, cotangents;
  };

  PointTensors TakePoints(std::int64_t points) const;
  absl::StatusOr<std::vector<PointError>> ErrorsOfPoints(const data::Row& batch, std::int64_t points,
                                                         std::int64_t directions, std::uint64_t seed);
  double RoundingError(float x, double scale) const;

  GradientProbe& probe_;
  const std::vector<data::Row>& batches_;
  const std::vector<GradientProbe::LossAndGradients>& exact_;
  DType low_;
  double seed_;
};

}  // namespace mpc
