// How a Parameter gets its first value.
#pragma once

#include <string>

#include "kernels/attributes.h"
#include "kernels/tensor_spec.h"

namespace mpc {

/// A rule for initial values, drawn from Philox with the seed of `SetSeed` and the Parameter's own stream.
///
/// For a shape [out, in, ...] the fans are fan_in = in * receptive and fan_out = out * receptive, receptive being the
/// product of the remaining extents. Both fans of a shape [n] are n, and those of a scalar are 1. Gains and bounds
/// follow He et al. 2015 and Glorot and Bengio 2010. Where an interval excludes its end, rounding to f32 may give it.
class Initializer {
 public:
  enum class Kind { kConstant, kUniform, kNormal, kTruncatedNormal, kHeUniform, kHeNormal, kXavierUniform };

  /// The numbers of each kind: constant value; uniform low, high; normal and truncated normal mean, sigma. He takes
  /// negative_slope and Xavier gain as `a`, and neither reads `b`. The numbers are not checked: a negative sigma draws
  /// as well.
  Initializer(Kind kind, double a, double b) : kind_(kind), a_(a), b_(b) {}

  /// What to draw: a constant, or the attributes of `mpc.random` without shape and stream.
  struct Draw {
    bool constant = false;     ///< every element is `value`; nothing is drawn
    double value = 0;          ///< value of a constant
    std::string distribution;  ///< "uniform", "normal" or "truncated_normal"; empty for a constant
    double a = 0;              ///< low end of a uniform distribution, else the mean
    double b = 0;              ///< high end of a uniform distribution, else sigma
  };
  /// The draw for a Parameter of this shape.
  Draw For(const Shape& shape) const;
  /// The kind with its numbers: "HeUniform(negative_slope=2.236)", "Normal(sigma=0.01, mean=0)", "Uniform(-1, 1)",
  /// "Constant(0)".
  std::string ToString() const;

 private:
  Kind kind_;
  double a_;
  double b_;
};

/// N(mean, sigma^2). MindSpore's defaults.
Initializer Normal(double sigma = 0.01, double mean = 0.0);
/// U[-scale, scale).
Initializer Uniform(double scale = 0.07);
/// U[low, high). It is low + (high - low) * u with u in [0, 1), whichever end is larger.
Initializer UniformRange(double low, double high);
/// N(mean, sigma^2), redrawn beyond two deviations.
Initializer TruncatedNormal(double sigma = 0.01, double mean = 0.0);
/// U[-b, b), b = gain * sqrt(3 / fan_in), gain = sqrt(2 / (1 + negative_slope^2)).
Initializer HeUniform(double negative_slope = 0.0);
/// N(0, s^2), s = gain / sqrt(fan_in).
Initializer HeNormal(double negative_slope = 0.0);
/// U[-b, b), b = gain * sqrt(6 / (fan_in + fan_out)).
Initializer XavierUniform(double gain = 1.0);
/// Every element is 0, 1 or `value`.
Initializer Zeros();
Initializer Ones();
Initializer Constant(double value);

}  // namespace mpc
