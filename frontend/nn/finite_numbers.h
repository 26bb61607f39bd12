// Options of optimizers, clipping and losses: numbers that are taken in f32.
#pragma once

#include <cmath>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "frontend/graph/emit.h"

namespace mpc::nn::internal {

/// What an error adds where a number is finite and becomes infinity in f32, or 0 where it must not be 0.
inline const char* WhyRefused(double value) {
  return std::isfinite(value) && value > 0 ? ", which f32 does not hold" : "";
}

using mpc::internal::IsFiniteInF32;

/// Errors: `value` is negative, or f32 does not hold it as a finite number. f32 may hold 0 in the place of a small one.
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

/// Errors: `value` is neither 0 nor a positive number that f32 holds. It is what keeps a quotient finite.
inline absl::Status CheckZeroOrPositive(const std::string& field, double value) {
  return value > 0 ? CheckPositive(field, value) : CheckNotNegative(field, value);
}

/// Errors: `value` lies outside [0, 1], or is less than 1 and f32 holds 1 in its place.
inline absl::Status CheckShare(const std::string& field, double value) {
  if (!(value >= 0 && value <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat(field, " must be in [0, 1], got ", value));
  }
  if (value == 1 || static_cast<float>(value) != 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " must be in [0, 1], and rounds to 1 in f32: 1 - ", field, " is ", 1 - value));
}

}  // namespace mpc::nn::internal
