// The devices that exist: those of mpc, and those that a user registers.
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/cpu/cpu_features.h"
#include "runtime/cuda/backend_library.h"
#include "runtime/executable.h"

namespace mpc::runtime {
namespace {

/// The devices that were registered. Programs and Executables point into them for as long as the process runs.
struct Registered {
  std::mutex mutex;
  std::map<std::string, const Device*, std::less<>> devices;
};

Registered& TheRegistered() {
  static auto* const registered = new Registered;
  return *registered;
}

const Device* FindRegistered(std::string_view name) {
  Registered& registered = TheRegistered();
  const std::lock_guard<std::mutex> lock(registered.mutex);
  const auto found = registered.devices.find(name);
  return found == registered.devices.end() ? nullptr : found->second;
}

}  // namespace

void RegisterDevice(std::unique_ptr<Device> device) {
  Registered& registered = TheRegistered();
  const std::lock_guard<std::mutex> lock(registered.mutex);
  const Device*& known = registered.devices[std::string(device->name())];
  known = device.release();
}

absl::StatusOr<const Device*> GetDevice(std::string_view name) {
  if (const Device* device = FindRegistered(name); device != nullptr) return device;
  if (name == "cpu") {
    if (absl::Status status = CheckCpuBaseline(); !status.ok()) return status;
    static const CpuDevice device;
    return &device;
  }
  if (name == "cuda") return OpenCudaDevice();
  return absl::NotFoundError(
      absl::StrCat("there is no device \"", std::string(name), "\"; mpc has \"cpu\" and \"cuda\""));
}

absl::StatusOr<const Device*> GetTarget(std::string_view name, std::string_view arch) {
  if (arch.empty()) return GetDevice(name);
  if (name == "cuda") return OpenCudaTarget(arch);
  return absl::InvalidArgumentError(
      absl::StrCat("device \"", std::string(name), "\" takes no architecture, got \"", std::string(arch), "\""));
}

}  // namespace mpc::runtime
