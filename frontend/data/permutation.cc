#include "frontend/data/permutation.h"

#include <array>
#include <numeric>
#include <utility>

#include "kernels/philox.h"

namespace mpc::data {
namespace {

/// Keeps shuffles apart from the dropout masks of the same seed.
constexpr std::uint32_t kShuffleStream = 0x73687566;

}  // namespace

std::vector<std::int64_t> Permutation(std::int64_t size, std::uint64_t seed, std::int64_t epoch) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  for (std::int64_t last = size - 1; last > 0; --last) {
    const std::array<std::uint32_t, 4> words =
        PhiloxBlock(seed, static_cast<std::uint32_t>(epoch), kShuffleStream, static_cast<std::uint64_t>(last));
    const std::uint64_t random = static_cast<std::uint64_t>(words[0]) << 32 | words[1];
    // The upper half of a 64 x 64 bit product is uniform below last + 1, up to a bias of (last + 1) / 2^64.
    const auto choice =
        static_cast<std::size_t>(static_cast<unsigned __int128>(random) * static_cast<std::uint64_t>(last + 1) >> 64);
    std::swap(order[static_cast<std::size_t>(last)], order[choice]);
  }
  return order;
}

}  // namespace mpc::data
