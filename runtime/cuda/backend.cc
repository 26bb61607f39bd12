#include "runtime/cuda/backend.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/cudart_api.h"
#include "runtime/cuda/device_choice.h"
#include "runtime/cuda/nccl_library.h"

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

absl::StatusOr<std::unique_ptr<CudaDevice>> OpenGpu(CudartApi& api) {
  // CudaDevice::Open says why there is no device.
  if (const absl::StatusOr<int> count = api.DeviceCount(); count.ok()) {
    const absl::StatusOr<int> chosen = ChooseGpu(*count);
    if (!chosen.ok()) return chosen.status();
    api.set_device(*chosen);
  }
  return CudaDevice::Open(api, {.nccl = OpenNccl});
}

absl::StatusOr<const Device*> Open(std::string_view arch) {
  Opened& opened = TheOpened();
  const std::lock_guard<std::mutex> lock(opened.mutex);
  if (const auto found = opened.devices.find(arch); found != opened.devices.end()) return found->second.get();
  absl::StatusOr<std::unique_ptr<CudaDevice>> device = arch.empty() ? OpenGpu(opened.api) : CudaDevice::ForTarget(arch);
  if (!device.ok()) return device.status();
  return (opened.devices[std::string(arch)] = *std::move(device)).get();
}

absl::StatusOr<const Device*> OpenDevice() { return Open(""); }

absl::Status Join(const std::shared_ptr<Communicator>& processes) {
  const absl::StatusOr<const Device*> device = OpenDevice();
  return device.ok() ? static_cast<const CudaDevice*>(*device)->Join(processes) : device.status();
}

}  // namespace
}  // namespace mpc::runtime

extern "C" __attribute__((visibility("default"))) const mpc::runtime::PluginTable* mpc_cuda_backend() {
  static const mpc::runtime::CudaBackend backend = {
      {mpc::runtime::kCudaBackendBuild}, mpc::runtime::OpenDevice, mpc::runtime::Open, mpc::runtime::Join};
  return &backend;
}
