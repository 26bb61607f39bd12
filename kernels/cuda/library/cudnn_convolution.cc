// conv2d, alone and with statistics of its result, its derivatives and conv_transpose2d on cuDNN, with f32 sums and one
// rounding. Operands and result have one type. Filters lie as OIHW everywhere. Where images are channels-last, cuDNN
// gets filters packed as OHWI. A kernel of this project packs them in every step, since weights change in every step.
#include <cudnn_frontend.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/convolution_part.h"
#include "kernels/cuda/channel_statistics.h"
#include "kernels/cuda/library/cudnn_graph.h"
#include "kernels/cuda/library/cudnn_kernel.h"
#include "kernels/cuda/registry.h"
#include "kernels/known_attributes.h"
#include "kernels/narrow_convolution.h"
#include "kernels/window.h"

namespace mpc::cuda {
namespace {

namespace fe = cudnn_frontend;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

/// Extents and strides in cuDNN's order: image, channel, row, column, whatever the storage.
struct Layout {
  Shape extents;
  Shape strides;
};

/// A convolution of x to y, whichever of the three is computed.
struct Geometry {
  Layout x, weight, y;
  Window window;
  bool pack_weight;  ///< OHWI is another order of elements than OIHW
};

Layout ImageLayout(const Shape& stored, const ImageAxes& axes) {
  const Shape strides = RowMajorStrides(stored);
  Layout layout;
  for (int axis : {axes.batch, axes.channel, axes.height, axes.width}) {
    layout.extents.push_back(stored[axis]);
    layout.strides.push_back(strides[axis]);
  }
  return layout;
}

absl::StatusOr<Geometry> GeometryOf(const KernelSpec& spec, const Shape& x, const Shape& weight, const Shape& y) {
  const DataFormat format = spec.attributes.Get(attribute::kDataFormat);
  for (const Shape* shape : {&x, &weight, &y}) {
    if (shape->size() != 4 || NumElements(*shape) < 1) return UnsupportedTypes(spec);
  }
  const ImageAxes axes = AxesOf(format);
  absl::StatusOr<Window> window =
      ResolveWindow(spec.attributes, {x[axes.height], x[axes.width]}, {weight[2], weight[3]});
  if (!window.ok()) return window.status();
  if (y[axes.height] != window->output[0] || y[axes.width] != window->output[1]) return UnsupportedTypes(spec);
  Geometry geometry{ImageLayout(x, axes), {weight, RowMajorStrides(weight)}, ImageLayout(y, axes), *window, false};
  if (format == DataFormat::kNHWC) {
    const std::int64_t inputs = weight[1], height = weight[2], width = weight[3];
    geometry.weight.strides = {inputs * height * width, 1, width * inputs, inputs};
    geometry.pack_weight = inputs > 1 && height * width > 1;
  }
  return geometry;
}

/// An operation in cuDNN's terms.
struct Form {
  enum class Kind { kForward, kGradInput, kGradWeight } kind;
  Geometry geometry;
  DType dtype;             ///< type of operands and result, not of the bias
  const TensorSpec* bias;  ///< null: none
  bool relu = false;
  bool statistics = false;  ///< sums of the result and of its squares a channel, f32
};

/// `spec` as cuDNN computes it, and the bytes that keep a result which nothing else uses.
struct Computed {
  KernelSpec spec;
  std::size_t kept_bytes = 0;
};

/// Errors: UNIMPLEMENTED for a result that nothing uses but in conv2d_statistics, whose sums need it.
absl::StatusOr<Computed> ComputedBy(const KernelSpec& spec) {
  if (spec.uses(0)) return Computed{spec};
  if (spec.name != "conv2d_statistics") return UnsupportedTypes(spec);
  absl::StatusOr<ConvolutionPart> part = ConvolutionPartOf(spec);
  if (!part.ok()) return part.status();
  Computed computed{spec, part->kept_bytes};
  computed.spec.outputs[0] = part->y();
  return computed;
}

/// Errors: UNIMPLEMENTED for what the project's own kernel takes.
absl::StatusOr<Form> FormOf(const KernelSpec& spec) {
  const TensorSpec& first = spec.inputs[0];
  const TensorSpec& second = spec.inputs[1];
  const TensorSpec& result = spec.outputs[0];
  // Operands of several types would need a widened copy, and cuDNN has no filter gradient in f32 of low operands.
  if (second.dtype != first.dtype || result.dtype != first.dtype) return UnsupportedTypes(spec);
  Form form{Form::Kind::kForward, {}, first.dtype, spec.inputs.size() > 2 ? &spec.inputs[2] : nullptr};
  absl::StatusOr<Geometry> geometry;
  if (spec.name == "conv2d") {
    geometry = GeometryOf(spec, first.shape, second.shape, result.shape);
    // cuDNN's relu drops NaN. Ours, run on the rounded result, keeps it and gives the same bits: relu commutes with
    // rounding. Other activations do not.
    const Activation activation = spec.attributes.Get(attribute::kActivation);
    form.relu = activation == Activation::kRelu;
    if (!form.relu && activation != Activation::kNone) return UnsupportedTypes(spec);
  } else if (spec.name == "conv2d_statistics") {
    geometry = GeometryOf(spec, first.shape, second.shape, result.shape);
    form.statistics = true;
  } else if (spec.name == "conv2d_grad_weight") {
    form.kind = Form::Kind::kGradWeight;
    geometry = GeometryOf(spec, first.shape, result.shape, second.shape);
  } else {  // conv2d_grad_input and conv_transpose2d
    form.kind = Form::Kind::kGradInput;
    geometry = GeometryOf(spec, result.shape, second.shape, first.shape);
  }
  if (!geometry.ok()) return geometry.status();
  form.geometry = *std::move(geometry);
  return form;
}

bool IsSmallAndNarrow(const Form& form) {
  const Shape& weight = form.geometry.weight.extents;  // [O, C / groups, kh, kw]
  const Shape& y = form.geometry.y.extents;
  const std::int64_t groups = form.geometry.x.extents[1] / weight[1];
  return mpc::IsSmallAndNarrow(weight[0] / groups, weight[1], y[0] * y[2] * y[3] * NumElements(weight));
}

template <typename Attributes>
Attributes WindowAttributes(const Window& window) {
  const auto list = [](const std::array<std::int64_t, 2>& values) {
    return std::vector<std::int64_t>(values.begin(), values.end());
  };
  Attributes attributes;
  attributes.set_pre_padding(list(window.pad_begin))
      .set_post_padding(list(window.pad_end))
      .set_stride(list(window.stride))
      .set_dilation(list(window.dilation));
  return attributes;
}

/// Identifiers are positions among the operands and, behind them, the result and its two sums.
CudnnGraph::Operations OperationsOf(const Form& form) {
  return [form](fe::graph::Graph& graph) {
    const auto input = [&](std::int64_t id, const Layout& layout) {
      return graph.tensor(
          fe::graph::Tensor_attributes().set_uid(id).set_dim(layout.extents).set_stride(layout.strides));
    };
    const Geometry& geometry = form.geometry;
    Tensor result;
    const Layout* layout = nullptr;
    switch (form.kind) {
      case Form::Kind::kForward:
        layout = &geometry.y;
        result = graph.conv_fprop(input(1, geometry.x), input(2, geometry.weight),
                                  WindowAttributes<fe::graph::Conv_fprop_attributes>(geometry.window));
        break;
      case Form::Kind::kGradInput:
        layout = &geometry.x;
        result = graph.conv_dgrad(input(1, geometry.y), input(2, geometry.weight),
                                  WindowAttributes<fe::graph::Conv_dgrad_attributes>(geometry.window));
        break;
      case Form::Kind::kGradWeight:
        layout = &geometry.weight;
        result = graph.conv_wgrad(input(2, geometry.y), input(1, geometry.x),
                                  WindowAttributes<fe::graph::Conv_wgrad_attributes>(geometry.window));
        break;
    }
    result->set_dim(layout->extents).set_stride(layout->strides);
    std::int64_t next = 3;
    if (form.bias != nullptr) {
      const std::int64_t channels = layout->extents[1];
      const Tensor bias = graph.tensor(fe::graph::Tensor_attributes()
                                           .set_uid(next++)
                                           .set_dim({1, channels, 1, 1})
                                           .set_stride({channels, 1, channels, channels})
                                           .set_data_type(CudnnType(form.bias->dtype)));
      result = graph.pointwise(result, bias, fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::ADD));
      result->set_dim(layout->extents).set_stride(layout->strides);
    }
    result->set_output(true).set_uid(next++);
    if (!form.statistics) return;
    result->set_data_type(CudnnType(form.dtype));  // an intermediate would be f32
    for (const Tensor& sum : graph.genstats(result, fe::graph::Genstats_attributes())) {
      sum->set_output(true).set_uid(next++).set_data_type(fe::DataType_t::FLOAT);
    }
  };
}

/// Moves a filter between OIHW and OHWI by the project's own transpose.
absl::StatusOr<std::unique_ptr<Kernel>> TransposeFilter(const TensorSpec& from, const std::vector<std::int64_t>& axes,
                                                        const KernelContext& context) {
  KernelSpec spec{"transpose", {from}, {from}, {}, {{"permutation", axes}}};
  for (std::size_t i = 0; i < axes.size(); ++i) spec.outputs[0].shape[i] = from.shape[axes[i]];
  return CreateKernel(spec, context);
}

class ConvolutionKernel : public CudnnKernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(const Computed& computed, const KernelContext& context,
                                                        const Form& form) {
    const KernelSpec& spec = computed.spec;
    auto kernel = std::unique_ptr<ConvolutionKernel>(new ConvolutionKernel);
    kernel->kept_bytes_ = computed.kept_bytes;
    kernel->operands_ = spec.inputs.size();
    kernel->spec_ = spec;
    if (form.statistics) kernel->sums_bytes_ = Aligned(2 * form.geometry.y.extents[1] * sizeof(float));
    KernelContext parts = context;  // the context of kernels that have no choice of their own
    parts.choice.clear();
    if (form.geometry.pack_weight) {
      const bool computes_weight = form.kind == Form::Kind::kGradWeight;
      TensorSpec oihw = computes_weight ? spec.outputs[0] : spec.inputs[1];
      kernel->packed_bytes_ = Aligned(oihw.bytes());
      if (computes_weight) {
        const Shape& shape = oihw.shape;
        const TensorSpec ohwi{oihw.dtype, {shape[0], shape[2], shape[3], shape[1]}};
        absl::StatusOr<std::unique_ptr<Kernel>> unpack = TransposeFilter(ohwi, {0, 3, 1, 2}, parts);
        if (!unpack.ok()) return unpack.status();
        kernel->unpack_ = *std::move(unpack);
      } else {
        absl::StatusOr<std::unique_ptr<Kernel>> pack = TransposeFilter(oihw, {0, 2, 3, 1}, parts);
        if (!pack.ok()) return pack.status();
        kernel->pack_ = *std::move(pack);
      }
    }
    if (form.relu) {
      absl::StatusOr<std::unique_ptr<Kernel>> relu =
          CreateKernel({"relu", {spec.outputs[0]}, {spec.outputs[0]}, {}, {}}, parts);
      if (!relu.ok()) return relu.status();
      kernel->relu_ = *std::move(relu);
    }
    KernelContext graph_context = context;
    graph_context.workspace_cap -=
        std::min(context.workspace_cap, kernel->packed_bytes_ + kernel->kept_bytes_ + kernel->sums_bytes_);
    absl::StatusOr<std::unique_ptr<CudnnGraph>> graph =
        CudnnGraph::Create(graph_context, form.dtype, OperationsOf(form));
    if (!graph.ok()) return graph.status();
    if (absl::Status status = (*graph)->Choose(context.choice); !status.ok()) return status;
    kernel->graph_ = *std::move(graph);
    if (kernel->workspace_bytes() <= context.workspace_cap) return kernel;
    const std::string message = absl::StrCat("mpc.", spec.name, " on cuDNN needs ", kernel->workspace_bytes(),
                                             " bytes of workspace, allowed are ", context.workspace_cap);
    return context.choice.empty() ? absl::UnimplementedError(message) : absl::FailedPreconditionError(message);
  }

  /// The packed filter, a result that nothing uses, the sums, then the workspace that cuDNN and the transpose use one
  /// after the other.
  std::size_t workspace_bytes() const override {
    std::size_t scratch = graph_->workspace_bytes();
    for (const Kernel* part : {pack_.get(), unpack_.get()}) {
      if (part != nullptr) scratch = std::max(scratch, part->workspace_bytes());
    }
    return packed_bytes_ + kept_bytes_ + sums_bytes_ + scratch;
  }

  std::string choice() const override { return graph_->engine(); }
  std::vector<std::string> numerical_notes() const override { return graph_->notes(); }
  absl::Status BuildPlans() override { return graph_->Build(); }

  absl::Status Enqueue(const KernelOperands& operands, LaunchQueue& queue) override {
    void* const packed = operands.workspace;
    std::byte* const kept = static_cast<std::byte*>(operands.workspace) + packed_bytes_;
    auto* const sums = reinterpret_cast<float*>(kept + kept_bytes_);
    void* const scratch = kept + kept_bytes_ + sums_bytes_;
    std::vector<void*> tensors;
    for (std::size_t i = 0; i < operands_; ++i) tensors.push_back(const_cast<void*>(operands.inputs[i]));
    tensors.push_back(kept_bytes_ > 0 ? kept : operands.outputs[0]);
    if (pack_ != nullptr) {
      if (absl::Status status = pack_->Enqueue({&operands.inputs[1], &packed, scratch}, queue); !status.ok()) {
        return status;
      }
      tensors[1] = packed;
    }
    if (unpack_ != nullptr) tensors.back() = packed;
    const std::int64_t channels = sums_bytes_ > 0 ? spec_.inputs[1].shape[0] : 0;
    if (channels > 0) tensors.insert(tensors.end(), {sums, sums + channels});
    if (absl::Status status = graph_->Run(tensors, scratch, queue); !status.ok()) return status;
    if (unpack_ != nullptr) {
      const void* const from = packed;
      return unpack_->Enqueue({&from, operands.outputs, scratch}, queue);
    }
    if (channels > 0) {
      return FinishStatistics(queue, sums, sums + channels, channels,
                              StatisticsOf(spec_, spec_.outputs[0].shape, operands));
    }
    if (relu_ == nullptr) return absl::OkStatus();
    const void* const from = operands.outputs[0];
    return relu_->Enqueue({&from, operands.outputs, nullptr}, queue);
  }

 private:
  ConvolutionKernel() = default;

  static std::size_t Aligned(std::size_t bytes) {
    constexpr std::size_t kAlignment = 256;
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  std::size_t operands_ = 0;
  KernelSpec spec_;
  std::size_t packed_bytes_ = 0;
  std::size_t kept_bytes_ = 0;  ///< 0: the result is used
  std::size_t sums_bytes_ = 0;  ///< 0: no statistics
  std::unique_ptr<CudnnGraph> graph_;
  std::unique_ptr<Kernel> pack_, unpack_, relu_;  ///< null: not needed
};

absl::StatusOr<std::unique_ptr<Kernel>> CreateConvolution(const KernelSpec& spec, const KernelContext& context) {
  absl::StatusOr<Computed> computed = ComputedBy(spec);
  if (!computed.ok()) return computed.status();
  absl::StatusOr<Form> form = FormOf(computed->spec);
  if (!form.ok()) return form.status();
  if (context.choice.empty() && IsSmallAndNarrow(*form)) {
    return absl::UnimplementedError(absl::StrCat("mpc.", spec.name, " of few channels is left to the direct kernel"));
  }
  return ConvolutionKernel::Create(*computed, context, *form);
}

absl::StatusOr<std::vector<std::string>> ConvolutionCandidates(const KernelSpec& spec, const KernelContext& context) {
  constexpr std::size_t kCandidates = 16;
  absl::StatusOr<Computed> computed = ComputedBy(spec);
  if (!computed.ok()) return computed.status();
  absl::StatusOr<Form> form = FormOf(computed->spec);
  if (!form.ok()) return form.status();
  absl::StatusOr<std::unique_ptr<CudnnGraph>> graph = CudnnGraph::Create(context, form->dtype, OperationsOf(*form));
  if (!graph.ok()) return graph.status();
  return (*graph)->Engines(kCandidates);
}

}  // namespace

void RegisterCudnnConvolution(Registry& registry) {
  for (const char* name :
       {"conv2d", "conv2d_statistics", "conv2d_grad_input", "conv2d_grad_weight", "conv_transpose2d"}) {
    registry.AddLibrary(name, CreateConvolution, ConvolutionCandidates);
  }
}

}  // namespace mpc::cuda
