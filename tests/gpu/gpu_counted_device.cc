// The GPU with the table of CUDA calls counted: the backend is part of the test here, libmpc_cuda.so is not opened.
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/cudart_api.h"
#include "runtime/executable.h"
#include "tests/cuda/network_device.h"

namespace mpc::test {
namespace {

struct Counted {
  runtime::CudartApi api;
  CountingApi counted{api};
  absl::Status status;

  Counted() {
    auto device = runtime::CudaDevice::Open(counted);
    status = device.status();
    if (device.ok()) runtime::RegisterDevice(*std::move(device));
  }
};

Counted& TheGpu() {
  static auto* const gpu = new Counted;
  return *gpu;
}

}  // namespace

absl::Status NetworkDeviceStatus() { return TheGpu().status; }
std::optional<bool> NetworkDeviceFusion() { return std::nullopt; }
std::vector<std::string> NetworkDeviceProblems() { return {}; }
CountingApi* NetworkDeviceCalls() { return &TheGpu().counted; }

}  // namespace mpc::test
