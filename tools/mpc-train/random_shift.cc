#include "tools/mpc-train/random_shift.h"

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace mpc::tools {
namespace {

absl::StatusOr<Tensor> Shift(const Tensor& image, std::int64_t down, std::int64_t right) {
  if (image.dtype() != DType::kF32 || image.rank() != 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("a shift takes f32 images [channels, height, width], got ", image.spec().ToString()));
  }
  const std::int64_t height = image.dim(1);
  const std::int64_t width = image.dim(2);
  const absl::Span<const float> source = image.data<float>();
  std::vector<float> shifted(source.size(), *std::min_element(source.begin(), source.end()));
  const std::int64_t first_column = std::max<std::int64_t>(0, right);
  const std::int64_t last_column = std::min(width, width + right);
  for (std::int64_t row = 0; row < image.dim(0) * height; ++row) {
    const std::int64_t from = row % height - down;
    if (from < 0 || from >= height) continue;
    const float* begin = source.data() + (row - down) * width;
    std::copy(begin + first_column - right, begin + last_column - right, shifted.data() + row * width + first_column);
  }
  return Tensor::From(shifted, image.shape());
}

}  // namespace

data::MapFunction RandomShift(std::int64_t pixels, std::uint64_t seed) {
  // The standard fixes what this engine draws, not what its distributions do: the range is taken by a remainder.
  auto engine = std::make_shared<std::mt19937_64>(seed);
  return [engine, pixels](const Tensor& image) {
    const auto range = static_cast<std::uint64_t>(2 * pixels + 1);
    const auto draw = [&] { return static_cast<std::int64_t>((*engine)() % range) - pixels; };
    const std::int64_t down = draw();
    const std::int64_t right = draw();
    return Shift(image, down, right);
  };
}

}  // namespace mpc::tools
