#include "runtime/cuda/backend_library.h"

#include "runtime/cuda/backend.h"
#include "runtime/plugin_library.h"

namespace mpc::runtime {
namespace {

#ifdef MPC_HAVE_CUDA_BACKEND

absl::StatusOr<const CudaBackend*> Backend() {
  static auto* const library = new PluginLibrary({.subject = "device \"cuda\"",
                                                  .kind = "backend",
                                                  .file = "libmpc_cuda.so",
                                                  .variable = "MPC_CUDA_LIBRARY",
                                                  .folder = MPC_CUDA_BUILD_FOLDER,
                                                  .function = kCudaBackendFunction,
                                                  .build = kCudaBackendBuild});
  const absl::StatusOr<const PluginTable*> table = library->Open();
  if (!table.ok()) return table.status();
  return static_cast<const CudaBackend*>(*table);
}

#else

absl::StatusOr<const CudaBackend*> Backend() {
  return absl::UnavailableError("device \"cuda\": this build has no CUDA backend (MPC_CUDA=OFF); it has \"cpu\"");
}

#endif

}  // namespace

absl::StatusOr<const Device*> OpenCudaDevice() {
  const absl::StatusOr<const CudaBackend*> backend = Backend();
  return backend.ok() ? (*backend)->open_device() : backend.status();
}

absl::StatusOr<const Device*> OpenCudaTarget(std::string_view arch) {
  const absl::StatusOr<const CudaBackend*> backend = Backend();
  return backend.ok() ? (*backend)->open_target(arch) : backend.status();
}

absl::Status JoinGpus(const std::shared_ptr<Communicator>& processes) {
  const absl::StatusOr<const CudaBackend*> backend = Backend();
  return backend.ok() ? (*backend)->join(processes) : backend.status();
}

}  // namespace mpc::runtime
