// Which rows of a source an epoch reads, and in which order. The functions have the names and defaults of MindSpore's
// samplers; the seeds have no counterpart there.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mpc::data {

/// Draws are functions of (seed, epoch, draw), so an epoch that is resumed reads what it would have read.
class Sampler {
 public:
  /// The rows of epoch `epoch` among `rows` rows. The number of indices must not depend on the epoch.
  using Draw = std::function<absl::StatusOr<std::vector<std::int64_t>>(std::int64_t rows, std::int64_t epoch)>;

  /// `fixed`: every epoch has the same indices.
  explicit Sampler(Draw draw, bool fixed = false) : draw_(std::move(draw)), fixed_(fixed) {}

  bool fixed() const { return fixed_; }
  /// Errors (INVALID_ARGUMENT): what the sampler cannot do with so many rows; an index outside them; no index.
  absl::StatusOr<std::vector<std::int64_t>> Indices(std::int64_t rows, std::int64_t epoch) const;

 private:
  Draw draw_;
  bool fixed_;
};

/// Rows start_index .. start_index + num_samples - 1; `num_samples` 0: all that follow.
Sampler SequentialSampler(std::int64_t start_index = 0, std::int64_t num_samples = 0);
/// Rows at random. Without `replacement` no row comes twice in an epoch. `num_samples` 0: as many as there are rows;
/// more than that need `replacement`.
Sampler RandomSampler(std::uint64_t seed, bool replacement = false, std::int64_t num_samples = 0);
/// The rows `indices`, in that order.
Sampler SubsetSampler(std::vector<std::int64_t> indices);
/// The rows `indices`, in a random order without replacement.
Sampler SubsetRandomSampler(std::vector<std::int64_t> indices, std::uint64_t seed);
/// Row i with a probability that is proportional to weights[i] >= 0. There are as many weights as rows. Without
/// `replacement` a row that was drawn is not drawn again. `num_samples` 0: as many as there are rows.
Sampler WeightedRandomSampler(std::vector<double> weights, std::uint64_t seed, std::int64_t num_samples = 0,
                              bool replacement = true);
/// Rows shard_id, shard_id + num_shards, ... of all rows, or of a random order of each epoch with `shuffle_seed`. Each
/// shard has ceil(rows / num_shards) rows: the first rows come again where they do not divide. MindSpore shuffles by
/// default. `num_samples` 0: all rows of the shard; else at most so many.
Sampler DistributedSampler(std::int64_t num_shards, std::int64_t shard_id,
                           std::optional<std::uint64_t> shuffle_seed = std::nullopt, std::int64_t num_samples = 0);

/// Which rows a source gives. Its order is that of the files; MindSpore shuffles by default, and here Shuffle does.
struct SamplingOptions {
  std::int64_t num_samples = 0;            ///< rows of an epoch at most, of a shard where there are shards; 0: all
  std::optional<std::int64_t> num_shards;  ///< with shard_id: DistributedSampler's
  std::optional<std::int64_t> shard_id;
  std::optional<Sampler> sampler;  ///< in place of the three above, which must then be left alone
};

}  // namespace mpc::data
