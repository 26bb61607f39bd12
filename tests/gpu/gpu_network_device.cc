// The GPU as programs open it: libmpc_cuda.so.
#include "runtime/executable.h"
#include "tests/cuda/network_device.h"
#include "tests/gpu/gpu_kernel_device.h"

namespace mpc::test {

absl::Status NetworkDeviceStatus() { return runtime::GetDevice("cuda").status(); }
std::optional<bool> NetworkDeviceFusion() { return std::nullopt; }
std::vector<std::string> NetworkDeviceProblems() { return {}; }
CountingApi* NetworkDeviceCalls() { return nullptr; }
const KernelDevice& NetworkDeviceKernels() { return GpuKernels(/*use_libraries=*/true); }

}  // namespace mpc::test
