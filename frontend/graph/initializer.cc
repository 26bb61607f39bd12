#include "frontend/graph/initializer.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace mpc {
namespace {

struct Fans {
  double in = 1;
  double out = 1;
};

Fans FansOf(const Shape& shape) {
  if (shape.empty()) return {};
  if (shape.size() == 1) return {static_cast<double>(shape[0]), static_cast<double>(shape[0])};
  double receptive = 1;
  for (std::size_t axis = 2; axis < shape.size(); ++axis) receptive *= static_cast<double>(shape[axis]);
  return {static_cast<double>(shape[1]) * receptive, static_cast<double>(shape[0]) * receptive};
}

double HeGain(double negative_slope) { return std::sqrt(2.0 / (1.0 + negative_slope * negative_slope)); }

}  // namespace

Initializer::Draw Initializer::For(const Shape& shape) const {
  const Fans fans = FansOf(shape);
  switch (kind_) {
    case Kind::kConstant:
      return {.constant = true, .value = a_};
    case Kind::kUniform:
      return {.distribution = "uniform", .a = a_, .b = b_};
    case Kind::kNormal:
      return {.distribution = "normal", .a = a_, .b = b_};
    case Kind::kTruncatedNormal:
      return {.distribution = "truncated_normal", .a = a_, .b = b_};
    case Kind::kHeUniform: {
      const double bound = HeGain(a_) * std::sqrt(3.0 / fans.in);
      return {.distribution = "uniform", .a = -bound, .b = bound};
    }
    case Kind::kHeNormal:
      return {.distribution = "normal", .a = 0, .b = HeGain(a_) / std::sqrt(fans.in)};
    case Kind::kXavierUniform: {
      const double bound = a_ * std::sqrt(6.0 / (fans.in + fans.out));
      return {.distribution = "uniform", .a = -bound, .b = bound};
    }
  }
  return {};
}

std::string Initializer::ToString() const {
  switch (kind_) {
    case Kind::kConstant:
      return absl::StrCat("Constant(", a_, ")");
    case Kind::kUniform:
      return absl::StrCat("Uniform(", a_, ", ", b_, ")");
    case Kind::kNormal:
      return absl::StrCat("Normal(sigma=", b_, ", mean=", a_, ")");
    case Kind::kTruncatedNormal:
      return absl::StrCat("TruncatedNormal(sigma=", b_, ", mean=", a_, ")");
    case Kind::kHeUniform:
      return absl::StrCat("HeUniform(negative_slope=", a_, ")");
    case Kind::kHeNormal:
      return absl::StrCat("HeNormal(negative_slope=", a_, ")");
    case Kind::kXavierUniform:
      return absl::StrCat("XavierUniform(gain=", a_, ")");
  }
  return "";
}

Initializer Normal(double sigma, double mean) { return {Initializer::Kind::kNormal, mean, sigma}; }
Initializer Uniform(double scale) { return {Initializer::Kind::kUniform, -scale, scale}; }
Initializer UniformRange(double low, double high) { return {Initializer::Kind::kUniform, low, high}; }
Initializer TruncatedNormal(double sigma, double mean) { return {Initializer::Kind::kTruncatedNormal, mean, sigma}; }
Initializer HeUniform(double negative_slope) { return {Initializer::Kind::kHeUniform, negative_slope, 0}; }
Initializer HeNormal(double negative_slope) { return {Initializer::Kind::kHeNormal, negative_slope, 0}; }
Initializer XavierUniform(double gain) { return {Initializer::Kind::kXavierUniform, gain, 0}; }
Initializer Zeros() { return Constant(0); }
Initializer Ones() { return Constant(1); }
Initializer Constant(double value) { return {Initializer::Kind::kConstant, value, 0}; }

}  // namespace mpc
