#include "tools/support/synthetic_data.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <utility>

namespace mpc::tools {
namespace {

constexpr std::int64_t kMostBatches = 8;
constexpr std::size_t kMostBytes = std::size_t{512} << 20;

Tensor RandomTensor(const TensorSpec& spec, std::int64_t classes, std::mt19937_64& engine) {
  const auto count = static_cast<std::size_t>(spec.num_elements());
  if (IsFloating(spec.dtype)) {
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& value : values) value = normal(engine);
    const Tensor tensor = Tensor::From(values, spec.shape);
    return tensor.dtype() == spec.dtype ? tensor : tensor.To(spec.dtype);
  }
  std::vector<std::uint8_t> bytes(spec.bytes());
  const std::size_t width = ElementSize(spec.dtype);
  const std::uint64_t limit =
      spec.dtype == DType::kBool ? 2 : static_cast<std::uint64_t>(std::max<std::int64_t>(classes, 1));
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t value = engine() % limit;
    std::memcpy(bytes.data() + i * width, &value, width);
  }
  return Tensor::FromBytes(spec, bytes.data(), bytes.size());
}

/// Batches in turn, each handed out as it is.
struct Turns {
  std::vector<data::Row> batches;
  std::int64_t steps = 0;
  std::size_t size() const { return static_cast<std::size_t>(steps); }
  data::Row operator[](std::size_t index) const { return batches[index % batches.size()]; }
};

}  // namespace

std::vector<data::Row> MakeSyntheticBatches(const SyntheticDataOptions& options) {
  std::size_t bytes = 1;
  for (const TensorSpec& spec : options.columns) bytes += spec.bytes();
  const auto fitting = static_cast<std::int64_t>(kMostBytes / bytes);
  const std::int64_t count = std::clamp<std::int64_t>(std::min(fitting, options.steps), 1, kMostBatches);
  std::mt19937_64 engine(static_cast<std::uint64_t>(options.seed));
  std::vector<data::Row> batches;
  for (std::int64_t i = 0; i < count; ++i) {
    data::Row& batch = batches.emplace_back();
    for (const TensorSpec& spec : options.columns) batch.push_back(RandomTensor(spec, options.classes, engine));
  }
  return batches;
}

data::Dataset SyntheticData(const SyntheticDataOptions& options) {
  return data::GeneratorDataset(Turns{MakeSyntheticBatches(options), options.steps}, options.names);
}

}  // namespace mpc::tools
