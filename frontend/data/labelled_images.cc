#include "frontend/data/labelled_images.h"

#include <utility>

#include "frontend/graph/tensor_node.h"
#include "runtime/aligned_buffer.h"

namespace mpc::data::internal {
namespace {

constexpr std::int64_t kDigits = 10;

Tensor MakeLabel(std::uint8_t label, bool one_hot) {
  if (!one_hot) return Tensor::Scalar<std::int32_t>(label);
  std::vector<float> row(kDigits, 0.0f);
  row[label] = 1.0f;
  return Tensor::From(row, {kDigits});
}

}  // namespace

std::vector<std::string> DigitNames() {
  std::vector<std::string> names;
  for (std::int64_t digit = 0; digit < kDigits; ++digit) names.push_back(std::to_string(digit));
  return names;
}

absl::Span<const std::int64_t> SplitRows(absl::Span<const std::int64_t> order, Split split) {
  const std::size_t train = order.size() * 4 / 5;
  return split == Split::kTrain ? order.first(train) : order.subspan(train);
}

Dataset MakeDigitDataset(const LabelledImages& images, absl::Span<const std::int64_t> rows, std::int64_t size,
                         bool one_hot, const DrawImage& draw) {
  const auto pixels_per_image = static_cast<std::size_t>(images.height * images.width);
  const auto drawn_pixels = static_cast<std::size_t>(size * size);
  std::vector<Row> samples;
  samples.reserve(rows.size());
  for (std::int64_t row : rows) {
    const auto index = static_cast<std::size_t>(row);
    mpc::runtime::AlignedBuffer buffer(drawn_pixels * sizeof(float));
    draw(absl::MakeConstSpan(images.pixels).subspan(index * pixels_per_image, pixels_per_image),
         absl::MakeSpan(reinterpret_cast<float*>(buffer.data()), drawn_pixels));
    samples.push_back({mpc::internal::MakeConcrete({DType::kF32, {1, size, size}}, std::move(buffer)),
                       MakeLabel(images.labels[index], one_hot)});
  }
  return GeneratorDataset(std::move(samples), {"image", "label"}).WithClassNames(DigitNames());
}

}  // namespace mpc::data::internal
