// Sums of products over named axes. See frontend/graph/ops.h for how functions record, run and fail.
#pragma once

#include <string>
#include <vector>

#include "frontend/graph/tensor.h"

namespace mpc {

/// Einstein's summation with MindSpore's and NumPy's notation. "bij,bjk->bik" names the axes of each operand by
/// letters. The result is the sum of the products over the letters that it does not name. Without "->" the result has
/// the letters that occur once, in alphabetical order ("..." in front). "..." stands for any number of axes, which are
/// aligned at the right. A letter that one operand has twice takes its diagonal. Extents of 1 stretch.
///
/// Takes one or more floating tensors and multiplies them from the left. A pair that shares summed letters is a matmul
/// or batch_matmul (Allow); another pair is a mul (Infer). Letters that one operand alone has are summed by reduce_sum
/// (Deny) before. The rest is movement (Clear).
///
/// Errors name what is wrong with the equation: a character, the count of operands or letters, extents that differ.
/// A letter of the result is wrong that no operand has or that occurs twice.
Tensor einsum(const std::string& equation, const std::vector<Tensor>& operands);

namespace ops {

using mpc::einsum;

}  // namespace ops
}  // namespace mpc
