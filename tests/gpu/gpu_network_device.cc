// The GPU as programs open it: libmpc_cuda.so.
#include "runtime/executable.h"
#include "tests/cuda/network_device.h"

namespace mpc::test {

absl::Status NetworkDeviceStatus() { return runtime::GetDevice("cuda").status(); }
std::vector<std::string> NetworkDeviceProblems() { return {}; }
CountingApi* NetworkDeviceCalls() { return nullptr; }

}  // namespace mpc::test
