// Several processes that train together. MindSpore's counterpart is mindspore.communication.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace mpc {
class Communicator;

namespace distributed {

/// What carries numbers between processes.
enum class Transport : std::uint8_t {
  kAuto,    ///< kShared where all ranks are on one machine, else kMpi
  kShared,  ///< a mapping that the processes of one machine share
  kMpi,     ///< MPI, of the processes that mpirun or srun has started
  /// NCCL, for the steps of GPUs; what the hosts tell each other takes the way of kAuto. Init opens the GPU and NCCL.
  /// With the others the first step that is loaded on a GPU opens NCCL. Steps on the CPU never use it.
  kNccl,
};

/// Without `rank`, `size` and `address` the variables of torchrun, Open MPI or Slurm count, in this order. Without a
/// launcher there is one process.
struct Options {
  Transport transport = Transport::kAuto;
  std::optional<int> rank;  ///< given with `size`: from 0 to size - 1
  std::optional<int> size;
  /// Where rank 0 listens for the others: "host:port". With `rank`, and more than one of them, it must be given. Beside
  /// a launcher it takes the place of the address that the launcher says.
  std::string address;
  /// How long a process waits for another one, here and in each reduction.
  std::chrono::milliseconds timeout{60000};
};

/// Makes this process one of the group, and waits for the others. All processes call it, with equal options but for
/// `rank`. The main thread calls it, before the first step.
///
/// Errors (INVALID_ARGUMENT): options or variables that contradict each other or are out of range, with what is
/// accepted. So are ranks that were given other sizes, transports or versions of mpc. Errors (FAILED_PRECONDITION):
/// Init was called before, without Finalize behind it; a port in use. Errors (DEADLINE_EXCEEDED): ranks that have not
/// come. Errors (UNAVAILABLE) of kNccl: a rank without a GPU, without NCCL, or in a build without them.
absl::Status Init(const Options& options = {});
/// Leaves the group; MindSpore's `release`. Others that still wait for this process get an error. Init may be called
/// again with another port, as rank 0 may still listen at the old one. Without Init it does nothing.
void Finalize();
bool IsInitialized();

/// This process's rank, 0 without Init; MindSpore's `get_rank`.
int GetRank();
/// Processes of the group, 1 without Init; MindSpore's `get_group_size`.
int GetRankSize();
/// This process's rank among those of its machine; MindSpore's `get_local_rank`.
int GetLocalRank();
/// Processes of the group on this machine, 1 without Init; MindSpore's `get_local_rank_size`.
int GetLocalRankSize();

namespace internal {
/// Null without Init and where there is one process.
std::shared_ptr<Communicator> GetCommunicator();
}  // namespace internal

}  // namespace distributed
}  // namespace mpc
