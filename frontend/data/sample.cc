// The rows of a source that its SamplingOptions choose.
#include <utility>

#include "absl/strings/str_cat.h"
#include "frontend/data/dataset.h"
#include "frontend/data/sampler.h"
#include "frontend/data/selection.h"

namespace mpc::data {
namespace {

/// The sampler that `options` stand for; none where all rows are read.
absl::StatusOr<std::optional<Sampler>> SamplerOf(const SamplingOptions& options) {
  if (options.num_samples < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_samples is ", options.num_samples, "; accepted is 0 and above"));
  }
  const bool sharded = options.num_shards.has_value() || options.shard_id.has_value();
  if (options.sampler) {
    if (!sharded && options.num_samples == 0) return options.sampler;
    return absl::InvalidArgumentError("a sampler excludes num_samples, num_shards and shard_id");
  }
  if (sharded) {
    if (!options.num_shards || !options.shard_id) {
      return absl::InvalidArgumentError("num_shards and shard_id must be given together");
    }
    return DistributedSampler(*options.num_shards, *options.shard_id, std::nullopt, options.num_samples);
  }
  if (options.num_samples == 0) return std::nullopt;
  return SequentialSampler(0, options.num_samples);
}

}  // namespace

Dataset Dataset::Sample(const SamplingOptions& options) const {
  if (!status_.ok()) return *this;
  absl::StatusOr<std::optional<Sampler>> sampler = SamplerOf(options);
  if (!sampler.ok()) return Dataset(sampler.status());
  if (!*sampler) return *this;
  if (!node_->ordered_access()) {
    if (!options.sampler && !options.num_shards) return Take(options.num_samples);
    return Dataset(absl::InvalidArgumentError("a sampler needs a source with random access"));
  }
  absl::StatusOr<std::int64_t> rows = node_->size();
  if (!rows.ok()) return Dataset(rows.status());
  absl::StatusOr<std::vector<std::int64_t>> indices = (*sampler)->Indices(*rows, /*epoch=*/0);
  if (!indices.ok()) return Dataset(indices.status());
  if ((*sampler)->fixed()) return Then<internal::SubsetNode>(*std::move(indices));
  return Then<internal::SampledNode>(**std::move(sampler), static_cast<std::int64_t>(indices->size()));
}

}  // namespace mpc::data
