// What the files of the reference share: the tables they contribute and the conventions of reading operands.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/reference/reference.h"

namespace mpc::reference {

using Inputs = absl::Span<const Tensor>;
using Outputs = absl::Span<Tensor>;

struct NamedFunction {
  std::string_view name;
  Function function;
};
using FunctionTable = absl::Span<const NamedFunction>;

FunctionTable ActivationFunctions();
FunctionTable AttentionFunctions();
FunctionTable BatchNormFunctions();
FunctionTable Conv2dFunctions();
FunctionTable DataMovementFunctions();
FunctionTable ElementwiseFunctions();
FunctionTable IntegerFunctions();
FunctionTable LossFunctions();
FunctionTable LossScaleFunctions();
FunctionTable MatmulFunctions();
FunctionTable MovementFunctions();
FunctionTable NormFunctions();
FunctionTable OptimizerFunctions();
FunctionTable PoolingFunctions();
FunctionTable RandomFunctions();
FunctionTable RecurrentFunctions();
FunctionTable ReductionFunctions();
FunctionTable ResizeFunctions();
FunctionTable SoftmaxFunctions();
FunctionTable StepFunctions();

/// An f32 attribute: the value that kernels see, whatever precision the caller wrote it in. 0 where it is left out.
inline double FloatAttribute(const Attributes& attributes, std::string_view name) {
  return static_cast<double>(static_cast<float>(attributes.GetDouble(name)));
}
/// The same with the attribute's default where it is left out.
inline double FloatAttribute(const Attributes& attributes, const KnownAttribute<float>& known) {
  return static_cast<double>(attributes.Get(known));
}

/// The single element of a scalar operand.
inline double Scalar(const Tensor& tensor) { return tensor.values[0]; }

/// The result of mpc.unscale for a gradient. It is an f32 product by definition, so that whether it overflows is part
/// of it. Rounding::kNone and kLowOnly give gradients that f32 does not hold. Their products, if finite, are not
/// rounded either.
inline double Unscaled(double gradient, const Tensor& scale) {
  const float held = static_cast<float>(gradient), inverse = 1.0f / static_cast<float>(Scalar(scale));
  if (static_cast<double>(held) == gradient || !std::isfinite(held * inverse)) return held * inverse;
  return gradient * inverse;
}

/// The factor for gradients of this norm. NaN for a norm that is not finite.
double ClipFactor(double norm, double max_norm);

/// Optional trailing operands are absent from `inputs`.
inline bool HasOperand(Inputs inputs, std::size_t position) { return inputs.size() > position; }

/// An axis counted from the front; negative ones count from the end.
inline std::size_t NormalizeAxis(std::int64_t axis, std::size_t rank) {
  return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
}

/// For each element of `to`, in row-major order, the flat index of the element of `from` that it reads under
/// broadcasting. Shapes are aligned at the right, and an extent of 1 is repeated.
std::vector<std::size_t> BroadcastIndices(const Shape& from, const Shape& to);

/// Where heads [B, H, T, D] lie that are part `part` of a tensor [B, T, parts * H * D] of shape `packed`. The result is
/// the flat index of each of their elements, in row-major order.
std::vector<std::size_t> HeadIndices(const Shape& packed, std::int64_t heads, std::int64_t parts, std::int64_t part);
/// These heads, as a tensor of their own.
Tensor HeadsOf(const Tensor& packed, std::int64_t heads, std::int64_t parts, std::int64_t part);

/// mpc.gelu of one value in its forms "none" and "tanh".
double Gelu(double x);
double GeluTanh(double x);

/// `activation` of one value.
double Activate(Activation activation, double value);

}  // namespace mpc::reference
