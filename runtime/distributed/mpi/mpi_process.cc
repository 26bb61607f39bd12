#include "runtime/distributed/mpi/mpi_process.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mpc::distributed {
namespace {

// Open MPI's mpirun, launchers with PMIx (srun --mpi=pmix), and those with PMI (MPICH, Intel MPI, srun --mpi=pmi2).
constexpr std::array kLauncherVariables = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"};

/// Without a launcher MPI would start as a group of one, and every process would train alone.
absl::Status CheckLauncher() {
  if (std::any_of(kLauncherVariables.begin(), kLauncherVariables.end(),
                  [](const char* name) { return std::getenv(name) != nullptr; })) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("transport \"mpi\": no launcher of MPI has started this process (none of ",
                   absl::StrJoin(kLauncherVariables, ", "),
                   " is set); start it with mpirun -n <processes> or srun --mpi=pmix, or choose another transport"));
}

absl::Status CheckThreadLevel(int level) {
  if (level >= MPI_THREAD_FUNNELED) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "transport \"mpi\": MPI gives less than MPI_THREAD_FUNNELED, and mpc computes with threads");
}

/// MPI as the program has started it.
absl::Status CheckStarted() {
  int level = MPI_THREAD_SINGLE;
  if (absl::Status status = StatusOfMpi(MPI_Query_thread(&level), "MPI_Query_thread"); !status.ok()) return status;
  if (absl::Status status = CheckThreadLevel(level); !status.ok()) return status;
  int is_main = 0;
  if (absl::Status status = StatusOfMpi(MPI_Is_thread_main(&is_main), "MPI_Is_thread_main"); !status.ok()) {
    return status;
  }
  if (level >= MPI_THREAD_SERIALIZED || is_main != 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "transport \"mpi\": MPI was started with MPI_THREAD_FUNNELED by another thread than this one");
}

absl::Status Start() {
  if (absl::Status status = CheckLauncher(); !status.ok()) return status;
  int level = MPI_THREAD_SINGLE;
  absl::Status status = StatusOfMpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level), "MPI_Init_thread");
  if (!status.ok()) return status;
  // Errors that belong to no group would end the process otherwise.
  status = StatusOfMpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  return status.ok() ? CheckThreadLevel(level) : status;
}

std::weak_ptr<MpiProcess>& Current() {
  static auto* const current = new std::weak_ptr<MpiProcess>;
  return *current;
}

}  // namespace

absl::Status StatusOfMpi(int code, std::string_view what) {
  if (code == MPI_SUCCESS) return absl::OkStatus();
  char text[MPI_MAX_ERROR_STRING + 1] = "";
  int length = 0;
  const bool known = MPI_Error_string(code, text, &length) == MPI_SUCCESS;
  return absl::UnavailableError(absl::StrCat("transport \"mpi\": ", std::string(what), ": ",
                                             known ? std::string(text) : absl::StrCat("error ", code, " of MPI")));
}

absl::StatusOr<std::shared_ptr<MpiProcess>> MpiProcess::Enter() {
  if (std::shared_ptr<MpiProcess> process = Current().lock()) return process;
  int ended = 0;
  int started = 0;
  if (absl::Status status = StatusOfMpi(MPI_Finalized(&ended), "MPI_Finalized"); !status.ok()) return status;
  if (ended != 0) {
    return absl::FailedPreconditionError(
        "transport \"mpi\": MPI has ended in this process, as when its last group was destroyed, and cannot start "
        "again");
  }
  if (absl::Status status = StatusOfMpi(MPI_Initialized(&started), "MPI_Initialized"); !status.ok()) return status;
  if (absl::Status status = started != 0 ? CheckStarted() : Start(); !status.ok()) return status;
  const std::shared_ptr<MpiProcess> process(new MpiProcess(started == 0));
  Current() = process;
  return process;
}

MpiProcess::~MpiProcess() {
  if (ends_) MPI_Finalize();
}

}  // namespace mpc::distributed
