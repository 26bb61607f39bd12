// What matmul computes, read from its spec.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/kernel_spec.h"

namespace mpc::cpu {

/// y[m, n] = op(a)[m, k] op(b)[k, n] + bias[n], or + bias[m, n]. In the latter case the product is added to the bias.
struct MatmulShape {
  /// INVALID_ARGUMENT, naming the operands, where they are no product of at least one element and term.
  static absl::StatusOr<MatmulShape> Create(const KernelSpec& spec);

  std::int64_t m, k, n;
  bool transpose_a, transpose_b;
  bool has_bias;  ///< [n]
  bool adds;      ///< to a bias [m, n]
};

}  // namespace mpc::cpu
