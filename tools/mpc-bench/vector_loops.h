// The loops of the machine's limits, in the widest instructions that this processor has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/dtype.h"

namespace mpc::tools {

/// Copies without reading the target's lines first. Both are 64-byte aligned, `bytes` a multiple of 64.
void StreamCopy(const std::byte* from, std::byte* to, std::size_t bytes);

/// Multiply-adds on registers alone: of bf16 tiles or pairs where the processor has them, else of f32, in which f16 and
/// bf16 are then computed. mpc runs where there is AVX2 and FMA.
struct MultiplyAddLoop {
  float (*run)(std::int64_t rounds) = nullptr;  ///< its result is there to be used, so that nothing is optimised away
  double flops_a_round = 0;
  std::string_view instructions = "none";
};

MultiplyAddLoop FindMultiplyAddLoop(DType dtype);

}  // namespace mpc::tools
