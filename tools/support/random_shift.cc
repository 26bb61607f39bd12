#include "tools/support/random_shift.h"

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace mpc::tools {
namespace {

/// The numbers of a random engine by their position; access in order is cheap. The standard fixes the engine's numbers,
/// but not its distributions, so callers take a remainder.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : seed_(seed), engine_(seed) {}
  std::uint64_t DrawAt(std::uint64_t position) {
    if (position < next_) {
      engine_.seed(seed_);
      next_ = 0;
    }
    engine_.discard(position - next_);
    next_ = position + 1;
    return engine_();
  }

 private:
  std::uint64_t seed_;
  std::mt19937_64 engine_;
  std::uint64_t next_ = 0;
};

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

data::PositionMapFunction RandomShift(std::int64_t pixels, std::uint64_t seed, std::int64_t rows) {
  auto draws = std::make_shared<Draws>(seed);
  return [draws, pixels, rows](const Tensor& image, const data::RowPosition& position) {
    const auto range = static_cast<std::uint64_t>(2 * pixels + 1);
    const auto image_number = static_cast<std::uint64_t>(position.epoch * rows + position.row);
    const auto draw = [&](std::uint64_t which) {
      return static_cast<std::int64_t>(draws->DrawAt(2 * image_number + which) % range) - pixels;
    };
    const std::int64_t down = draw(0);
    const std::int64_t right = draw(1);
    return Shift(image, down, right);
  };
}

}  // namespace mpc::tools
