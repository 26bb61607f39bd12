#include "frontend/data/vision/flip.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "frontend/data/vision/image.h"
#include "frontend/data/vision/random_draws.h"
#include "frontend/graph/tensor_node.h"
#include "runtime/aligned_buffer.h"

namespace mpc::data::vision {
namespace {

/// Copies pieces whose size is `bytes()`, each `run` of them in reverse.
template <typename Bytes>
void CopyReversed(const std::uint8_t* source, std::int64_t count, std::int64_t run, Bytes bytes, std::byte* target) {
  for (std::int64_t begin = 0; begin < count; begin += run) {
    const std::uint8_t* piece = source + static_cast<std::size_t>(begin + run) * bytes();
    for (std::int64_t i = 0; i < run; ++i, target += bytes()) std::memcpy(target, piece -= bytes(), bytes());
  }
}

/// Cuts the picture into `count` pieces, and reverses the order of each `run` of them.
Tensor Reversed(const Tensor& image, std::int64_t count, std::int64_t run) {
  runtime::AlignedBuffer buffer(image.bytes().size());
  const std::size_t piece = image.bytes().size() / static_cast<std::size_t>(count);
  const std::uint8_t* const source = image.bytes().data();
  // Copies of a size that the compiler knows are no calls.
  if (piece == 3) {
    CopyReversed(source, count, run, std::integral_constant<std::size_t, 3>(), buffer.data());
  } else {
    CopyReversed(
        source, count, run, [piece] { return piece; }, buffer.data());
  }
  return mpc::internal::MakeConcrete(image.spec(), std::move(buffer));
}

}  // namespace

absl::StatusOr<Tensor> RandomHorizontalFlip::operator()(const Tensor& image, const RowPosition& position) const {
  const absl::StatusOr<internal::Extents> extents = internal::ExtentsOf(image, "RandomHorizontalFlip");
  if (!extents.ok()) return extents.status();
  internal::Draws draws(internal::DrawStream::kHorizontalFlip, seed_, position);
  const absl::StatusOr<bool> flipped = internal::Happens(prob_, draws, "RandomHorizontalFlip");
  if (!flipped.ok()) return flipped.status();
  return *flipped ? Reversed(image, extents->pixels(), extents->width) : image;
}

absl::StatusOr<Tensor> RandomVerticalFlip::operator()(const Tensor& image, const RowPosition& position) const {
  const absl::StatusOr<internal::Extents> extents = internal::ExtentsOf(image, "RandomVerticalFlip");
  if (!extents.ok()) return extents.status();
  internal::Draws draws(internal::DrawStream::kVerticalFlip, seed_, position);
  const absl::StatusOr<bool> flipped = internal::Happens(prob_, draws, "RandomVerticalFlip");
  if (!flipped.ok()) return flipped.status();
  return *flipped ? Reversed(image, extents->height, extents->height) : image;
}

}  // namespace mpc::data::vision
