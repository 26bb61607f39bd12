// How two elements become one, and N rows become one in the order of a balanced tree.
#pragma once

#include <cstddef>

#include "absl/types/span.h"
#include "kernels/communicator.h"
#include "kernels/dtype.h"

namespace mpc::distributed {

/// output[i] = a[i] + b[i], or the larger or smaller of both. f16 and bf16 are added in f32 and rounded once to nearest
/// even. Whole numbers wrap around. A sum that is not a number has one pattern of bits, whatever its operands had.
/// Otherwise the bits would depend on which operand comes first, and a compiler may change that.
///
/// `output` may be `a` or `b`; otherwise nothing overlaps. The type and the reduction are among those of ReducedPart.
void CombineElements(Reduction reduction, DType dtype, const void* a, const void* b, void* output,
                     std::size_t elements);

/// output = ((rows[0] + rows[1]) + (rows[2] + rows[3])) + ... over a power of two of rows. `output` may be one of the
/// rows. Otherwise nothing overlaps.
void CombineRows(Reduction reduction, DType dtype, absl::Span<const void* const> rows, void* output,
                 std::size_t elements);

}  // namespace mpc::distributed
