// What the gradient of a Model's step loses where one slot is low, from f32 steps. Not part of the public API.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "frontend/train/gradient_probe.h"

namespace mpc {

/// Estimates errors of slots: the relative error of the gradient, in the l2 norm, with one slot low.
///
/// A slot rounds values v and cotangents c. Let r be a random direction of the parameters whose elements are +1 or -1,
/// and let a prime be the derivative along r. The gradient is linear in each c, and its derivative by v is that of c by
/// the parameters. So the gradient's component along r changes by sum(c' (round(v) - v)) + sum(v' (round(c) - c)), to
/// first order. Its mean square over r is the square of the gradient's change. Rounding errors of different elements
/// are taken as independent, so that squares add up. Both derivatives are central differences of f32 steps.
class Model::Impl::SlotEstimate {
 public:
  /// `gradient_norms`: of each batch at O0, in the l2 norm. In f16 cotangents are those of the loss by `seed`.
  SlotEstimate(GradientProbe& probe, const std::vector<data::Row>& batches, std::vector<double> gradient_norms,
               DType low, double seed);

  /// The errors by slot: each the root of its mean square over the batches, at most 1. Slots of `open` that cannot be
  /// probed are left out. Each batch takes one step, and two more for each of `directions`, >= 1. Three copies of
  /// what slots read and write are held meanwhile.
  absl::StatusOr<std::map<std::string, double>> Run(const std::vector<std::string>& open, std::int64_t directions);

 private:
  /// The squared change of the gradient that rounding at a point makes.
  struct PointError {
    double value = 0;
    double cotangent = 0;
  };
  /// Tensors of all points, as floats.
  struct PointTensors {
    std::vector<Tensor> values, cotangents;
  };

  PointTensors TakePoints(std::int64_t points) const;
  absl::StatusOr<std::vector<PointError>> ErrorsOfPoints(const data::Row& batch, std::int64_t points,
                                                         std::int64_t directions, std::uint64_t seed);
  double SquaredRounding(float x, double scale) const;

  GradientProbe& probe_;
  const std::vector<data::Row>& batches_;
  std::vector<double> gradient_norms_;
  DType low_;
  double seed_;
};

}  // namespace mpc
