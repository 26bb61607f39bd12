// The derivatives of conv2d on oneDNN.
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/narrow_conv2d.h"
#include "kernels/cpu/onednn_api.h"
#include "kernels/cpu/onednn_conv2d.h"

namespace mpc::cpu {
namespace {

using dnnl::memory;
using FormatTag = memory::format_tag;
using DataType = memory::data_type;

/// Backward descriptions take the forward one as a hint; its layouts do not bind them.
dnnl::convolution_forward::primitive_desc Hint(const ConvolutionShape& shape, const Candidate& candidate) {
  return ForwardDescription(shape, AlgorithmOf(candidate), shape.X(candidate.type, FormatTag::any),
                            shape.AnyWeight(candidate.type), nullptr, shape.Y(candidate.type, FormatTag::any));
}

Attempt GradInputConvolution(const KernelSpec& spec, const ConvolutionShape& shape, const Candidate& candidate) {
  const DataType type = candidate.type;
  const DataType result_type = ResultType(type, spec.outputs[0].dtype, Activation::kNone);
  const auto description = DescribeBackward<dnnl::convolution_backward_data>(
      OnednnEngine(), StrictAttributes(), Hint(shape, candidate), AlgorithmOf(candidate),
      shape.X(result_type, candidate.layout), shape.AnyWeight(type), shape.Y(type, candidate.layout), shape.strides,
      shape.dilations, shape.pad_begin, shape.pad_end);
  Attempt attempt = AttemptOf<dnnl::convolution_backward_data>(description);
  attempt.defect = DefectOf(attempt.implementation, shape, candidate.layout);
  attempt.staged.inputs = {
      {DNNL_ARG_DIFF_DST, spec.inputs[0].dtype, shape.Y(type, shape.stored_layout), description.diff_dst_desc()},
      {DNNL_ARG_WEIGHTS, spec.inputs[1].dtype, shape.Weight(type), description.weights_desc(), true}};
  attempt.staged.output = {DNNL_ARG_DIFF_SRC, spec.outputs[0].dtype, shape.X(result_type, shape.stored_layout),
                           description.diff_src_desc()};
  return attempt;
}

Attempt GradInputProduct(const KernelSpec& spec, const ConvolutionShape& shape, DataType type) {
  const memory::desc dy = Matrix(shape.pixels(), shape.out_channels(), type);
  const memory::desc weight = Matrix(shape.out_channels(), shape.in_channels(), type);
  const memory::desc dx =
      Matrix(shape.pixels(), shape.in_channels(), ResultType(type, spec.outputs[0].dtype, Activation::kNone));
  Attempt attempt = AttemptOf<dnnl::matmul>(ProductDescription(dy, weight, nullptr, dx));
  attempt.staged.inputs = {{DNNL_ARG_SRC, spec.inputs[0].dtype, dy, dy},
                           {DNNL_ARG_WEIGHTS, spec.inputs[1].dtype, weight, weight}};
  attempt.staged.output = {DNNL_ARG_DST, spec.outputs[0].dtype, dx, dx};
  return attempt;
}

/// Sums over the batch and the image are kept in f32 and rounded once, at the end.
constexpr DataType kSum = DataType::f32;

Attempt GradWeightConvolution(const KernelSpec& spec, const ConvolutionShape& shape, const Candidate& candidate) {
  const DataType type = candidate.type;
  const auto description = DescribeBackward<dnnl::convolution_backward_weights>(
      OnednnEngine(), StrictAttributes(), Hint(shape, candidate), AlgorithmOf(candidate),
      shape.X(type, candidate.layout), shape.AnyWeight(kSum), shape.Y(type, candidate.layout), shape.strides,
      shape.dilations, shape.pad_begin, shape.pad_end);
  Attempt attempt = AttemptOf<dnnl::convolution_backward_weights>(description);
  attempt.defect = DefectOf(attempt.implementation, shape, candidate.layout);
  attempt.staged.inputs = {
      {DNNL_ARG_SRC, spec.inputs[0].dtype, shape.X(type, shape.stored_layout), description.src_desc()},
      {DNNL_ARG_DIFF_DST, spec.inputs[1].dtype, shape.Y(type, shape.stored_layout), description.diff_dst_desc()}};
  attempt.staged.output = {DNNL_ARG_DIFF_WEIGHTS, spec.outputs[0].dtype, shape.Weight(kSum),
                           description.diff_weights_desc()};
  return attempt;
}

/// dweight [O, C] = dy^T x.
Attempt GradWeightProduct(const KernelSpec& spec, const ConvolutionShape& shape, DataType type) {
  const memory::desc x = Matrix(shape.pixels(), shape.in_channels(), type);
  const memory::desc dy = Transposed(shape.out_channels(), shape.pixels(), type);
  const memory::desc dweight = Matrix(shape.out_channels(), shape.in_channels(), kSum);
  Attempt attempt = AttemptOf<dnnl::matmul>(ProductDescription(dy, x, nullptr, dweight));
  attempt.staged.inputs = {{DNNL_ARG_WEIGHTS, spec.inputs[0].dtype, x, x},
                           {DNNL_ARG_SRC, spec.inputs[1].dtype, dy, dy}};
  attempt.staged.output = {DNNL_ARG_DST, spec.outputs[0].dtype, dweight, dweight};
  return attempt;
}

/// How one of the two gradients is computed. Fields are positions among the inputs followed by the outputs.
struct Derivative {
  const char* takes;  ///< for the error
  std::size_t x, weight, y;
  Attempt (*convolution)(const KernelSpec& spec, const ConvolutionShape& shape, const Candidate& candidate);
  Attempt (*product)(const KernelSpec& spec, const ConvolutionShape& shape, DataType type);
  bool (NarrowConvolution::*takes_narrow)(bool bf16_products) const;
  std::unique_ptr<Kernel> (*make_narrow)(const KernelSpec& spec, const NarrowConvolution& narrow);
};

absl::StatusOr<ConvolutionProblem> DerivativeProblem(const KernelSpec& spec, bool allow_winograd,
                                                     const Derivative& derivative) {
  if (spec.inputs.size() != 2 || spec.outputs.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(spec.name, " takes ", derivative.takes));
  }
  const auto shape_at = [&](std::size_t position) -> const Shape& {
    return position < 2 ? spec.inputs[position].shape : spec.outputs[0].shape;
  };
  const Shape &x = shape_at(derivative.x), &weight = shape_at(derivative.weight);
  const absl::StatusOr<ConvolutionShape> shape = ConvolutionShape::Create(spec, x, weight, shape_at(derivative.y));
  if (!shape.ok()) return shape.status();
  const DType first = spec.inputs[0].dtype, second = spec.inputs[1].dtype;
  ConvolutionProblem problem{*shape, ConvolutionCandidates(*shape, first, second, false, allow_winograd), {}};
  problem.attempt = [&spec, &derivative, shape = *shape](const Candidate& candidate) {
    return candidate.way == kProduct ? derivative.product(spec, shape, candidate.type)
                                     : derivative.convolution(spec, shape, candidate);
  };
  const auto narrow = NarrowConvolution::Create(spec.attributes, x, weight);
  const bool bf16 = OperandTypes({first, second}).front() == DataType::bf16;
  if (narrow && ((*narrow).*derivative.takes_narrow)(bf16)) {
    problem.own = [&spec, &derivative, narrow = *narrow] { return derivative.make_narrow(spec, narrow); };
  }
  return problem;
}

constexpr Derivative kByInput{.takes = "dy and weight to dx",
                              .x = 2,
                              .weight = 1,
                              .y = 0,
                              .convolution = GradInputConvolution,
                              .product = GradInputProduct,
                              .takes_narrow = &NarrowConvolution::TakesGradInput,
                              .make_narrow = MakeNarrowConv2dGradInput};

constexpr Derivative kByWeight{.takes = "x and dy to dweight",
                               .x = 0,
                               .weight = 2,
                               .y = 1,
                               .convolution = GradWeightConvolution,
                               .product = GradWeightProduct,
                               .takes_narrow = &NarrowConvolution::TakesGradWeight,
                               .make_narrow = MakeNarrowConv2dGradWeight};

}  // namespace

absl::StatusOr<ConvolutionProblem> GradInputProblem(const KernelSpec& spec, bool allow_winograd) {
  return DerivativeProblem(spec, allow_winograd, kByInput);
}

absl::StatusOr<ConvolutionProblem> GradWeightProblem(const KernelSpec& spec, bool allow_winograd) {
  return DerivativeProblem(spec, allow_winograd, kByWeight);
}

}  // namespace mpc::cpu
