#include "frontend/data/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frontend/data/permutation.h"
#include "frontend/data/uniform_draw.h"

namespace mpc::data {
namespace {

/// Keeps draws apart from shuffles and dropout masks of the same seed.
constexpr std::uint32_t kSamplerStream = 0x73616d70;

using Indices = std::vector<std::int64_t>;

absl::Status NumberError(const char* what, std::int64_t given, const std::string& accepted) {
  return absl::InvalidArgumentError(absl::StrCat(what, " is ", given, "; accepted is ", accepted));
}

absl::Status CheckSamples(std::int64_t num_samples) {
  return num_samples >= 0 ? absl::OkStatus() : NumberError("num_samples", num_samples, "0 and above");
}

/// Uniform in [0, 1) with 53 bits.
double UniformDraw(std::uint64_t seed, std::int64_t epoch, std::int64_t index) {
  const std::uint64_t bits = internal::UniformBelow(std::uint64_t{1} << 53, seed, epoch, kSamplerStream, index);
  return static_cast<double>(bits) * 0x1p-53;
}

absl::Status CheckWeights(const std::vector<double>& weights, std::int64_t rows) {
  if (static_cast<std::int64_t>(weights.size()) != rows) {
    return absl::InvalidArgumentError(
        absl::StrCat("WeightedRandomSampler has ", weights.size(), " weights for ", rows, " rows"));
  }
  double sum = 0;
  for (std::size_t row = 0; row < weights.size(); ++row) {
    sum += weights[row];
    if (weights[row] >= 0 && std::isfinite(weights[row])) continue;
    return absl::InvalidArgumentError(absl::StrCat("WeightedRandomSampler: the weight of row ", row, " is ",
                                                   weights[row], "; accepted are finite numbers of 0 and above"));
  }
  if (sum > 0 && std::isfinite(sum)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("WeightedRandomSampler: the weights sum to ", sum));
}

Indices DrawWithReplacement(const std::vector<double>& weights, std::uint64_t seed, std::int64_t epoch,
                            std::int64_t samples) {
  std::vector<double> sums(weights.size());
  std::partial_sum(weights.begin(), weights.end(), sums.begin());
  Indices indices;
  indices.reserve(static_cast<std::size_t>(samples));
  for (std::int64_t draw = 0; draw < samples; ++draw) {
    const double at = UniformDraw(seed, epoch, draw) * sums.back();
    auto row = std::upper_bound(sums.begin(), sums.end(), at);
    // The product may round up to the sum itself.
    if (row == sums.end()) row = std::lower_bound(sums.begin(), sums.end(), sums.back());
    indices.push_back(row - sums.begin());
  }
  return indices;
}

/// Row i has the key ln(u) / weight, and the largest keys are drawn: Efraimidis and Spirakis, "Weighted random sampling
/// with a reservoir" (2006).
absl::StatusOr<Indices> DrawWithoutReplacement(const std::vector<double>& weights, std::uint64_t seed,
                                               std::int64_t epoch, std::int64_t samples) {
  std::vector<std::pair<double, std::int64_t>> keys;
  for (std::size_t row = 0; row < weights.size(); ++row) {
    if (weights[row] == 0) continue;
    const double uniform = UniformDraw(seed, epoch, static_cast<std::int64_t>(row));
    keys.emplace_back(-std::log1p(-uniform) / weights[row], static_cast<std::int64_t>(row));
  }
  if (samples > static_cast<std::int64_t>(keys.size())) {
    return absl::InvalidArgumentError(absl::StrCat("WeightedRandomSampler without replacement: num_samples is ",
                                                   samples, ", but ", keys.size(), " rows have a weight above 0"));
  }
  std::sort(keys.begin(), keys.end());
  Indices indices;
  for (std::int64_t draw = 0; draw < samples; ++draw) indices.push_back(keys[static_cast<std::size_t>(draw)].second);
  return indices;
}

}  // namespace

absl::StatusOr<std::vector<std::int64_t>> Sampler::Indices(std::int64_t rows, std::int64_t epoch) const {
  if (draw_ == nullptr) return absl::InvalidArgumentError("the sampler has no function");
  absl::StatusOr<std::vector<std::int64_t>> indices = draw_(rows, epoch);
  if (!indices.ok()) return indices.status();
  if (indices->empty()) return absl::InvalidArgumentError("the sampler draws no row");
  for (std::int64_t index : *indices) {
    if (index >= 0 && index < rows) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the sampler draws row ", index, "; the source has rows 0 to ", rows - 1));
  }
  return indices;
}

Sampler SequentialSampler(std::int64_t start_index, std::int64_t num_samples) {
  const auto draw = [=](std::int64_t rows, std::int64_t) -> absl::StatusOr<Indices> {
    if (absl::Status status = CheckSamples(num_samples); !status.ok()) return status;
    if (start_index < 0 || start_index >= rows) {
      return NumberError("start_index", start_index, absl::StrCat("0 to ", rows - 1));
    }
    const std::int64_t left = rows - start_index;
    const std::int64_t samples = num_samples == 0 ? left : std::min(num_samples, left);
    return OrderInMemory("SequentialSampler", samples, [&] {
      Indices indices(static_cast<std::size_t>(samples));
      std::iota(indices.begin(), indices.end(), start_index);
      return indices;
    });
  };
  return Sampler(draw, /*fixed=*/true);
}

Sampler RandomSampler(std::uint64_t seed, bool replacement, std::int64_t num_samples) {
  return Sampler([=](std::int64_t rows, std::int64_t epoch) -> absl::StatusOr<Indices> {
    if (absl::Status status = CheckSamples(num_samples); !status.ok()) return status;
    const std::int64_t samples = num_samples == 0 ? rows : num_samples;
    if (!replacement) {
      if (samples > rows) {
        return NumberError("num_samples of a RandomSampler without replacement", samples,
                           absl::StrCat("at most ", rows));
      }
      return OrderInMemory("RandomSampler", rows, [&] {
        Indices order = Permutation(rows, seed, epoch);
        order.resize(static_cast<std::size_t>(samples));
        return order;
      });
    }
    return OrderInMemory("RandomSampler", samples, [&] {
      Indices indices(static_cast<std::size_t>(samples));
      for (std::int64_t draw = 0; draw < samples; ++draw) {
        indices[static_cast<std::size_t>(draw)] = static_cast<std::int64_t>(
            internal::UniformBelow(static_cast<std::uint64_t>(rows), seed, epoch, kSamplerStream, draw));
      }
      return indices;
    });
  });
}

Sampler SubsetSampler(std::vector<std::int64_t> indices) {
  return Sampler([indices = std::move(indices)](std::int64_t, std::int64_t) { return indices; }, /*fixed=*/true);
}

Sampler SubsetRandomSampler(std::vector<std::int64_t> indices, std::uint64_t seed) {
  return Sampler([indices = std::move(indices), seed](std::int64_t, std::int64_t epoch) {
    Indices order = Permutation(static_cast<std::int64_t>(indices.size()), seed, epoch);
    for (std::int64_t& index : order) index = indices[static_cast<std::size_t>(index)];
    return order;
  });
}

Sampler WeightedRandomSampler(std::vector<double> weights, std::uint64_t seed, std::int64_t num_samples,
                              bool replacement) {
  const auto draw = [=, weights = std::move(weights)](std::int64_t rows,
                                                      std::int64_t epoch) -> absl::StatusOr<Indices> {
    if (absl::Status status = CheckSamples(num_samples); !status.ok()) return status;
    if (absl::Status status = CheckWeights(weights, rows); !status.ok()) return status;
    const std::int64_t samples = num_samples == 0 ? rows : num_samples;
    if (replacement) {
      return OrderInMemory("WeightedRandomSampler", samples,
                           [&] { return DrawWithReplacement(weights, seed, epoch, samples); });
    }
    return DrawWithoutReplacement(weights, seed, epoch, samples);
  };
  return Sampler(draw);
}

Sampler DistributedSampler(std::int64_t num_shards, std::int64_t shard_id, std::optional<std::uint64_t> shuffle_seed,
                           std::int64_t num_samples) {
  const auto draw = [=](std::int64_t rows, std::int64_t epoch) -> absl::StatusOr<Indices> {
    if (absl::Status status = CheckSamples(num_samples); !status.ok()) return status;
    if (num_shards < 1) return NumberError("num_shards", num_shards, "1 and above");
    if (shard_id < 0 || shard_id >= num_shards) {
      return NumberError("shard_id", shard_id, absl::StrCat("0 to ", num_shards - 1));
    }
    const std::int64_t shard = rows / num_shards + (rows % num_shards != 0 ? 1 : 0);
    const std::int64_t samples = num_samples == 0 ? shard : std::min(num_samples, shard);
    return OrderInMemory("DistributedSampler", shuffle_seed ? rows : samples, [&] {
      const Indices order = shuffle_seed ? Permutation(rows, *shuffle_seed, epoch) : Indices();
      Indices indices(static_cast<std::size_t>(samples));
      for (std::int64_t i = 0; i < samples; ++i) {
        const std::int64_t row = (shard_id + i * num_shards) % rows;
        indices[static_cast<std::size_t>(i)] = shuffle_seed ? order[static_cast<std::size_t>(row)] : row;
      }
      return indices;
    });
  };
  return Sampler(draw, /*fixed=*/!shuffle_seed);
}

}  // namespace mpc::data
