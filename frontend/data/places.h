// Which rows of an epoch are read, as a function of their place in it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace mpc::data::internal {

/// The place in the epoch of the n-th row that an iterator gives. Null: n itself.
using PlaceOf = std::function<std::int64_t(std::int64_t)>;

/// The first `count` places of each block of `period`, of those in [begin, end). Blocks begin at `phase`, which may be
/// any number, and at all multiples of `period` from there. 0 < count <= period.
struct Places {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t phase = 0;
  std::int64_t period = 1;
  std::int64_t count = 1;

  /// How many places there are.
  std::int64_t size() const;
  /// Place `n` of them in rising order, for n in [0, size()).
  std::int64_t At(std::int64_t n) const;
  std::vector<std::int64_t> ToVector() const;
  PlaceOf Function() const;

  /// The places of rows of which `rows` each make one row at the places of this. There are `end` rows at most.
  Places OfRows(std::int64_t rows, std::int64_t end) const;
  /// Place p becomes p + distance.
  Places Moved(std::int64_t distance) const;
  /// Those below `limit` and not below 0.
  Places Within(std::int64_t limit) const;

 private:
  /// Places below `place` of the blocks that follow `phase`, less those of the blocks before it.
  std::int64_t Below(std::int64_t place) const;
};

}  // namespace mpc::data::internal
