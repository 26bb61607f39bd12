// An operation of the IR as a case of the table, checked as the table's are.
#pragma once

#include <vector>

#include "kernels/reference/reference.h"
#include "mlir/IR/Operation.h"
#include "tests/op_cases/op_case.h"

namespace mpc::test {

TensorSpec SpecOf(mlir::Value value);

/// With its own types: nothing is made low.
op_cases::OpCase CaseOf(mlir::Operation& op);

/// What the reference gives on `inputs`, before any rounding; a constant gives its values. An operation without a
/// reference fails the test.
std::vector<reference::Tensor> ExactResults(mlir::Operation& op, const std::vector<reference::Tensor>& inputs);

/// Expects `actual`, one a result and null where it is not known, to be within the bounds derived for f32 arithmetic,
/// and one rounding, of `exact`. What is no number exactly has to be none: of reductions either infinite or NaN.
void ExpectWithinBounds(mlir::Operation& op, const std::vector<reference::Tensor>& inputs,
                        const std::vector<reference::Tensor>& exact,
                        const std::vector<const reference::Tensor*>& actual);

}  // namespace mpc::test
