#include "frontend/data/vision/mix.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "frontend/data/vision/image.h"
#include "frontend/data/vision/random_draws.h"
#include "frontend/graph/tensor_node.h"
#include "kernels/scalar/philox.h"
#include "runtime/aligned_buffer.h"

namespace mpc::data::vision {
namespace {

using internal::Draws;

/// Standard normal.
double NormalDraw(Draws& draws) {
  const double u = 1 - draws.Between(0, 1), turns = draws.Between(0, 1);
  return NormalsFromUniforms(u, turns)[0];
}

/// The logarithm of a draw of Gamma(alpha, 1) for an alpha of at least 1 (Marsaglia and Tsang 2000).
double LogGammaDraw(double alpha, Draws& draws) {
  // An attempt is accepted with a probability above 0.95. Those of both draws of a Beta are fewer than a stream's.
  constexpr int kMostAttempts = 30;
  const double d = alpha - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  double log_v = 0;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    const double normal = NormalDraw(draws), uniform = 1 - draws.Between(0, 1);
    const double root = 1 + c * normal;
    if (root <= 0) continue;
    log_v = 3 * std::log(root);
    if (std::log(uniform) < normal * normal / 2 + d - d * std::exp(log_v) + d * log_v) break;
  }
  return std::log(d) + log_v;
}

/// A draw of Beta(alpha, alpha).
double BetaDraw(double alpha, Draws& draws) {
  if (alpha >= 1) {
    const double first = LogGammaDraw(alpha, draws), second = LogGammaDraw(alpha, draws);
    return 1 / (1 + std::exp(second - first));
  }
  // A draw for alpha + 1 times a uniform number to the power 1 / alpha. Logarithms are kept times alpha: so they are
  // finite.
  const auto scaled_logarithm = [&] {
    const double logarithm = LogGammaDraw(alpha + 1, draws);
    return alpha * logarithm + std::log(1 - draws.Between(0, 1));
  };
  const double first = scaled_logarithm(), second = scaled_logarithm();
  return 1 / (1 + std::exp((second - first) / alpha));
}

/// A batch of pictures, with labels as rows of f32.
struct LabelledBatch {
  const Tensor& images;
  const Tensor& labels;

  std::int64_t size() const { return labels.dim(0); }
  std::int64_t classes() const { return labels.dim(1); }
};

absl::StatusOr<LabelledBatch> BatchOf(const Row& row, double alpha, const char* transform) {
  if (!(alpha > 0 && std::isfinite(alpha))) {
    return absl::InvalidArgumentError(absl::StrCat(transform, ": alpha must be finite and above 0, got ", alpha));
  }
  if (row.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(transform, " takes two columns, those of pictures and of labels; got ", row.size()));
  }
  for (const Tensor& column : row) {
    if (!column.status().ok()) return column.status();
    if (!column.concrete()) {
      return absl::InvalidArgumentError(absl::StrCat(transform, " takes a batch; a column has no data"));
    }
  }
  const Tensor &images = row[0], &labels = row[1];
  if (labels.rank() != 2 || labels.dtype() != DType::kF32) {
    return absl::InvalidArgumentError(absl::StrCat(transform, " takes labels [N, classes] of f32, got ",
                                                   labels.spec().ToString(),
                                                   "; vision::OneHot before Batch makes them of class indices"));
  }
  if (images.rank() < 2 || images.dim(0) != labels.dim(0) || images.size() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(transform, " takes a batch of pictures beside the labels ",
                                                   labels.spec().ToString(), ", got ", images.spec().ToString(),
                                                   "; it belongs behind Batch"));
  }
  return LabelledBatch{images, labels};
}

/// How many places further on the partners are, from 1 to size - 1.
std::int64_t DistanceOfPartners(std::int64_t size, Draws& draws) { return 1 + draws.Below(size - 1); }

/// share * own + (1 - share) * partner's.
void MixLabels(const LabelledBatch& batch, std::int64_t own, std::int64_t partner, double share,
               absl::Span<float> mixed) {
  const absl::Span<const float> labels = batch.labels.data<float>();
  const auto classes = static_cast<std::size_t>(batch.classes());
  const std::size_t a = static_cast<std::size_t>(own) * classes, b = static_cast<std::size_t>(partner) * classes;
  for (std::size_t i = 0; i < classes; ++i) {
    mixed[a + i] = static_cast<float>(share * labels[a + i] + (1 - share) * labels[b + i]);
  }
}

float Rounded(double value, float) { return static_cast<float>(value); }
std::uint8_t Rounded(double value, std::uint8_t) { return static_cast<std::uint8_t>(std::lround(value)); }

template <typename T>
Tensor MixedImages(const Tensor& images, std::int64_t distance, double share) {
  const absl::Span<const T> own = images.data<T>();
  const std::size_t rotation =
      static_cast<std::size_t>(distance) * (own.size() / static_cast<std::size_t>(images.dim(0)));
  std::vector<T> mixed(own.size());
  for (std::size_t i = 0, partner = rotation; i < own.size(); ++i, ++partner) {
    if (partner == own.size()) partner = 0;
    mixed[i] = Rounded(share * own[i] + (1 - share) * own[partner], T{});
  }
  return Tensor::From(mixed, images.shape());
}

/// A batch [N, rows, columns, channels] or, where channels come first, [N * channels, rows, columns, 1].
struct Planes {
  std::int64_t each;  ///< planes of a picture
  std::int64_t height, width;
  std::size_t pixel_bytes;

  std::size_t plane_bytes() const { return static_cast<std::size_t>(height * width) * pixel_bytes; }
};

Planes PlanesOf(const Tensor& images, ImageBatchFormat format) {
  const bool is_nhwc = format == ImageBatchFormat::kNHWC;
  const std::size_t element = ElementSize(images.dtype());
  if (is_nhwc) return {1, images.dim(1), images.dim(2), element * static_cast<std::size_t>(images.dim(3))};
  return {images.dim(1), images.dim(2), images.dim(3), element};
}

/// The rectangle of CutMix: the square root of 1 - share of either side, cut at the edge.
internal::Box RectangleOf(const Planes& planes, double share, Draws& draws) {
  const double part = std::sqrt(1 - share);
  const auto along = [&](std::int64_t extent) {
    const auto half = static_cast<std::int64_t>(static_cast<double>(extent) * part) / 2;
    const std::int64_t middle = draws.Below(extent);
    return std::pair{std::max(middle - half, std::int64_t{0}), std::min(middle + half, extent)};
  };
  const auto [top, bottom] = along(planes.height);
  const auto [left, right] = along(planes.width);
  return {top, left, bottom - top, right - left};
}

void CopyRectangle(const Planes& planes, const internal::Box& box, const std::byte* from, std::byte* to) {
  const std::size_t bytes = static_cast<std::size_t>(box.width) * planes.pixel_bytes;
  for (std::int64_t plane = 0; plane < planes.each; ++plane) {
    for (std::int64_t y = box.top; y < box.top + box.height; ++y) {
      const std::int64_t pixel = (plane * planes.height + y) * planes.width + box.left;
      const std::size_t offset = static_cast<std::size_t>(pixel) * planes.pixel_bytes;
      std::memcpy(to + offset, from + offset, bytes);
    }
  }
}

/// The draws of one picture of a batch. Its index is none that a batch has.
Draws DrawsOfPicture(std::uint64_t seed, const RowPosition& position, std::int64_t picture) {
  constexpr int kBitsOfPictures = 32;
  return {internal::DrawStream::kCutMix, seed, {position.epoch, (position.row + 1) << kBitsOfPictures | picture}};
}

}  // namespace

absl::StatusOr<Row> MixUpBatch::operator()(const Row& batch, const RowPosition& position) const {
  const absl::StatusOr<LabelledBatch> given = BatchOf(batch, alpha_, "MixUpBatch");
  if (!given.ok()) return given.status();
  const DType dtype = given->images.dtype();
  if (dtype != DType::kU8 && dtype != DType::kF32) {
    return absl::InvalidArgumentError(
        absl::StrCat("MixUpBatch takes pictures of u8 or f32, got ", given->images.spec().ToString()));
  }
  if (given->size() == 1) return batch;
  Draws draws(internal::DrawStream::kMixUp, seed_, position);
  const std::int64_t distance = DistanceOfPartners(given->size(), draws);
  const double share = BetaDraw(alpha_, draws);
  std::vector<float> labels(static_cast<std::size_t>(given->labels.size()));
  for (std::int64_t i = 0; i < given->size(); ++i) {
    MixLabels(*given, i, (i + distance) % given->size(), share, absl::MakeSpan(labels));
  }
  Tensor images = dtype == DType::kU8 ? MixedImages<std::uint8_t>(given->images, distance, share)
                                      : MixedImages<float>(given->images, distance, share);
  return Row{std::move(images), Tensor::From(labels, given->labels.shape())};
}

absl::StatusOr<Row> CutMixBatch::operator()(const Row& batch, const RowPosition& position) const {
  const absl::StatusOr<LabelledBatch> given = BatchOf(batch, options_.alpha, "CutMixBatch");
  if (!given.ok()) return given.status();
  if (given->images.rank() != 4) {
    return absl::InvalidArgumentError(
        absl::StrCat("CutMixBatch takes pictures of rank 4, got ", given->images.spec().ToString()));
  }
  if (given->size() == 1) return batch;
  Draws draws(internal::DrawStream::kCutMix, options_.seed, position);
  const std::int64_t distance = DistanceOfPartners(given->size(), draws);
  const Planes planes = PlanesOf(given->images, image_batch_format_);
  const auto* const source = reinterpret_cast<const std::byte*>(given->images.bytes().data());
  runtime::AlignedBuffer images(given->images.bytes().size());
  std::memcpy(images.data(), source, given->images.bytes().size());
  std::vector<float> labels(given->labels.data<float>().begin(), given->labels.data<float>().end());
  const std::size_t picture_bytes = planes.plane_bytes() * static_cast<std::size_t>(planes.each);
  for (std::int64_t i = 0; i < given->size(); ++i) {
    Draws own = DrawsOfPicture(options_.seed, position, i);
    const absl::StatusOr<bool> is_mixed = internal::Happens(options_.prob, own, "CutMixBatch");
    if (!is_mixed.ok()) return is_mixed.status();
    if (!*is_mixed) continue;
    const internal::Box box = RectangleOf(planes, BetaDraw(options_.alpha, own), own);
    const std::int64_t partner = (i + distance) % given->size();
    CopyRectangle(planes, box, source + static_cast<std::size_t>(partner) * picture_bytes,
                  images.data() + static_cast<std::size_t>(i) * picture_bytes);
    const double cut = static_cast<double>(box.height * box.width) / static_cast<double>(planes.height * planes.width);
    MixLabels(*given, i, partner, 1 - cut, absl::MakeSpan(labels));
  }
  return Row{mpc::internal::MakeConcrete(given->images.spec(), std::move(images)),
             Tensor::From(labels, given->labels.shape())};
}

}  // namespace mpc::data::vision
