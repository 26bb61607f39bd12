#include "runtime/distributed/rank_processors.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <set>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

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

/// Thousandths of a processor; 0: `quota` or `period` is no limit.
int Thousandths(std::int64_t quota, std::int64_t period) {
  if (quota <= 0 || period <= 0 || quota > std::numeric_limits<int>::max()) return 0;
  return static_cast<int>(std::clamp<std::int64_t>(quota * kThousand / period, 1, std::numeric_limits<int>::max()));
}

/// What the files of one folder of control groups say; 0: no limit.
int QuotaOfFolder(const std::string& folder) {
  std::int64_t quota = 0;
  std::int64_t period = 0;
  // "max 100000" has no number in front.
  if (std::ifstream file(folder + "/cpu.max"); file >> quota >> period) return Thousandths(quota, period);
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us");
  std::ifstream period_file(folder + "/cpu.cfs_period_us");
  return quota_file >> quota && period_file >> period ? Thousandths(quota, period) : 0;
}

/// The least of `folder`/`path` and what is above it, down to `folder` itself.
int QuotaOfPath(const std::string& folder, std::string path) {
  int least = 0;
  for (;;) {
    const int quota = QuotaOfFolder(folder + path);
    if (quota > 0) least = least == 0 ? quota : std::min(least, quota);
    if (path.empty()) return least;
    path.resize(path.find_last_of('/') == std::string::npos ? 0 : path.find_last_of('/'));
  }
}

}  // namespace

int ProcessorQuota(const std::string& root) {
  const std::string groups = root + "/sys/fs/cgroup";
  std::ifstream file(root + "/proc/self/cgroup");
  int least = 0;
  // "0::/path" of version 2, "4:cpu,cpuacct:/path" of version 1.
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::vector<absl::string_view> controllers = absl::StrSplit(parts[1], ',');
    const bool second = parts[1].empty();
    if (!second && std::ranges::find(controllers, "cpu") == controllers.end()) continue;
    const int quota = QuotaOfPath(second ? groups : groups + "/cpu", parts[2] == "/" ? "" : parts[2]);
    if (quota > 0) least = least == 0 ? quota : std::min(least, quota);
  }
  return least;
}

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

}  // namespace mpc::runtime
