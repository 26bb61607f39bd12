// The transport "mpi": opens libmpc_mpi.so, so that mpc runs where there is no MPI.
#pragma once

#include <chrono>
#include <memory>

#include "absl/status/statusor.h"
#include "kernels/communicator.h"
#include "runtime/distributed/wait_hook.h"

namespace mpc::distributed {

struct MpiOptions {
  /// How long a call waits for another process before it is DEADLINE_EXCEEDED.
  std::chrono::milliseconds timeout = std::chrono::seconds(60);
  /// The processes that the caller expects; 0: any number.
  int size = 0;
  WaitHook on_wait;  ///< asked by functions that wait
};

/// The group of all processes that mpirun or srun has started. Every one of them calls this. The library is looked for
/// in MPC_MPI_LIBRARY, beside the running program, in ../lib of it and in the build folder.
///
/// The thread that calls this makes all calls of the group. The group starts MPI unless the program has. Then it also
/// ends MPI when it is destroyed, and MPI cannot start again in this process.
///
/// The destructor waits for the destructors of the other processes, as long as a call does. After an error it waits for
/// nobody and leaves MPI as it is, since MPI_Finalize could wait for ever. mpirun then ends the other processes when
/// this one exits.
///
/// After an error keep the operands of the call that failed until the process ends: a message may still be under way.
///
/// Errors: UNAVAILABLE where the build has no MPI transport, or the library cannot be opened (with the loader's
/// reason). FAILED_PRECONDITION for a library of another version, without a launcher, and after MPI has ended. It is
/// also the error for another number of processes than `size`, and where MPI gives less than MPI_THREAD_FUNNELED.
/// INVALID_ARGUMENT for a time limit that is not positive. DEADLINE_EXCEEDED where not all processes have called this
/// within the time limit. Where MPI has not started this waits for all processes to call it, since MPI_Init has no
/// limit.
absl::StatusOr<std::unique_ptr<Communicator>> OpenMpiCommunicator(const MpiOptions& options = {});

}  // namespace mpc::distributed
