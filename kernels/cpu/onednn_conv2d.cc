// conv2d and its derivatives on oneDNN. Weights are packed into the layout that the primitive asks for in every run:
// with plain weights oneDNN falls back to slow loops.
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/narrow_conv2d.h"
#include "kernels/cpu/onednn_common.h"
#include "kernels/cpu/registry.h"
#include "kernels/window.h"

namespace mpc::cpu {
namespace {

using dnnl::memory;
using FormatTag = memory::format_tag;

/// A convolution in oneDNN's terms: logical dimensions are always NCHW, layouts are strides.
struct ConvolutionShape {
  memory::dims x, weight, bias, y;
  memory::dims strides, dilations, pad_begin, pad_end;
  FormatTag stored_layout;  ///< of x and y
  FormatTag weight_layout;

  memory::desc X(memory::data_type type, FormatTag layout) const { return {x, type, layout}; }
  memory::desc Y(memory::data_type type, FormatTag layout) const { return {y, type, layout}; }
  memory::desc Weight(memory::data_type type) const { return {weight, type, weight_layout}; }
  memory::desc AnyWeight(memory::data_type type) const { return {weight, type, FormatTag::any}; }
  memory::desc Bias(memory::data_type type) const { return {bias, type, FormatTag::x}; }
};

/// Resolves the geometry of x, weight [O, C / groups, kh, kw] and y. Errors (INVALID_ARGUMENT): what does not fit.
absl::StatusOr<ConvolutionShape> ShapeOf(const KernelSpec& spec, const Shape& x, const Shape& weight, const Shape& y) {
  const std::string format = spec.attributes.GetString("data_format", "NCHW");
  const std::int64_t groups = spec.attributes.GetInt("groups", 1);
  const auto invalid = [&](absl::string_view problem) {
    return absl::InvalidArgumentError(absl::StrCat(spec.name, ": ", problem, "; x is ", ShapeToString(x), " (", format,
                                                   "), weight ", ShapeToString(weight), ", y ", ShapeToString(y),
                                                   ", groups ", groups));
  };
  if (format != "NCHW" && format != "NHWC") return invalid("data_format is \"NCHW\" or \"NHWC\"");
  if (x.size() != 4 || weight.size() != 4 || y.size() != 4) return invalid("x, weight and y have rank 4");
  const ImageAxes axes = AxesOf(format);
  const std::int64_t batch = x[axes.batch];
  const std::int64_t in_channels = x[axes.channel];
  const std::int64_t out_channels = weight[0];
  if (batch < 1 || in_channels < 1 || out_channels < 1 || groups < 1) return invalid("every extent is at least 1");
  if (in_channels % groups != 0 || out_channels % groups != 0 || weight[1] != in_channels / groups) {
    return invalid("weight is [O, C / groups, kh, kw] with groups dividing O and C");
  }
  absl::StatusOr<Window> window =
      ResolveWindow(spec.attributes, {x[axes.height], x[axes.width]}, {weight[2], weight[3]});
  if (!window.ok()) return invalid(window.status().message());
  if (y[axes.batch] != batch || y[axes.channel] != out_channels || y[axes.height] != window->output[0] ||
      y[axes.width] != window->output[1]) {
    return invalid(absl::StrCat("y has ", out_channels, " channels of ", window->output[0], "x", window->output[1]));
  }
  ConvolutionShape shape;
  shape.x = {batch, in_channels, window->input[0], window->input[1]};
  shape.y = {batch, out_channels, window->output[0], window->output[1]};
  shape.weight = groups == 1 ? memory::dims{out_channels, in_channels, weight[2], weight[3]}
                             : memory::dims{groups, out_channels / groups, in_channels / groups, weight[2], weight[3]};
  shape.bias = {out_channels};
  shape.strides = {window->stride[0], window->stride[1]};
  shape.dilations = {window->dilation[0] - 1, window->dilation[1] - 1};
  shape.pad_begin = {window->pad_begin[0], window->pad_begin[1]};
  shape.pad_end = {window->pad_end[0], window->pad_end[1]};
  shape.stored_layout = format == "NHWC" ? FormatTag::nhwc : FormatTag::nchw;
  shape.weight_layout = groups == 1 ? FormatTag::oihw : FormatTag::goihw;
  return shape;
}

/// Channels-last first, whatever the storage: on plain nchw oneDNN has only its im2col path, several times slower.
std::vector<Candidate> Candidates(DType first, DType second) {
  std::vector<Candidate> candidates;
  for (memory::data_type type : OperandTypes({first, second})) {
    for (FormatTag layout : {FormatTag::nhwc, FormatTag::any, FormatTag::nchw}) candidates.push_back({type, layout});
  }
  return candidates;
}

/// oneDNN 2.6 gathers the pixels of a strided 1x1 convolution into a buffer a thread. Its AVX2 code stores 8 channels
/// at a time, so that with channels-last and a remainder of channels threads write into each other's buffers.
std::string DefectOf(const std::string& implementation, const ConvolutionShape& shape, FormatTag layout) {
  const bool strided = shape.strides != memory::dims{1, 1};
  if (implementation == "jit_1x1:avx2" && layout == FormatTag::nhwc && strided && shape.x[1] % 8 != 0) {
    return "wrong results for strided 1x1 windows over a channel count that is no multiple of 8";
  }
  return "";
}

dnnl::convolution_forward::primitive_desc ForwardDescription(const ConvolutionShape& shape, const memory::desc& x,
                                                             const memory::desc& weight, const memory::desc* bias,
                                                             const memory::desc& y) {
  constexpr auto kKind = dnnl::prop_kind::forward_training;
  constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;
  using Operation = dnnl::convolution_forward::desc;
  const Operation operation = bias == nullptr ? Operation(kKind, kAlgorithm, x, weight, y, shape.strides,
                                                          shape.dilations, shape.pad_begin, shape.pad_end)
                                              : Operation(kKind, kAlgorithm, x, weight, *bias, y, shape.strides,
                                                          shape.dilations, shape.pad_begin, shape.pad_end);
  return {operation, StrictAttributes(), OnednnEngine()};
}

/// Backward descriptions take the forward one as a hint; its layouts do not bind them.
dnnl::convolution_forward::primitive_desc Hint(const ConvolutionShape& shape, memory::data_type type) {
  return ForwardDescription(shape, shape.X(type, FormatTag::any), shape.AnyWeight(type), nullptr,
                            shape.Y(type, FormatTag::any));
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateConv2d(const KernelSpec& spec) {
  if (spec.inputs.size() < 2 || spec.inputs.size() > 3 || spec.outputs.size() != 1) {
    return absl::InvalidArgumentError("conv2d takes x, weight and an optional bias to y");
  }
  absl::StatusOr<ConvolutionShape> shape =
      ShapeOf(spec, spec.inputs[0].shape, spec.inputs[1].shape, spec.outputs[0].shape);
  if (!shape.ok()) return shape.status();
  const bool has_bias = spec.inputs.size() == 3;
  if (has_bias && spec.inputs[2].shape != Shape{shape->bias[0]}) {
    return absl::InvalidArgumentError(
        absl::StrCat("conv2d: bias is [", shape->bias[0], "], got ", spec.inputs[2].ToString()));
  }
  absl::StatusOr<Activation> activation = ParseActivation(spec.attributes.GetString("activation", "none"));
  if (!activation.ok()) return activation.status();
  if (const auto narrow = NarrowConvolution::Of(spec.attributes, spec.inputs[0].shape, spec.inputs[1].shape);
      narrow && narrow->TakesForward()) {
    return MakeNarrowConv2d(spec, *narrow);
  }

  return FirstFastCandidate(
      spec, Candidates(spec.inputs[0].dtype, spec.inputs[1].dtype), [&](const Candidate& candidate) {
        const memory::data_type type = candidate.type;
        const memory::data_type result_type = ResultType(type, spec.outputs[0].dtype, *activation);
        const memory::data_type bias_type =
            has_bias && type == memory::data_type::bf16 ? OnednnType(spec.inputs[2].dtype) : memory::data_type::f32;
        const memory::desc bias = shape->Bias(bias_type);
        const auto description =
            ForwardDescription(*shape, shape->X(type, candidate.layout), shape->AnyWeight(type),
                               has_bias ? &bias : nullptr, shape->Y(result_type, candidate.layout));
        Attempt attempt;
        attempt.implementation = description.impl_info_str();
        attempt.defect = DefectOf(attempt.implementation, *shape, candidate.layout);
        attempt.staged.primitive = dnnl::convolution_forward(description);
        attempt.staged.scratchpad = description.scratchpad_desc();
        attempt.staged.inputs = {
            {DNNL_ARG_SRC, spec.inputs[0].dtype, shape->X(type, shape->stored_layout), description.src_desc()},
            {DNNL_ARG_WEIGHTS, spec.inputs[1].dtype, shape->Weight(type), description.weights_desc()}};
        if (has_bias) {
          attempt.staged.inputs.push_back({DNNL_ARG_BIAS, spec.inputs[2].dtype, bias, description.bias_desc()});
        }
        attempt.staged.output = {DNNL_ARG_DST, spec.outputs[0].dtype, shape->Y(result_type, shape->stored_layout),
                                 description.dst_desc()};
        attempt.staged.activation = *activation;
        return attempt;
      });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateConv2dGradInput(const KernelSpec& spec) {
  if (spec.inputs.size() != 2 || spec.outputs.size() != 1) {
    return absl::InvalidArgumentError("conv2d_grad_input takes dy and weight to dx");
  }
  absl::StatusOr<ConvolutionShape> shape =
      ShapeOf(spec, spec.outputs[0].shape, spec.inputs[1].shape, spec.inputs[0].shape);
  if (!shape.ok()) return shape.status();
  if (const auto narrow = NarrowConvolution::Of(spec.attributes, spec.outputs[0].shape, spec.inputs[1].shape);
      narrow && narrow->TakesGradInput()) {
    return MakeNarrowConv2dGradInput(spec, *narrow);
  }

  return FirstFastCandidate(
      spec, Candidates(spec.inputs[0].dtype, spec.inputs[1].dtype), [&](const Candidate& candidate) {
        const memory::data_type type = candidate.type;
        const memory::data_type result_type = ResultType(type, spec.outputs[0].dtype, Activation::kNone);
        const dnnl::convolution_backward_data::desc operation(
            dnnl::algorithm::convolution_direct, shape->X(result_type, candidate.layout), shape->AnyWeight(type),
            shape->Y(type, candidate.layout), shape->strides, shape->dilations, shape->pad_begin, shape->pad_end);
        const dnnl::convolution_backward_data::primitive_desc description(operation, StrictAttributes(), OnednnEngine(),
                                                                          Hint(*shape, type));
        Attempt attempt;
        attempt.implementation = description.impl_info_str();
        attempt.defect = DefectOf(attempt.implementation, *shape, candidate.layout);
        attempt.staged.primitive = dnnl::convolution_backward_data(description);
        attempt.staged.scratchpad = description.scratchpad_desc();
        attempt.staged.inputs = {
            {DNNL_ARG_DIFF_DST, spec.inputs[0].dtype, shape->Y(type, shape->stored_layout),
             description.diff_dst_desc()},
            {DNNL_ARG_WEIGHTS, spec.inputs[1].dtype, shape->Weight(type), description.weights_desc()}};
        attempt.staged.output = {DNNL_ARG_DIFF_SRC, spec.outputs[0].dtype, shape->X(result_type, shape->stored_layout),
                                 description.diff_src_desc()};
        return attempt;
      });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateConv2dGradWeight(const KernelSpec& spec) {
  if (spec.inputs.size() != 2 || spec.outputs.size() != 1) {
    return absl::InvalidArgumentError("conv2d_grad_weight takes x and dy to dweight");
  }
  absl::StatusOr<ConvolutionShape> shape =
      ShapeOf(spec, spec.inputs[0].shape, spec.outputs[0].shape, spec.inputs[1].shape);
  if (!shape.ok()) return shape.status();
  if (const auto narrow = NarrowConvolution::Of(spec.attributes, spec.inputs[0].shape, spec.outputs[0].shape);
      narrow && narrow->TakesGradWeight()) {
    return MakeNarrowConv2dGradWeight(spec, *narrow);
  }

  return FirstFastCandidate(
      spec, Candidates(spec.inputs[0].dtype, spec.inputs[1].dtype), [&](const Candidate& candidate) {
        const memory::data_type type = candidate.type;
        // Sums over the batch and the image are kept in f32 and rounded once, at the end.
        constexpr auto kSum = memory::data_type::f32;
        const dnnl::convolution_backward_weights::desc operation(
            dnnl::algorithm::convolution_direct, shape->X(type, candidate.layout), shape->AnyWeight(kSum),
            shape->Y(type, candidate.layout), shape->strides, shape->dilations, shape->pad_begin, shape->pad_end);
        const dnnl::convolution_backward_weights::primitive_desc description(operation, StrictAttributes(),
                                                                             OnednnEngine(), Hint(*shape, type));
        Attempt attempt;
        attempt.implementation = description.impl_info_str();
        attempt.defect = DefectOf(attempt.implementation, *shape, candidate.layout);
        attempt.staged.primitive = dnnl::convolution_backward_weights(description);
        attempt.staged.scratchpad = description.scratchpad_desc();
        attempt.staged.inputs = {
            {DNNL_ARG_SRC, spec.inputs[0].dtype, shape->X(type, shape->stored_layout), description.src_desc()},
            {DNNL_ARG_DIFF_DST, spec.inputs[1].dtype, shape->Y(type, shape->stored_layout),
             description.diff_dst_desc()}};
        attempt.staged.output = {DNNL_ARG_DIFF_WEIGHTS, spec.outputs[0].dtype, shape->Weight(kSum),
                                 description.diff_weights_desc()};
        return attempt;
      });
}

}  // namespace

void RegisterConv2d(Registry& registry) {
  registry.Add("conv2d", CreateConv2d);
  registry.Add("conv2d_grad_input", CreateConv2dGradInput);
  registry.Add("conv2d_grad_weight", CreateConv2dGradWeight);
}

}  // namespace mpc::cpu
