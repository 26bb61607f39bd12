#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/executable.h"
#include "tests/cuda/emulated_api.h"
#include "tests/cuda/emulated_kernel_device.h"
#include "tests/cuda/network_device.h"

namespace mpc::test {
namespace {

/// The emulated GPU that "cuda" names in this process, with the project's own kernels.
struct Emulated {
  emulation::EmulatedApi api;
  CountingApi counted{api};
  absl::Status status;
  std::unique_ptr<KernelDevice> kernels;  ///< made for it

  Emulated() {
    auto device = runtime::CudaDevice::Open(counted, {.use_libraries = false});
    // What is emulated is always there: a test must not be skipped for it.
    if (!device.ok()) status = absl::InternalError(device.status().message());
    if (device.ok()) runtime::RegisterDevice(*std::move(device));
    const absl::StatusOr<runtime::CudaDeviceProperties> properties = api.Properties();
    status.Update(properties.status());
    cuda::KernelContext context = EmulatedContext();
    if (properties.ok()) context.target = {properties->compute_capability, properties->multiprocessors};
    kernels = EmulatedKernelsIn(context);
  }
};

Emulated& TheGpu() {
  static auto* const gpu = new Emulated;
  return *gpu;
}

}  // namespace

absl::Status NetworkDeviceStatus() { return TheGpu().status; }
std::optional<bool> NetworkDeviceFusion() { return false; }
std::vector<std::string> NetworkDeviceProblems() { return TheGpu().api.Problems(); }
CountingApi* NetworkDeviceCalls() { return &TheGpu().counted; }
const KernelDevice& NetworkDeviceKernels() { return *TheGpu().kernels; }

}  // namespace mpc::test
