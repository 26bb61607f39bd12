// The one way to start a kernel: `launch` in place of the triple chevrons.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include "kernels/cuda/kernel.h"

namespace mpc::cuda {

/// The most bytes of a launch's parameters, on every device that is supported.
inline constexpr std::size_t kMaxArgumentBytes = 4096;

namespace internal {

template <typename... Parameters>
struct Unpack {
  template <std::size_t... I>
  static void Call(const void* entry, const void* const* arguments, std::index_sequence<I...>) {
    reinterpret_cast<void (*)(Parameters...)>(const_cast<void*>(entry))(
        *static_cast<const Parameters*>(arguments[I])...);
  }
  static void Call(const void* entry, const void* const* arguments) {
    Call(entry, arguments, std::index_sequence_for<Parameters...>());
  }
};

}  // namespace internal

/// Starts `kernel` on `queue`. An empty grid starts nothing. Arguments are converted to the kernel's parameters, which
/// are plain data of at most kMaxArgumentBytes together.
template <typename... Parameters, typename... Arguments>
absl::Status launch(LaunchQueue& queue, void (*kernel)(Parameters...), const LaunchShape& shape,
                    const Arguments&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments), "one argument a parameter");
  static_assert((std::is_trivially_copyable_v<Parameters> && ...), "parameters are copied to the device as bytes");
  static_assert((sizeof(Parameters) + ... + 0) <= kMaxArgumentBytes, "too many parameters");
  if (shape.blocks_x == 0 || shape.blocks_y == 0 || shape.blocks_z == 0) return absl::OkStatus();
  const std::tuple<Parameters...> values(arguments...);
  KernelFunction function;
  function.entry = reinterpret_cast<const void*>(kernel);
  function.awaits_earlier = true;
#ifndef __CUDACC__
  function.call = &internal::Unpack<Parameters...>::Call;
#endif
  return std::apply(
      [&](const auto&... value) {
        const std::array<KernelArgument, sizeof...(Parameters)> list = {KernelArgument{&value, sizeof(value)}...};
        return queue.Launch(function, shape, list);
      },
      values);
}

/// Blocks of `per_block` items that cover `items`, at most the largest grid; kernels stride over the rest.
inline unsigned BlocksFor(std::int64_t items, std::int64_t per_block) {
  const std::int64_t blocks = (items + per_block - 1) / per_block;
  return static_cast<unsigned>(blocks < std::numeric_limits<int>::max() ? blocks : std::numeric_limits<int>::max());
}

}  // namespace mpc::cuda
