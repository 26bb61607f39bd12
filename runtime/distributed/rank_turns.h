// A group of processes in one process: its ranks are threads that take turns.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "kernels/communicator.h"

namespace mpc::distributed {

/// What one rank does in the group of its communicator, which has the transport "turns".
using RankBody = std::function<absl::Status(int rank, const std::shared_ptr<Communicator>& communicator)>;

/// Runs `body` for each of `size` ranks, on a thread of its own, and waits for all.
///
/// One thread runs at a time. Rank 0 runs until it calls a function of its communicator or ends, then rank 1 does, and
/// so on. When every rank has called one, the call is made for all, and rank 0 goes on. So the ranks do the same in the
/// same order each time, and `body` needs no locks. Results are those of every other transport, bit for bit.
///
/// Errors: that of the lowest rank whose `body` has failed by itself. A rank that waits for one which has ended gets
/// UNAVAILABLE.
absl::Status RunInTurns(int size, const RankBody& body);

}  // namespace mpc::distributed
