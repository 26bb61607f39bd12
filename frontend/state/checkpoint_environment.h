// What the bits of a result depend on beside the program. Not part of the public API.
#pragma once

#include <map>
#include <string>

namespace mpc::internal {

/// "mpc", "onednn" (versions), "device", "processor" (its features), "threads".
std::map<std::string, std::string> DescribeEnvironment(const std::string& device);

}  // namespace mpc::internal
