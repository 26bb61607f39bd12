// MPI in this process: who starts it, who ends it, and what its errors are called.
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mpc::distributed {

/// OK for MPI_SUCCESS. UNAVAILABLE for other codes of MPI: `transport "mpi": <what>: <MPI's words>`.
absl::Status StatusOfMpi(int code, std::string_view what);

/// MPI while at least one group needs it. The last group ends it, unless the program has started it or a group failed.
class MpiProcess {
 public:
  /// Starts MPI, or takes what the program has started. Errors: those of OpenMpiCommunicator about MPI.
  static absl::StatusOr<std::shared_ptr<MpiProcess>> Enter();

  ~MpiProcess();
  MpiProcess(const MpiProcess&) = delete;
  MpiProcess& operator=(const MpiProcess&) = delete;

  /// After this MPI is not ended: MPI_Finalize waits for all processes, and one may be gone.
  void LeaveUnfinished() { ends_ = false; }

 private:
  explicit MpiProcess(bool ends) : ends_(ends) {}

  bool ends_;
};

}  // namespace mpc::distributed
