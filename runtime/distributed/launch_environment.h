// What a launcher tells a process: which rank it is, of how many, and where rank 0 listens.
#pragma once

#include <cstdlib>
#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace mpc::runtime {

/// Ranks that one group may have. Each holds two connections to the store of rank 0, which takes 4,096.
inline constexpr int kMostRanks = 2048;

struct LaunchEnvironment {
  int rank = 0;
  int size = 1;
  int local_rank = 0;  ///< among the ranks of this machine
  int local_size = 1;
  std::string address = "127.0.0.1";  ///< host name or address where rank 0 listens
  int port = 0;                       ///< 0 where there is one process
  std::string launcher = "none";      ///< "torchrun", "Open MPI", "Slurm", "none"
};

/// Reads the variables of the innermost launcher. The first of these that has set its variables counts:
///
/// 1. torchrun: RANK or WORLD_SIZE is set. All of RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and
///    MASTER_PORT must be. Where TORCHELASTIC_USE_AGENT_STORE is True, torchrun itself listens on MASTER_PORT. The port
///    is then derived from MASTER_PORT and TORCHELASTIC_RUN_ID.
/// 2. Open MPI: OMPI_COMM_WORLD_RANK or OMPI_COMM_WORLD_SIZE is set, and LOCAL_RANK and LOCAL_SIZE with them. The
///    address is MASTER_ADDR, or loopback where all ranks are on one machine. The port is MASTER_PORT, or derived from
///    the job: PMIX_NAMESPACE, OMPI_MCA_ess_base_jobid, or the part of OMPI_MCA_orte_hnp_uri before its semicolon.
/// 3. Slurm: SLURM_PROCID and the SLURM_STEP_ID of a step of srun are set. A batch script itself is one process. Sizes
///    are SLURM_STEP_NUM_TASKS or SLURM_NTASKS, SLURM_LOCALID, and SLURM_STEP_TASKS_PER_NODE at SLURM_NODEID. The
///    address is MASTER_ADDR, loopback where all ranks are on one machine, or the first host of SLURM_STEP_NODELIST.
///    The port is MASTER_PORT, or derived from SLURM_JOB_ID and SLURM_STEP_ID.
/// 4. Otherwise there is one process, and launcher is "none".
///
/// Derived ports are from 16384 to 32767, below those that Linux gives to outgoing connections. An empty variable
/// counts as one that is not set.
///
/// Errors (INVALID_ARGUMENT) name the variable, its value and what is accepted. They are a missing variable, a number
/// that is none or out of range, and a rank not below its size. RANK and WORLD_SIZE may not contradict
/// Open MPI or Slurm. Fewer ranks than these started do, and another rank of as many. Where TORCHELASTIC_RUN_ID is set,
/// torchrun was started below them, and its numbers count.
absl::StatusOr<LaunchEnvironment> ReadLaunchEnvironment(const std::function<const char*(const char*)>& get =
                                                            [](const char* name) { return std::getenv(name); });

}  // namespace mpc::runtime
