// The border between a program and libmpc_mpi.so: see PluginTable. The objects that cross it are MpiOptions,
// Communicator and absl::Status.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/communicator.h"
#include "runtime/distributed/mpi/mpi_library.h"
#include "runtime/plugin_library.h"
#include "runtime/version.h"

namespace mpc::distributed {

struct MpiTransport : runtime::PluginTable {
  absl::StatusOr<std::unique_ptr<Communicator>> (*open)(const MpiOptions& options);
};

/// Names the layout of everything that crosses the border; changed with it.
inline constexpr char kMpiTransportBuild[] = "mpc " MPC_VERSION " mpi border 2";

/// What libmpc_mpi.so exports: a PluginFunction, which returns an MpiTransport.
inline constexpr char kMpiTransportFunction[] = "mpc_mpi_transport";

}  // namespace mpc::distributed
