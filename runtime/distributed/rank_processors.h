// How many threads a rank can compute with, where ranks share a machine.
#pragma once

#include "absl/types/span.h"
#include "runtime/distributed/rank_info.h"

namespace mpc::runtime {

/// Threads that each rank can compute with. A processor is shared by the ranks of its machine that may run on it, and a
/// quota by all ranks of a host. All ranks get the number of the rank that has the least, 1 at least.
int ThreadsOfEachRank(absl::Span<const RankInfo> ranks);

/// Whether ranks of some machine have fewer processors together than they are. One whose processors are not known has
/// none of its own.
bool RanksShareProcessors(absl::Span<const RankInfo> ranks);

/// Whether another rank of its machine may run on a processor of `rank`.
bool SharesProcessors(absl::Span<const RankInfo> ranks, int rank);

}  // namespace mpc::runtime
