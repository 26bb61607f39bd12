#include "kernels/cpu/matmul_shape.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace mpc::cpu {
namespace {

/// Whether the operands and the result are tensors that a product can have, whatever their extents.
bool HasRanksOfProduct(const KernelSpec& spec) {
  return spec.inputs.size() >= 2 && spec.inputs.size() <= 3 && spec.outputs.size() == 1 &&
         spec.inputs[0].shape.size() == 2 && spec.inputs[1].shape.size() == 2;
}

/// Whether the extents of b, of the bias and of y are those of `shape`.
bool HasExtents(const KernelSpec& spec, const MatmulShape& shape) {
  const Shape& b = spec.inputs[1].shape;
  if (shape.m < 1 || shape.k < 1 || shape.n < 1 || b[shape.transpose_b ? 1 : 0] != shape.k) return false;
  const Shape y{shape.m, shape.n};
  if (shape.has_bias && spec.inputs[2].shape != Shape{shape.n}) return false;
  return spec.outputs[0].shape == y && (!shape.adds || spec.inputs[2].shape == y);
}

}  // namespace

absl::StatusOr<MatmulShape> MatmulShape::Create(const KernelSpec& spec) {
  const auto invalid = [&] {
    std::string given;
    for (const TensorSpec& input : spec.inputs) absl::StrAppend(&given, given.empty() ? "" : ", ", input.ToString());
    return absl::InvalidArgumentError(absl::StrCat(
        "matmul takes a [M, K], b [K, N] and an optional bias [N] or [M, N] to y [M, N], every extent at least 1; got ",
        given, " to ", spec.outputs.empty() ? "nothing" : spec.outputs[0].ToString()));
  };
  if (!HasRanksOfProduct(spec)) return invalid();
  const Shape& a = spec.inputs[0].shape;
  MatmulShape shape;
  shape.transpose_a = spec.attributes.GetBool("transpose_a");
  shape.transpose_b = spec.attributes.GetBool("transpose_b");
  shape.adds = spec.inputs.size() == 3 && spec.inputs[2].shape.size() == 2;
  shape.has_bias = spec.inputs.size() == 3 && !shape.adds;
  shape.m = a[shape.transpose_a ? 1 : 0];
  shape.k = a[shape.transpose_a ? 0 : 1];
  shape.n = spec.inputs[1].shape[shape.transpose_b ? 0 : 1];
  if (!HasExtents(spec, shape)) return invalid();
  return shape;
}

}  // namespace mpc::cpu
