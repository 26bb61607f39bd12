// The parts of Dataset::Split.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/data/permutation.h"
#include "frontend/data/selection.h"

namespace mpc::data::internal {
namespace {

/// How far a sum of fractions may be from 1: each has an error of half a unit in its last place.
constexpr double kTolerance = 1e-9;

absl::Status SizesError(const std::vector<double>& sizes, std::int64_t rows, const char* what) {
  return absl::InvalidArgumentError(
      absl::StrCat("Split of ", rows, " rows into {", absl::StrJoin(sizes, ", "), "}: ", what));
}

/// Numbers of rows as MindSpore rounds fractions. The first part takes what is missing. The first that is large enough
/// gives up what is too much. Where none is, several give up one row each. They sum to `rows`, unless each part has one
/// row at most.
std::vector<std::int64_t> RoundFractions(const std::vector<double>& fractions, std::int64_t rows) {
  std::vector<std::int64_t> counts;
  std::int64_t excess = -rows;
  for (double fraction : fractions) {
    counts.push_back(std::llround(fraction * static_cast<double>(rows)));
    excess += counts.back();
  }
  if (excess <= 0) {
    counts[0] -= excess;
    return counts;
  }
  const auto large = std::find_if(counts.begin(), counts.end(), [=](std::int64_t count) { return count > excess; });
  if (large != counts.end()) {
    *large -= excess;
    return counts;
  }
  // Rounding adds less than one row a part, but parts of one row keep theirs: others may give up several.
  for (bool gave = true; gave && excess > 0;) {
    gave = false;
    for (std::int64_t& count : counts) {
      if (excess == 0 || count <= 1) continue;
      --count;
      --excess;
      gave = true;
    }
  }
  return counts;
}

absl::StatusOr<std::vector<std::int64_t>> CountsOf(const std::vector<double>& sizes, std::int64_t rows) {
  constexpr const char kAccepted[] = "the sizes must be fractions that sum to 1, or numbers of rows that sum to all";
  double sum = 0;
  bool whole = true;
  for (double size : sizes) {
    if (!(size > 0 && size < 9e15)) return SizesError(sizes, rows, "each size must be above 0");
    sum += size;
    whole = whole && size == std::floor(size);
  }
  std::vector<std::int64_t> counts;
  if (std::abs(sum - 1) <= kTolerance) {
    counts = RoundFractions(sizes, rows);
  } else if (whole && sum == static_cast<double>(rows)) {
    for (double size : sizes) counts.push_back(static_cast<std::int64_t>(size));
  } else {
    return SizesError(sizes, rows, kAccepted);
  }
  const bool all_have_rows = std::all_of(counts.begin(), counts.end(), [](std::int64_t count) { return count >= 1; });
  if (!all_have_rows || std::accumulate(counts.begin(), counts.end(), std::int64_t{0}) != rows) {
    return SizesError(sizes, rows, "a part would have no rows");
  }
  return counts;
}

}  // namespace

absl::StatusOr<std::vector<std::vector<std::int64_t>>> SplitIndices(const DatasetNode& node,
                                                                    const std::vector<double>& sizes,
                                                                    std::optional<std::uint64_t> seed) {
  if (!node.random_access()) {
    return absl::InvalidArgumentError(
        "Split needs random access, or its parts could share rows: split the source before Shuffle, Batch, Filter and "
        "a "
        "Map that reads its position; rows of a generator function can be held in a vector");
  }
  absl::StatusOr<std::int64_t> rows = node.size();
  if (!rows.ok()) return rows.status();
  absl::StatusOr<std::vector<std::int64_t>> counts = CountsOf(sizes, *rows);
  if (!counts.ok()) return counts.status();
  const absl::StatusOr<std::vector<std::int64_t>> order = OrderInMemory("Split", *rows, [&] {
    if (seed) return Permutation(*rows, *seed, /*epoch=*/0);
    std::vector<std::int64_t> rising(static_cast<std::size_t>(*rows));
    std::iota(rising.begin(), rising.end(), 0);
    return rising;
  });
  if (!order.ok()) return order.status();
  std::vector<std::vector<std::int64_t>> parts;
  auto begin = order->begin();
  for (std::int64_t count : *counts) {
    parts.emplace_back(begin, begin + count);
    begin += count;
  }
  return parts;
}

}  // namespace mpc::data::internal
