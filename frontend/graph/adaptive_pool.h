// Pooling to a given size. See frontend/graph/ops.h for how functions record, run and fail.
#pragma once

#include <cstdint>
#include <vector>

#include "frontend/graph/tensor.h"

namespace mpc {

/// The mean over the windows of an image [N, C, H, W] that give an image of `output_size`, one value or (height,
/// width). -1 keeps an extent, as None does in MindSpore. Window i of an axis is [floor(i * in / out), ceil((i + 1) *
/// in / out)), as in MindSpore and PyTorch. It is made of avg_pool2d (Infer) and, where an extent is no multiple of the
/// new one, of slices and concat (Clear). Along such an axis there are out / gcd(in, out) poolings. Errors: another
/// rank, another number of sizes, a size below 1, more than 4096 poolings.
Tensor adaptive_avg_pool2d(const Tensor& x, std::vector<std::int64_t> output_size);
/// The maximum over the same windows; a NaN wins. The derivative goes to the first maximum in row-major order. All
/// parts are Clear. Errors as above. Indices, which MindSpore gives by return_indices, are not there.
Tensor adaptive_max_pool2d(const Tensor& x, std::vector<std::int64_t> output_size);

namespace ops {

using mpc::adaptive_avg_pool2d, mpc::adaptive_max_pool2d;

}  // namespace ops
}  // namespace mpc
