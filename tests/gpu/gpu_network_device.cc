#include "runtime/executable.h"
#include "tests/cuda/network_device.h"

namespace mpc::test {

absl::Status NetworkDeviceStatus() { return runtime::GetDevice("cuda").status(); }
std::vector<std::string> NetworkDeviceProblems() { return {}; }
std::optional<std::size_t> GraphLaunches() { return std::nullopt; }

}  // namespace mpc::test
