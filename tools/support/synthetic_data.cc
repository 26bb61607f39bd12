#include "tools/support/synthetic_data.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/physical_memory.h"

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

/// The bytes of all `tensors`; none where 64 bits do not count them.
std::optional<std::size_t> BytesOf(const std::vector<TensorSpec>& tensors) {
  std::size_t sum = 0;
  for (const TensorSpec& spec : tensors) {
    std::size_t bytes = ElementSize(spec.dtype);
    for (const std::int64_t extent : spec.shape) {
      if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(extent), &bytes)) return std::nullopt;
    }
    if (__builtin_add_overflow(sum, bytes, &sum)) return std::nullopt;
  }
  return sum;
}

}  // namespace

absl::StatusOr<std::size_t> CheckTensorsFit(const std::vector<TensorSpec>& tensors, std::string_view what,
                                            std::string_view advice) {
  const std::optional<std::size_t> bytes = BytesOf(tensors);
  const std::size_t memory = runtime::PhysicalMemory();
  if (bytes.has_value() && *bytes <= memory / 2) return *bytes;
  const auto text = [](std::string* out, const TensorSpec& spec) { *out += spec.ToString(); };
  return absl::ResourceExhaustedError(absl::StrCat(std::string(what), " of ", absl::StrJoin(tensors, " and ", text),
                                                   ": ", bytes.has_value() ? absl::StrCat(*bytes) : "more than 2^64",
                                                   " bytes, and this machine has ", memory,
                                                   ", of which they may take half; ", std::string(advice)));
}

absl::StatusOr<std::size_t> CheckBatchFits(const std::vector<TensorSpec>& columns) {
  return CheckTensorsFit(columns, "columns of a batch", "give a smaller batch size");
}

absl::StatusOr<std::vector<data::Row>> MakeSyntheticBatches(const SyntheticDataOptions& options) {
  const absl::StatusOr<std::size_t> bytes = CheckBatchFits(options.columns);
  if (!bytes.ok()) return bytes.status();
  const auto fitting = static_cast<std::int64_t>(kMostBytes / std::max<std::size_t>(*bytes, 1));
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
  absl::StatusOr<std::vector<data::Row>> batches = MakeSyntheticBatches(options);
  if (!batches.ok()) return data::Dataset(batches.status());
  return data::GeneratorDataset(Turns{*std::move(batches), options.steps}, options.names);
}

}  // namespace mpc::tools
