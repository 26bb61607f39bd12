#include "runtime/distributed/rank_processors.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <thread>
#include <vector>

#include "kernels/usable_processors.h"

namespace mpc::runtime {
namespace {

constexpr std::int64_t kThousand = 1000;

bool OnOneMachine(const RankInfo& one, const RankInfo& other) {
  return one.host == other.host && one.machine == other.machine;
}

/// Both in order.
bool Meet(const std::vector<int>& one, const std::vector<int>& other) {
  return std::ranges::find_first_of(one, other) != one.end();
}

}  // namespace

int ThreadsOfEachRank(absl::Span<const RankInfo> ranks) {
  std::int64_t least = std::numeric_limits<int>::max();
  for (const RankInfo& rank : ranks) {
    std::int64_t sharing = 0;
    std::int64_t of_machine = 0;
    for (const RankInfo& other : ranks) {
      if (!OnOneMachine(rank, other)) continue;
      ++of_machine;
      if (rank.processors.empty() || Meet(rank.processors, other.processors)) ++sharing;
    }
    std::int64_t processors = static_cast<std::int64_t>(rank.processors.size());
    if (processors == 0) processors = std::thread::hardware_concurrency();
    least = std::min(least, processors / std::max<std::int64_t>(sharing, 1));
    if (rank.quota > 0) least = std::min(least, rank.quota / (kThousand * of_machine));
  }
  return ranks.empty() ? 1 : static_cast<int>(std::max<std::int64_t>(least, 1));
}

bool RanksShareProcessors(absl::Span<const RankInfo> ranks) {
  return std::ranges::any_of(ranks, [&](const RankInfo& rank) {
    std::set<int> processors;
    std::size_t of_machine = 0;
    for (const RankInfo& other : ranks) {
      if (!OnOneMachine(rank, other)) continue;
      ++of_machine;
      processors.insert(other.processors.begin(), other.processors.end());
    }
    return processors.size() < of_machine;
  });
}

bool SharesProcessors(absl::Span<const RankInfo> ranks, int rank) {
  const RankInfo& own = ranks[static_cast<std::size_t>(rank)];
  return std::ranges::any_of(ranks, [&own](const RankInfo& other) {
    return &other != &own && OnOneMachine(own, other) && Meet(own.processors, other.processors);
  });
}

}  // namespace mpc::runtime
