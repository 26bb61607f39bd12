// The border between a program and libmpc_cuda.so. Both sides have a copy of the runtime's plain functions. Objects
// cross the border: Program, StateEntry, Device, Executable, absl::Status. Global variables do not cross it. So
// functions that count or register are virtual and run in the code that made the object.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/executable.h"
#include "runtime/version.h"

namespace mpc::runtime {

struct CudaBackend {
  const char* build;  ///< must equal the program's kCudaBackendBuild, else the two do not fit
  absl::StatusOr<const Device*> (*open_device)();
  absl::StatusOr<const Device*> (*open_target)(std::string_view arch);
};

/// Names the layout of everything that crosses the border; changed with it.
inline constexpr char kCudaBackendBuild[] = "mpc " MPC_VERSION " border 4";

/// What libmpc_cuda.so exports: `extern "C" const CudaBackend* mpc_cuda_backend()`.
using CudaBackendFunction = const CudaBackend* (*)();
inline constexpr char kCudaBackendFunction[] = "mpc_cuda_backend";

}  // namespace mpc::runtime
