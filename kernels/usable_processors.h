// The processors that this process may compute with.
#pragma once

#include <string>
#include <vector>

namespace mpc {

/// The processors that this process may run on, in order; none where the system does not say.
std::vector<int> AllowedProcessors();

/// What the control groups of this process let it use, in thousandths of a processor; 0 where nothing limits it. The
/// least of all groups that it is in, of version 1 or 2. Files that say no number are no limit. Below `root` stand
/// /proc and /sys.
int ProcessorQuota(const std::string& root = "");

/// `processors`, but not above the whole ones of the quota, and at least 1.
int WithinQuota(int processors, const std::string& root = "");

/// The number of threads that find processors at the same time: the allowed processors within the quota.
int UsableProcessors(const std::string& root = "");

}  // namespace mpc
