#include "runtime/distributed/mpi/mpi_library.h"

#include "absl/status/status.h"
#include "runtime/distributed/mpi/mpi_transport.h"
#include "runtime/plugin_library.h"

namespace mpc::distributed {

#ifdef MPC_HAVE_MPI_TRANSPORT

absl::StatusOr<std::unique_ptr<Communicator>> OpenMpiCommunicator(const MpiOptions& options) {
  static auto* const library = new runtime::PluginLibrary({.subject = "transport \"mpi\"",
                                                           .kind = "transport",
                                                           .file = "libmpc_mpi.so",
                                                           .variable = "MPC_MPI_LIBRARY",
                                                           .folder = MPC_MPI_BUILD_FOLDER,
                                                           .function = kMpiTransportFunction,
                                                           .build = kMpiTransportBuild});
  const absl::StatusOr<const runtime::PluginTable*> table = library->Open();
  if (!table.ok()) return table.status();
  return static_cast<const MpiTransport*>(*table)->open(options);
}

#else

absl::StatusOr<std::unique_ptr<Communicator>> OpenMpiCommunicator(const MpiOptions&) {
  return absl::UnavailableError(
      "transport \"mpi\": this build has no MPI transport (MPC_MPI=OFF, or MPI was not found: tools/setup.sh "
      "--with-mpi "
      "installs it)");
}

#endif

}  // namespace mpc::distributed
