// The kernels that every process runs at once: what a Program of several processes waits in.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace mpc {

/// Whether kernel `name` is one of a Communicator. It has the attribute `processes`.
inline bool IsCollective(std::string_view name) {
  constexpr std::array<std::string_view, 4> kNames = {"all_gather", "all_reduce", "all_reduce_max", "process_rank"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

/// Whether kernels `a` and `b` of the same processes may send their operands in one message: both add or compare, or
/// both gather. Types and shapes may differ.
inline bool MayShareMessage(std::string_view a, std::string_view b) {
  const auto reduces = [](std::string_view name) { return name == "all_reduce" || name == "all_reduce_max"; };
  return (reduces(a) && reduces(b)) || (a == "all_gather" && b == "all_gather");
}

}  // namespace mpc
