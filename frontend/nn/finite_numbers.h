// Options of optimizers and clipping: numbers that updates take in f32.
#pragma once

#include <cmath>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace mpc::nn::internal {

/// What an error adds where a number is finite and becomes infinity in f32, or 0 where it must not be 0.
inline const char* WhyRefused(double value) {
  return std::isfinite(value) && value > 0 ? ", which f32 does not hold" : "";
}

inline bool IsFiniteInF32(double value) { return std::isfinite(static_cast<float>(value)); }

/// Errors: `value` is negative, or f32 does not hold it as a finite number.
inline absl::Status CheckNotNegative(const std::string& field, double value) {
  if (value >= 0 && IsFiniteInF32(value)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " must be a finite number >= 0, got ", value, WhyRefused(value)));
}

/// Errors: `value` is not positive, or f32 holds infinity or 0 in its place.
inline absl::Status CheckPositive(const std::string& field, double value) {
  if (static_cast<float>(value) > 0 && IsFiniteInF32(value)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " must be a finite number > 0, got ", value, WhyRefused(value)));
}

}  // namespace mpc::nn::internal
