// The families that make up the table, and what they share.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "tests/op_cases/op_case.h"

namespace mpc::op_cases {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<OpCase> ActivationCases();
std::vector<OpCase> AttentionCases();
std::vector<OpCase> BatchNormCases();
std::vector<OpCase> Conv2dCases();
std::vector<OpCase> ConvTransposeCases();
std::vector<OpCase> DataMovementCases();
std::vector<OpCase> ElementwiseCases();
std::vector<OpCase> LossCases();
std::vector<OpCase> LossScaleCases();
std::vector<OpCase> MatmulCases();
std::vector<OpCase> MovementCases();
std::vector<OpCase> NormCases();
std::vector<OpCase> OptimizerCases();
std::vector<OpCase> PoolingCases();
std::vector<OpCase> RecurrentCases();
std::vector<OpCase> ReductionCases();
std::vector<OpCase> ResizeCases();
std::vector<OpCase> SoftmaxCases();
std::vector<OpCase> StepCases();

/// Result shapes of the forward operations that computed operands come from.
std::vector<Shape> ForwardShapes(const std::string& op, const Attributes& attributes,
                                 const std::vector<reference::Tensor>& inputs);

/// Shape of a convolution's or a pooling's result: `x` under a window of `kernel`, with `channels` channels.
Shape WindowResultShape(const Attributes& attributes, const Shape& x, std::int64_t kernel_height,
                        std::int64_t kernel_width, std::int64_t channels);

inline TensorSpec F32(Shape shape) { return {DType::kF32, std::move(shape)}; }
inline TensorSpec I8(Shape shape) { return {DType::kI8, std::move(shape)}; }
inline TensorSpec I32(Shape shape) { return {DType::kI32, std::move(shape)}; }
inline TensorSpec I64(Shape shape) { return {DType::kI64, std::move(shape)}; }
inline TensorSpec Bool(Shape shape) { return {DType::kBool, std::move(shape)}; }

/// A differentiable f32 operand, and one that is not.
inline OperandCase Variable(Shape shape, Values values = Normal()) {
  return {F32(std::move(shape)), std::move(values), true};
}
inline OperandCase Fixed(Shape shape, Values values = Normal()) {
  return {F32(std::move(shape)), std::move(values), false};
}

/// `op_case` with elements of `dtype`, an integer type or truth values, in the place of floating ones.
OpCase OfType(OpCase op_case, DType dtype);

/// Adds `op_case`, which moves elements, for every type; of large tensors for floating types and i8.
void AddMovement(std::vector<OpCase>& cases, OpCase op_case);

/// `attributes` with `more` added.
Attributes With(Attributes attributes, const Attributes& more);

}  // namespace mpc::op_cases
