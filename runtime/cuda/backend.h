// The border between a program and libmpc_cuda.so. Both have a copy of the runtime's plain functions; objects cross it
// (Program, StateEntry, Device, Executable, absl::Status), global variables do not: what counts or registers is
// virtual and runs in the code that made the object.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/executable.h"
#include "runtime/version.h"

namespace mpc::runtime {

struct CudaBackend {
  const char* build;  ///< equal to kCudaBackendBuild of the program, else the two do not fit
  absl::StatusOr<const Device*> (*open_device)();
  absl::StatusOr<const Device*> (*open_target)(std::string_view arch);
};

/// Names the layout of everything that crosses the border; changed with it.
inline constexpr char kCudaBackendBuild[] = "mpc " MPC_VERSION " border 3";

/// What libmpc_cuda.so exports: `extern "C" const CudaBackend* mpc_cuda_backend()`.
using CudaBackendFunction = const CudaBackend* (*)();
inline constexpr char kCudaBackendFunction[] = "mpc_cuda_backend";

}  // namespace mpc::runtime
