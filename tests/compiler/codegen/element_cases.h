// What the element of each element-wise operation is, by the arithmetic of kernels/scalar on float.
#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace mpc::test {

/// Results of element `i` from the operands' elements.
using Expected = std::function<std::vector<std::uint64_t>(const std::vector<std::uint64_t>& x, std::int64_t i)>;

struct ElementCase {
  std::string op;
  std::string operands;  ///< as ElementFunction takes them
  std::string results;
  std::string attributes;
  Expected expected;
};

/// Numbers as ElementFunction has them.
inline float AsFloat(std::uint64_t word) { return std::bit_cast<float>(static_cast<std::uint32_t>(word)); }
inline std::uint64_t Word(float x) { return std::bit_cast<std::uint32_t>(x); }
inline std::uint64_t Word(bool x) { return x ? 1 : 0; }
inline std::uint64_t Word(std::int64_t x) { return static_cast<std::uint64_t>(x); }

/// Every operation of FusibleOpInterface that has no reductions.
std::vector<ElementCase> ElementCases();

}  // namespace mpc::test
