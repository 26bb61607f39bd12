// The border between a program and libmpc_cuda.so: see PluginTable. The objects that cross it are Program, StateEntry,
// Device, Executable, which is an ObservableStep, too, Communicator and absl::Status.
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/executable.h"
#include "runtime/plugin_library.h"
#include "runtime/version.h"

namespace mpc::runtime {

struct CudaBackend : PluginTable {
  absl::StatusOr<const Device*> (*open_device)();
  absl::StatusOr<const Device*> (*open_target)(std::string_view arch);
  absl::Status (*join)(const std::shared_ptr<Communicator>& processes);
};

/// Names the layout of everything that crosses the border; changed with it.
inline constexpr char kCudaBackendBuild[] = "mpc " MPC_VERSION " border 6";

/// What libmpc_cuda.so exports: a PluginFunction, which returns a CudaBackend.
inline constexpr char kCudaBackendFunction[] = "mpc_cuda_backend";

}  // namespace mpc::runtime
