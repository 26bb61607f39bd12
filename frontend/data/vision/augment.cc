#include "frontend/data/vision/augment.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "frontend/data/vision/augment_operations.h"
#include "frontend/data/vision/border.h"
#include "frontend/data/vision/color_changes.h"
#include "frontend/data/vision/random_draws.h"

namespace mpc::data::vision {
namespace {

using internal::AugmentOperation;
using internal::Draws;
using internal::Resampling;

// An operation takes two draws of the 256 that a stream has.
constexpr std::int32_t kMostOperations = 128;

absl::Status CheckBetween(const char* name, std::int64_t value, std::int64_t least, std::int64_t largest) {
  if (value >= least && value <= largest) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("RandAugment: ", name, " must be from ", least, " to ", largest, ", got ", value));
}

absl::Status CheckBins(std::int32_t num_magnitude_bins, const char* transform) {
  if (num_magnitude_bins >= 2) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(transform, ": num_magnitude_bins must be at least 2, got ", num_magnitude_bins));
}

absl::StatusOr<Resampling> ResamplingOf(const Tensor& image, const std::vector<std::uint8_t>& fill_value,
                                        Inter interpolation, const char* transform) {
  if (absl::Status status = internal::CheckRgb(image, transform); !status.ok()) return status;
  absl::StatusOr<std::vector<std::byte>> fill = internal::FillPixel(image, fill_value, transform);
  if (!fill.ok()) return fill.status();
  return Resampling{*std::move(fill), interpolation};
}

const AugmentOperation& Drawn(absl::Span<const AugmentOperation> operations, Draws& draws) {
  return operations[static_cast<std::size_t>(draws.Below(static_cast<std::int64_t>(operations.size())))];
}

Tensor Apply(const AugmentOperation& operation, double magnitude, const Tensor& image, const Resampling& resampling,
             Draws& draws) {
  const bool is_negative = draws.Below(2) == 1 && operation.is_signed;
  return operation.apply(image, is_negative ? -magnitude : magnitude, resampling);
}

}  // namespace

absl::StatusOr<Tensor> TrivialAugmentWide::operator()(const Tensor& image, const RowPosition& position) const {
  const std::int32_t bins = options_.num_magnitude_bins;
  if (absl::Status status = CheckBins(bins, "TrivialAugmentWide"); !status.ok()) return status;
  const absl::StatusOr<Resampling> resampling =
      ResamplingOf(image, options_.fill_value, options_.interpolation, "TrivialAugmentWide");
  if (!resampling.ok()) return resampling.status();
  Draws draws(internal::DrawStream::kTrivialAugmentWide, options_.seed, position);
  const AugmentOperation& operation = Drawn(internal::TrivialAugmentWideOperations(), draws);
  const double magnitude = internal::MagnitudeOf(operation, draws.Below(bins), bins, image);
  return Apply(operation, magnitude, image, *resampling, draws);
}

absl::StatusOr<Tensor> RandAugment::operator()(const Tensor& image, const RowPosition& position) const {
  const std::int32_t bins = options_.num_magnitude_bins;
  absl::Status status = CheckBins(bins, "RandAugment");
  status.Update(CheckBetween("num_ops", options_.num_ops, 0, kMostOperations));
  status.Update(CheckBetween("magnitude", options_.magnitude, 0, std::int64_t{bins} - 1));
  if (!status.ok()) return status;
  const absl::StatusOr<Resampling> resampling =
      ResamplingOf(image, options_.fill_value, options_.interpolation, "RandAugment");
  if (!resampling.ok()) return resampling.status();
  Draws draws(internal::DrawStream::kRandAugment, options_.seed, position);
  Tensor augmented = image;
  for (std::int32_t i = 0; i < options_.num_ops; ++i) {
    const AugmentOperation& operation = Drawn(internal::RandAugmentOperations(), draws);
    const double magnitude = internal::MagnitudeOf(operation, options_.magnitude, bins, image);
    augmented = Apply(operation, magnitude, augmented, *resampling, draws);
  }
  return augmented;
}

}  // namespace mpc::data::vision
