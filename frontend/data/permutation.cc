#include "frontend/data/permutation.h"

#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frontend/data/uniform_draw.h"
#include "runtime/physical_memory.h"

namespace mpc::data {
namespace {

/// Keeps shuffles apart from the dropout masks of the same seed.
constexpr std::uint32_t kShuffleStream = 0x73687566;

}  // namespace

std::vector<std::int64_t> Permutation(std::int64_t size, std::uint64_t seed, std::int64_t epoch) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  for (std::int64_t last = size - 1; last > 0; --last) {
    const std::uint64_t choice =
        internal::UniformBelow(static_cast<std::uint64_t>(last + 1), seed, epoch, kShuffleStream, last);
    std::swap(order[static_cast<std::size_t>(last)], order[static_cast<std::size_t>(choice)]);
  }
  return order;
}

absl::StatusOr<std::vector<std::int64_t>> OrderInMemory(std::string_view whose, std::int64_t rows,
                                                        const std::function<std::vector<std::int64_t>()>& order) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(rows, sizeof(std::int64_t), &bytes)) bytes = std::numeric_limits<std::size_t>::max();
  const auto make = [&]() -> absl::StatusOr<std::vector<std::int64_t>> { return order(); };
  return runtime::MakeWithinMemory(bytes, make, [&] {
    return absl::StrCat(std::string(whose), ": the order of ", rows, " rows needs more memory than there is");
  });
}

}  // namespace mpc::data
