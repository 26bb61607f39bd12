#include "frontend/data/vision/flip.h"

#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frontend/data/vision/image.h"
#include "frontend/data/vision/random_draws.h"
#include "frontend/graph/tensor_node.h"
#include "runtime/aligned_buffer.h"

namespace mpc::data::vision {
namespace {

/// Cuts the picture into `count` pieces, and reverses the order of each `run` of them.
Tensor Reversed(const Tensor& image, std::int64_t count, std::int64_t run) {
  runtime::AlignedBuffer buffer(image.bytes().size());
  const std::size_t piece = image.bytes().size() / static_cast<std::size_t>(count);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t place = i / run * run + (run - 1 - i % run);
    std::memcpy(buffer.data() + static_cast<std::size_t>(i) * piece,
                image.bytes().data() + static_cast<std::size_t>(place) * piece, piece);
  }
  return mpc::internal::MakeConcrete(image.spec(), std::move(buffer));
}

absl::StatusOr<bool> IsFlipped(float prob, internal::Draws draws, const char* transform) {
  if (!(prob >= 0 && prob <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat(transform, ": prob must be from 0 to 1, got ", prob));
  }
  return draws.Between(0, 1) < static_cast<double>(prob);
}

}  // namespace

absl::StatusOr<Tensor> RandomHorizontalFlip::operator()(const Tensor& image, const RowPosition& position) const {
  const absl::StatusOr<internal::Extents> extents = internal::ExtentsOf(image, "RandomHorizontalFlip");
  if (!extents.ok()) return extents.status();
  const absl::StatusOr<bool> flipped =
      IsFlipped(prob_, {internal::DrawStream::kHorizontalFlip, seed_, position}, "RandomHorizontalFlip");
  if (!flipped.ok()) return flipped.status();
  return *flipped ? Reversed(image, extents->pixels(), extents->width) : image;
}

absl::StatusOr<Tensor> RandomVerticalFlip::operator()(const Tensor& image, const RowPosition& position) const {
  const absl::StatusOr<internal::Extents> extents = internal::ExtentsOf(image, "RandomVerticalFlip");
  if (!extents.ok()) return extents.status();
  const absl::StatusOr<bool> flipped =
      IsFlipped(prob_, {internal::DrawStream::kVerticalFlip, seed_, position}, "RandomVerticalFlip");
  if (!flipped.ok()) return flipped.status();
  return *flipped ? Reversed(image, extents->height, extents->height) : image;
}

}  // namespace mpc::data::vision
