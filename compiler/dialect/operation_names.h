// The names that users give operations.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mpc {

/// The mnemonics of what users call \p name: itself ("conv2d"), or the members of a family ("conv", "conv_transpose",
/// "dense", "batch_norm", "max_pool", "avg_pool", "sum", "mean", "max"). Empty: no such operation.
std::vector<std::string> operationsCalled(std::string_view name);

/// The nearest known name, for messages.
std::string nearestOperation(std::string_view name);

} // namespace mpc
