// The constants of a Program in memory.
#pragma once

#include <cstddef>

#include "runtime/program.h"

namespace mpc::runtime {

/// Writes `fill`'s element over the first `bytes` bytes of `to`, a multiple of the element's size.
void RepeatElement(const ConstantFill& fill, std::size_t bytes, std::byte* to);

/// Writes the constants of `program`, which has passed CheckProgram, to host memory of `program.constant_bytes()`
/// bytes.
void WriteConstants(const Program& program, std::byte* to);

}  // namespace mpc::runtime
