// Shapes that element-wise cases share, and the cases that every operation of a kind has.
#pragma once

#include <string>
#include <vector>

#include "tests/op_cases/op_case.h"

namespace mpc::op_cases {

/// One element, less than a vector, a scalar, more than a vector with a remainder, enough for every thread.
const std::vector<Shape>& UnaryShapes();

struct BroadcastShapes {
  Shape a, b, y;
};
/// Equal shapes, scalars, rows, columns, channels, both operands stretched.
const std::vector<BroadcastShapes>& BinaryShapes();

/// "<op>/<shape of a>_with_<shape of b>".
std::string NameOf(const std::string& op, const BroadcastShapes& shapes);

/// `op` on every unary shape, drawn from `values`, and on the values of `special`.
void AddUnary(std::vector<OpCase>& cases, const std::string& op, const Values& values,
              const std::vector<double>& special, bool differentiable = true);

/// `op` on every binary shape, the second operand drawn from `b`.
void AddBinary(std::vector<OpCase>& cases, const std::string& op, const Values& b);

}  // namespace mpc::op_cases
