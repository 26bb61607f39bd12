#include "kernels/usable_processors.h"

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <thread>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace mpc {
namespace {

constexpr std::int64_t kThousand = 1000;

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

std::vector<int> AllowedProcessors() {
  std::vector<int> processors;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return processors;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (CPU_ISSET(processor, &allowed)) processors.push_back(processor);
  }
  return processors;
}

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

int WithinQuota(int processors, const std::string& root) {
  const int quota = ProcessorQuota(root);
  if (quota > 0) processors = std::min(processors, quota / static_cast<int>(kThousand));
  return std::max(processors, 1);
}

int UsableProcessors(const std::string& root) {
  const int processors = static_cast<int>(AllowedProcessors().size());
  return WithinQuota(processors > 0 ? processors : static_cast<int>(std::thread::hardware_concurrency()), root);
}

}  // namespace mpc
