// conv2d, conv2d_grad_input and conv_transpose2d: window sums, directly for few channels, else as matrix products.
#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/convolution.h"
#include "kernels/cuda/direct_window_sum.h"
#include "kernels/cuda/split_product.h"
#include "kernels/cuda/staged_window_sum.h"
#include "kernels/cuda/window_sum.h"
#include "kernels/known_attributes.h"

namespace mpc::cuda {

absl::StatusOr<ConvolutionShape> ResolveConvolution(const KernelSpec& spec, const Shape& x, const Shape& weight,
                                                    const Shape& y) {
  const DataFormat format = spec.attributes.Get(attribute::kDataFormat);
  const std::int64_t groups = spec.attributes.Get(attribute::kGroups);
  const auto describe = [&](absl::string_view problem) {
    return absl::StrCat(spec.name, ": ", problem, "; x is ", ShapeToString(x), " (", std::string(NameOf(format)),
                        "), weight ", ShapeToString(weight), ", y ", ShapeToString(y), ", groups ", groups);
  };
  const auto invalid = [&](absl::string_view problem) { return absl::InvalidArgumentError(describe(problem)); };
  if (x.size() != 4 || weight.size() != 4 || y.size() != 4) return invalid("x, weight and y have rank 4");
  const auto axis = [&](const Shape& shape, int at) { return shape[static_cast<std::size_t>(at)]; };
  const ImageAxes axes = AxesOf(format);
  const std::int64_t channels = axis(x, axes.channel);
  if (groups < 1 || channels % groups != 0 || weight[0] % groups != 0 || weight[1] != channels / groups) {
    return invalid("weight is [O, C / groups, kh, kw] with groups dividing O and C");
  }
  absl::StatusOr<Window> window =
      ResolveWindow(spec.attributes, {axis(x, axes.height), axis(x, axes.width)}, {weight[2], weight[3]});
  if (!window.ok()) return invalid(window.status().message());
  if (axis(y, axes.batch) != axis(x, axes.batch) || axis(y, axes.channel) != weight[0] ||
      axis(y, axes.height) != window->output[0] || axis(y, axes.width) != window->output[1]) {
    return invalid(absl::StrCat("y has ", weight[0], " channels of ", window->output[0], "x", window->output[1]));
  }
  // Positions are counted in int, and a block's may lie beyond the last one.
  constexpr std::int64_t kLargest = std::numeric_limits<std::int32_t>::max() - 1024;
  const auto pixels = [&](const std::array<std::int64_t, 2>& image) {
    return NumElements({axis(x, axes.batch), image[0] + window->pad_begin[0] + window->pad_end[0],
                        image[1] + window->pad_begin[1] + window->pad_end[1]});
  };
  if (std::max({pixels(window->input), pixels(window->output), NumElements({weight[1], weight[2], weight[3]}),
                NumElements({weight[0], weight[2], weight[3]}), channels}) > kLargest) {
    return absl::UnimplementedError(describe("pixels, channels and window positions on CUDA are less than 2^31"));
  }
  const bool channels_last = format == DataFormat::kNHWC;
  return ConvolutionShape{axis(x, axes.batch),
                          groups,
                          channels / groups,
                          weight[0] / groups,
                          *window,
                          ImageLayout::Create(channels_last, channels, window->input[0] * window->input[1]),
                          ImageLayout::Create(channels_last, weight[0], window->output[0] * window->output[1])};
}

namespace {

/// The sum of x's gradient from y's: each pixel reads the results whose windows cover it.
WindowSum Backward(const ConvolutionShape& shape) {
  const Window& window = shape.window;
  const auto axis = [&](std::size_t i) {
    return SourceAxis{1, static_cast<int>(window.pad_begin[i]), -static_cast<int>(window.dilation[i]),
                      static_cast<int>(window.stride[i]), static_cast<int>(window.output[i])};
  };
  return {static_cast<int>(shape.batch),
          static_cast<int>(shape.groups),
          static_cast<int>(shape.sources),
          static_cast<int>(shape.results),
          static_cast<int>(window.kernel[0]),
          static_cast<int>(window.kernel[1]),
          static_cast<int>(window.input[1]),
          static_cast<int>(window.output[1]),
          axis(0),
          axis(1),
          shape.x,
          shape.y,
          shape.taps(),
          shape.sources * shape.taps()};
}

/// A result that reads few products, or a group of few results, leaves most of a tile empty.
bool PrefersDirect(const WindowSum& sum) {
  constexpr int kFewResults = 16;
  constexpr std::int64_t kFewTerms = 64;
  const std::int64_t terms = static_cast<std::int64_t>(sum.sources) * sum.taps();
  return sum.taps() <= kMostDirectTaps && (sum.results <= kFewResults || terms <= kFewTerms);
}

absl::Status RunDirect(LaunchQueue& queue, const DirectPlan& plan, const WindowSum& sum, const Source& source,
                       const Source& weight, const WindowResult& result) {
  if (plan.results == 16) return EnqueueDirect<16>(queue, plan, sum, source, weight, result);
  if (plan.results == 8) return EnqueueDirect<8>(queue, plan, sum, source, weight, result);
  return EnqueueDirect<4>(queue, plan, sum, source, weight, result);
}

/// The operands are the source, the weight and, if `has_bias`, the bias.
absl::StatusOr<std::unique_ptr<Kernel>> CreateWindowSum(const KernelSpec& spec, const KernelContext& context,
                                                        const WindowSum& sum, Activation activation) {
  const bool has_bias = spec.inputs.size() > 2;
  const Source source{nullptr, spec.inputs[0].dtype};
  const Source weight{nullptr, spec.inputs[1].dtype};
  const WindowResult result{{nullptr, spec.outputs[0].dtype},
                            {nullptr, has_bias ? spec.inputs[2].dtype : DType::kF32},
                            activation,
                            sum.result,
                            sum.results};
  const auto bind = [=](const KernelOperands& operands) {
    WindowResult bound = result;
    bound.y.data = operands.outputs[0];
    bound.bias.data = has_bias ? operands.inputs[2] : nullptr;
    return bound;
  };
  if (PrefersDirect(sum)) {
    if (const std::optional<StagedPlan> staged = PlanStaged(context.target, sum)) {
      return MakeKernel([=, plan = *staged](const KernelOperands& operands, LaunchQueue& queue) {
        return EnqueueStaged(queue, plan, sum, {operands.inputs[0], source.dtype}, {operands.inputs[1], weight.dtype},
                             bind(operands));
      });
    }
    return MakeKernel([=, plan = PlanDirect(context.target, sum)](const KernelOperands& operands, LaunchQueue& queue) {
      return RunDirect(queue, plan, sum, {operands.inputs[0], source.dtype}, {operands.inputs[1], weight.dtype},
                       bind(operands));
    });
  }
  const std::int64_t depth = static_cast<std::int64_t>(sum.sources) * sum.taps();
  const ProductPlan plan =
      PlanProduct(context.target, context.workspace_cap, sum.groups, sum.results, sum.pixels(), depth);
  const bool vectors = sum.source.channel_stride == 1 && sum.sources % kVector == 0;
  return MakeKernel(
      [=](const KernelOperands& operands, LaunchQueue& queue) {
        const WindowWeights left{{operands.inputs[1], weight.dtype}, sum.group_weights(), sum.weight_result_stride,
                                 sum.weight_source_stride,           sum.results,         sum.sources};
        const WindowSources right{{operands.inputs[0], source.dtype}, sum, vectors};
        return EnqueueProduct(queue, plan, left, right, bind(operands), operands.workspace);
      },
      plan.workspace_bytes());
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateConv2d(const KernelSpec& spec, const KernelContext& context) {
  absl::StatusOr<ConvolutionShape> shape =
      ResolveConvolution(spec, spec.inputs[0].shape, spec.inputs[1].shape, spec.outputs[0].shape);
  if (!shape.ok()) return shape.status();
  return CreateWindowSum(spec, context, ForwardSum(*shape), spec.attributes.Get(attribute::kActivation));
}

/// conv2d_grad_input, and conv_transpose2d, which is the same with a bias.
absl::StatusOr<std::unique_ptr<Kernel>> CreateTransposed(const KernelSpec& spec, const KernelContext& context) {
  absl::StatusOr<ConvolutionShape> shape =
      ResolveConvolution(spec, spec.outputs[0].shape, spec.inputs[1].shape, spec.inputs[0].shape);
  if (!shape.ok()) return shape.status();
  return CreateWindowSum(spec, context, Backward(*shape), Activation::kNone);
}

}  // namespace

void RegisterConvolution(Registry& registry) {
  registry.Add("conv2d", CreateConv2d);
  registry.Add("conv2d_grad_input", CreateTransposed);
  registry.Add("conv2d_grad_weight", CreateConv2dGradWeight);
  registry.Add("conv_transpose2d", CreateTransposed);
}

}  // namespace mpc::cuda
