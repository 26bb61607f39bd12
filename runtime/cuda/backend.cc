#include "runtime/cuda/backend.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/cudart_api.h"

namespace mpc::runtime {
namespace {

/// The devices that were opened. Programs and Executables point into them for as long as the process runs.
struct Opened {
  std::mutex mutex;
  CudartApi api;
  std::map<std::string, std::unique_ptr<CudaDevice>, std::less<>> devices;  ///< by architecture; "": this machine's
};

Opened& TheOpened() {
  static auto* const opened = new Opened;
  return *opened;
}

absl::StatusOr<const Device*> Open(std::string_view arch) {
  Opened& opened = TheOpened();
  const std::lock_guard<std::mutex> lock(opened.mutex);
  if (const auto found = opened.devices.find(arch); found != opened.devices.end()) return found->second.get();
  absl::StatusOr<std::unique_ptr<CudaDevice>> device =
      arch.empty() ? CudaDevice::Open(opened.api) : CudaDevice::ForTarget(arch);
  if (!device.ok()) return device.status();
  return (opened.devices[std::string(arch)] = *std::move(device)).get();
}

absl::StatusOr<const Device*> OpenDevice() { return Open(""); }

}  // namespace
}  // namespace mpc::runtime

extern "C" __attribute__((visibility("default"))) const mpc::runtime::PluginTable* mpc_cuda_backend() {
  static const mpc::runtime::CudaBackend backend = {
      {mpc::runtime::kCudaBackendBuild}, mpc::runtime::OpenDevice, mpc::runtime::Open};
  return &backend;
}
