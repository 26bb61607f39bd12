// Elements that move without being read: unsigned integers hold their bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/dtype.h"

namespace mpc {

/// Whether kernels move elements of type `from` to elements of type `to`: bits of one type, or floating numbers,
/// rounded.
constexpr bool CanMove(DType from, DType to) { return from == to || (IsFloating(from) && IsFloating(to)); }

/// visit(Word{}), where Word is the unsigned integer of `bytes` bytes: 1, 2, 4 or 8.
template <typename Visit>
constexpr auto VisitWord(std::size_t bytes, const Visit& visit) {
  switch (bytes) {
    case 1:
      return visit(std::uint8_t{});
    case 2:
      return visit(std::uint16_t{});
    case 4:
      return visit(std::uint32_t{});
    default:
      return visit(std::uint64_t{});
  }
}

}  // namespace mpc
