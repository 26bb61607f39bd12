#include <algorithm>

#include "frontend/data/mnist.h"
#include "tests/fuzz/readers.h"
#include "tests/fuzz/verdict.h"

namespace mpc::fuzz {

void ReadIdx(absl::Span<const std::uint8_t> input) {
  if (input.size() < 2) return;
  const std::size_t declared = input[0] | std::size_t{input[1]} << 8;
  input.remove_prefix(2);
  const std::size_t labels = std::min(declared, input.size());
  const absl::StatusOr<data::internal::LabelledImages> images =
      data::internal::ParseIdx(input.subspan(labels), kOrigin, input.first(labels), kOrigin);
  if (!images.ok()) return RequireRefusal(images.status());
  Require(static_cast<std::uint64_t>(images->size()) * images->height * images->width == images->pixels.size(),
          "the pixels are not those of the images");
  for (const std::uint8_t label : images->labels) Require(label < 10, "a label is out of range");
}

}  // namespace mpc::fuzz
