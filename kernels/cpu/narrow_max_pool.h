// max_pool2d for few channels, channels-last, without padding, and the gradient of windows that share no pixel. With
// AVX-512 rows are rearranged so that every lane of a vector holds a result. With AVX2 a vector has channels of a
// pixel.
#pragma once

#include <memory>

#include "kernels/cpu/kernel.h"
#include "kernels/pool_geometry.h"

namespace mpc::cpu {

/// max_pool2d of 2 to 16 channels, with windows of at most 3 x 3 and without dilation. Null for other geometries, for
/// rows that no RowPermutation fits or that are longer than kMaxRow (row_permutation.h), and without AVX2.
std::unique_ptr<Kernel> MakeNarrowMaxPool(const KernelSpec& spec, const PoolGeometry& geometry);
/// Its gradient, with any number of channels in either layout, and any padding. Null where windows overlap or dilate,
/// where dy and dx differ in type, for such rows, and without AVX2. With AVX2 images are channels-last.
std::unique_ptr<Kernel> MakeNarrowMaxPoolGrad(const KernelSpec& spec, const PoolGeometry& geometry);

}  // namespace mpc::cpu
