#include "frontend/train/plot_axis.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mpc::internal {
namespace {

constexpr int kMostTicks = 10;
/// Steps between linear ticks that are asked for.
constexpr double kLinearSteps = 5;

/// The least of 1, 2 and 5 times powers of ten that is at least `step`.
double RoundStep(double step) {
  const double power = std::pow(10.0, std::floor(std::log10(step)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (step <= factor * power * (1 + 1e-9)) return factor * power;
  }
  return 10 * power;
}

/// The number with the digits that a step needs: "0.05", "1500", "2e-07".
std::string Number(double value, double step) {
  if (std::abs(value) < step / 2) return "0";
  const double digits = std::log10(std::abs(value)) - std::log10(step) + 1.5;
  return absl::StrFormat("%.*g", std::clamp(static_cast<int>(digits), 6, 15), value);
}

}  // namespace

std::string PowerOfTwo(int exponent) {
  static constexpr std::array<const char*, 10> kDigits = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = exponent < 0 ? "2⁻" : "2";
  for (const char digit : std::to_string(std::abs(exponent))) text += kDigits[static_cast<std::size_t>(digit - '0')];
  return text;
}

PlotAxis::PlotAxis(Scale scale, double low, double high) : scale_(scale), low_(Transform(low)), high_(Transform(high)) {
  // Ticks of values that differ in their last bits only would all have one label.
  const double largest = std::max(std::abs(low_), std::abs(high_));
  const double least = logarithmic() ? 1e-6 : std::max(largest * 1e-9, 1e-300);
  if (high_ - low_ <= least) {
    const double margin = logarithmic() || largest == 0 ? 1 : std::max(largest / 2, 1e-300);
    low_ -= margin;
    high_ += margin;
  }
  if (scale_ == Scale::kDecimal) {
    AddDecimalTicks();
  } else if (scale_ == Scale::kBinary) {
    AddBinaryTicks();
  } else {
    AddLinearTicks();
  }
}

double PlotAxis::Transform(double value) const {
  if (!logarithmic()) return value;
  const double positive = std::max(value, 1e-305);
  return scale_ == Scale::kBinary ? std::log2(positive) : std::log10(positive);
}

double PlotAxis::PlaceOf(double value) const {
  return std::clamp((Transform(value) - low_) / (high_ - low_), 0.0, 1.0);
}

void PlotAxis::AddTick(double value, std::string label) {
  const double place = (Transform(value) - low_) / (high_ - low_);
  if (place < -1e-9 || place > 1 + 1e-9 || ticks_.size() >= kMostTicks) return;
  ticks_.push_back({std::clamp(place, 0.0, 1.0), std::move(label)});
}

void PlotAxis::AddLinearTicks() {
  double step = RoundStep((high_ - low_) / kLinearSteps);
  if (scale_ == Scale::kWhole) {
    step = std::max(step, 1.0);
  } else {
    low_ = std::floor(low_ / step + 1e-9) * step;
    high_ = std::ceil(high_ / step - 1e-9) * step;
  }
  const double first = std::ceil(low_ / step - 1e-9);
  for (int i = 0; i < 2 * kMostTicks; ++i) {
    const double value = (first + i) * step;
    AddTick(value, Number(value, step));
  }
}

void PlotAxis::AddDecimalTicks() {
  low_ = std::floor(low_ + 1e-9);
  high_ = std::ceil(high_ - 1e-9);
  const int first = static_cast<int>(low_);
  const int last = static_cast<int>(high_);
  const int stride = std::max(1, (last - first) / 6 + 1);
  const bool few = last - first <= 2;
  for (int exponent = first; exponent <= last; exponent += few ? 1 : stride) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor > 1 && !few) continue;
      const double value = factor * std::pow(10.0, exponent);
      AddTick(value, absl::StrFormat("%g", value));
    }
  }
}

void PlotAxis::AddBinaryTicks() {
  low_ = std::floor(low_ + 1e-9);
  high_ = std::ceil(high_ - 1e-9);
  const int first = static_cast<int>(low_);
  const int last = static_cast<int>(high_);
  const int stride = std::max(1, (last - first) / 6 + 1);
  for (int exponent = first; exponent <= last; exponent += stride) {
    AddTick(std::exp2(exponent), PowerOfTwo(exponent));
  }
}

}  // namespace mpc::internal
