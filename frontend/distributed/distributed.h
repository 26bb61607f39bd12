// Several processes that train together. MindSpore's counterpart is mindspore.communication.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

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
  /// How long a process waits for another one, here and in each reduction. 30 days at most.
  std::chrono::milliseconds timeout{60000};
  /// After which a process does not run any more whose group has lost another one: one that has died, has failed, or
  /// stands still. From 1 s to 30 days. See Finalize.
  std::chrono::milliseconds loss_limit{60000};
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
///
/// A process that ends without it is lost to the others. What waits for it ends at once, with an error that names its
/// rank, its step and what it did. A process tells the last two every second. One that stands still is lost after half
/// of Options::loss_limit.
///
/// A process that goes on is ended with exit status 1 half of the limit after the loss, and says why on std::cerr.
/// Finalize lifts that: what comes behind it has time. With an error the others hear it as the loss of this process.
void Finalize(const absl::Status& error = absl::OkStatus());
bool IsInitialized();

/// This process's rank, 0 without Init; MindSpore's `get_rank`.
int GetRank();
/// Processes of the group, 1 without Init; MindSpore's `get_group_size`.
int GetRankSize();
/// This process's rank among those of its machine; MindSpore's `get_local_rank`.
int GetLocalRank();
/// Processes of the group on this machine, 1 without Init; MindSpore's `get_local_rank_size`.
int GetLocalRankSize();
/// Threads of each process, for ContextOptions::num_threads: the same number in all. It is the processors that each
/// may run on, within its control groups' quota. Those of a machine share both. OMP_NUM_THREADS is not read.
int GetRankThreads();

namespace internal {
/// Null without Init and where there is one process.
std::shared_ptr<Communicator> GetCommunicator();
/// The same group with the order of additions that SetAutoParallelContext asks for. It is one object for each order.
std::shared_ptr<Communicator> GetTrainingCommunicator();

// These do nothing without Init and where there is one process.

/// Says at which step this process is, and what it does there.
void NotePlace(std::int64_t step, std::string_view what);
/// OK, or the loss of a process, this one's failure among them. It stays.
absl::Status GroupStatus();
/// Tells the others that a run of this process has failed with `error`, so that none waits for it. Where it failed
/// since another process is lost, the error that is returned names that process and its place.
absl::Status TellOthers(const absl::Status& error);
/// The bytes of the process that has called this first with `key`. It waits for nobody. Errors: the group has failed.
absl::StatusOr<std::string> BytesOfFirst(const std::string& key, std::string bytes);
/// Compares texts by name with those of the process that has called this first with `key`. It waits for nobody. Errors
/// (INVALID_ARGUMENT): the first name with other texts, with both and the ranks that have them.
absl::Status CompareWithFirst(const std::string& key, const std::map<std::string, std::string>& texts);
}  // namespace internal

}  // namespace distributed
}  // namespace mpc
