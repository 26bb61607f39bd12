// attention, packed_attention and their gradients on cuDNN's fused kernels, in f16 and bf16. Scores, softmax and sums
// are f32. Probabilities are rounded before their product, as the operation says. cuDNN rounds them before it divides
// by their sum, with the same relative error. Its statistic is the operation's log_sum_exp: the natural logarithm of
// the sum of exponentials of scaled scores.
#include <cudnn_frontend.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/attention_geometry.h"
#include "kernels/cuda/library/cudnn_graph.h"
#include "kernels/cuda/library/cudnn_kernel.h"
#include "kernels/cuda/registry.h"

namespace mpc::cuda {
namespace {

namespace fe = cudnn_frontend;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

constexpr std::size_t kAlignment = 256;
std::size_t Aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// The operation on `samples` of its samples: heads of f16 or bf16 whose rows lie where the operation has them.
struct Form : AttentionForm {
  DType dtype;
  std::int64_t samples;

  Shape query_shape() const { return Extents(geometry.rows, geometry.width); }
  Shape key_shape() const { return Extents(geometry.columns, geometry.width); }
  Shape value_shape() const { return Extents(geometry.columns, geometry.value_width); }
  Shape y_shape() const { return Extents(geometry.rows, geometry.value_width); }
  Shape statistic() const { return Extents(geometry.rows, 1); }
  std::size_t BytesOf(const Shape& shape) const { return TensorSpec{dtype, shape}.bytes(); }

  /// The address of the first row of sample `sample` in the tensor at `base`.
  void* At(const void* base, const HeadRows& rows, std::int64_t sample) const {
    const std::int64_t elements = rows.first + sample * rows.sample_stride;
    return static_cast<std::byte*>(const_cast<void*>(base)) + static_cast<std::size_t>(elements) * ElementSize(dtype);
  }

 private:
  Shape Extents(std::int64_t rows, std::int64_t width) const {
    return {samples, geometry.heads_per_sample, rows, width};
  }
};

/// Errors: UNIMPLEMENTED for what the project's own kernel takes.
absl::StatusOr<Form> FormOf(const KernelSpec& spec) {
  Form form{AttentionForm::Create(spec), DType::kF32, 0};
  const AttentionGeometry& geometry = form.geometry;
  form.dtype = spec.inputs[form.query.index].dtype;
  form.samples = geometry.batch;
  // A mask is one byte a position here and an additive bias of a floating type in cuDNN.
  if (geometry.has_mask || !IsLowPrecision(form.dtype)) return UnsupportedTypes(spec);
  for (const HeadTensor* tensor : {&form.key, &form.value}) {
    if (spec.inputs[tensor->index].dtype != form.dtype) return UnsupportedTypes(spec);
  }
  for (const Shape& shape : {form.query_shape(), form.key_shape(), form.value_shape()}) {
    // Rows of heads are read in pieces of 16 bytes.
    if (NumElements(shape) < 1 || shape[3] % 8 != 0) return UnsupportedTypes(spec);
  }
  // With fewer columns than rows the first rows may read nothing: the operation gives them 0 and -inf.
  if (geometry.causal && geometry.columns < geometry.rows) return UnsupportedTypes(spec);
  return form;
}

Shape StridesOf(const HeadRows& rows) { return {rows.sample_stride, rows.head_stride, rows.row_stride, 1}; }

Tensor Input(fe::graph::Graph& graph, std::int64_t id, const Shape& shape, const Shape& strides) {
  return graph.tensor(fe::graph::Tensor_attributes().set_uid(id).set_dim(shape).set_stride(strides));
}

void Output(const Tensor& tensor, std::int64_t id, const Shape& shape, const Shape& strides) {
  tensor->set_output(true).set_uid(id).set_dim(shape).set_stride(strides);
}

/// Row t reads columns s <= t + S - T.
template <typename Attributes>
void SetCausal(Attributes& attributes, const Form& form) {
  if (!form.geometry.causal) return;
  if (form.geometry.rows == form.geometry.columns) {
    attributes.set_causal_mask(true);
  } else {
    attributes.set_causal_mask_bottom_right(true);
  }
}

/// Tensors: query, key, value, y and, with `statistics`, log_sum_exp.
CudnnGraph::Operations Forward(const Form& form, bool statistics) {
  return [form, statistics](fe::graph::Graph& graph) {
    auto attributes = fe::graph::SDPA_attributes().set_name("attention").set_generate_stats(statistics);
    attributes.set_attn_scale(form.geometry.scale);
    SetCausal(attributes, form);
    auto [y, log_sum_exp] = [&] {
      auto outputs = graph.sdpa(Input(graph, 1, form.query_shape(), StridesOf(form.query.rows)),
                                Input(graph, 2, form.key_shape(), StridesOf(form.key.rows)),
                                Input(graph, 3, form.value_shape(), StridesOf(form.value.rows)), attributes);
      return std::pair(outputs[0], outputs[1]);
    }();
    Output(y, 4, form.y_shape(), StridesOf(form.y));
    if (!statistics) return;
    Output(log_sum_exp, 5, form.statistic(), RowMajorStrides(form.statistic()));
    log_sum_exp->set_data_type(fe::DataType_t::FLOAT);
  };
}

/// Tensors: query, key, value, y, dy, log_sum_exp, dquery, dkey, dvalue. The order of sums is fixed, which costs
/// workspace.
CudnnGraph::Operations Backward(const Form& form) {
  return [form](fe::graph::Graph& graph) {
    auto attributes = fe::graph::SDPA_backward_attributes().set_name("attention_grad");
    attributes.set_attn_scale(form.geometry.scale).set_deterministic_algorithm(true);
    SetCausal(attributes, form);
    const Shape query = StridesOf(form.query.rows), key = StridesOf(form.key.rows), value = StridesOf(form.value.rows);
    const Shape y = StridesOf(form.y);
    const Tensor log_sum_exp = Input(graph, 6, form.statistic(), RowMajorStrides(form.statistic()));
    log_sum_exp->set_data_type(fe::DataType_t::FLOAT);
    const auto gradients =
        graph.sdpa_backward(Input(graph, 1, form.query_shape(), query), Input(graph, 2, form.key_shape(), key),
                            Input(graph, 3, form.value_shape(), value), Input(graph, 4, form.y_shape(), y),
                            Input(graph, 5, form.y_shape(), y), log_sum_exp, attributes);
    // A gradient lies in its tensor as its operand does.
    Output(gradients[0], 7, form.query_shape(), query);
    Output(gradients[1], 8, form.key_shape(), key);
    Output(gradients[2], 9, form.value_shape(), value);
  };
}

class AttentionKernel : public CudnnKernel {
 public:
  AttentionKernel(const Form& form, std::unique_ptr<CudnnGraph> graph, std::size_t y_bytes, bool statistics)
      : form_(form), graph_(std::move(graph)), y_bytes_(y_bytes), statistics_(statistics) {}
  std::size_t workspace_bytes() const override { return y_bytes_ + graph_->workspace_bytes(); }
  std::string choice() const override { return graph_->engine(); }
  std::vector<std::string> numerical_notes() const override { return graph_->notes(); }
  absl::Status BuildPlans() override { return graph_->Build(); }

  absl::Status Enqueue(const KernelOperands& operands, LaunchQueue& queue) override {
    std::vector<void*> tensors;
    for (const HeadTensor* tensor : {&form_.query, &form_.key, &form_.value}) {
      tensors.push_back(form_.At(operands.inputs[tensor->index], tensor->rows, 0));
    }
    tensors.push_back(y_bytes_ == 0 ? operands.outputs[0] : operands.workspace);
    if (statistics_) tensors.push_back(operands.outputs[1]);
    return graph_->Run(tensors, static_cast<std::byte*>(operands.workspace) + y_bytes_, queue);
  }

 private:
  Form form_;
  std::unique_ptr<CudnnGraph> graph_;
  std::size_t y_bytes_;  ///< bytes of y in the workspace, where nothing uses it
  bool statistics_;
};

absl::StatusOr<std::unique_ptr<Kernel>> CreateAttention(const KernelSpec& spec, const KernelContext& context) {
  absl::StatusOr<Form> form = FormOf(spec);
  if (!form.ok()) return form.status();
  if (spec.uses(0) && spec.outputs[0].dtype != form->dtype) return UnsupportedTypes(spec);
  const bool statistics = spec.outputs.size() > 1 && spec.uses(1);
  absl::StatusOr<std::unique_ptr<CudnnGraph>> graph =
      CudnnGraph::Create(context, form->dtype, Forward(*form, statistics));
  if (!graph.ok()) return graph.status();
  if (absl::Status status = (*graph)->Choose(context.choice); !status.ok()) return status;
  const std::size_t y_bytes = spec.uses(0) ? 0 : Aligned(form->BytesOf(form->y_shape()));
  return std::make_unique<AttentionKernel>(*form, *std::move(graph), y_bytes, statistics);
}

/// "forward+backward+parts", or "backward+parts" where y is stored: engines, and into how many parts the batch is
/// divided.
struct GradientChoice {
  std::string forward, backward;
  std::int64_t parts = 1;

  std::string ToString() const { return absl::StrCat(forward, forward.empty() ? "" : "+", backward, "+", parts); }
};

absl::StatusOr<GradientChoice> ParseGradientChoice(const KernelSpec& spec, const Form& form, const std::string& text) {
  std::vector<std::string> words = absl::StrSplit(text, '+');
  if (form.has_stored_y) words.insert(words.begin(), "");
  GradientChoice choice;
  if (words.size() != 3 || words[0].empty() != form.has_stored_y || words[1].empty() ||
      !absl::SimpleAtoi(words[2], &choice.parts) || choice.parts < 1 || form.samples % choice.parts != 0) {
    const char* const written = form.has_stored_y ? "\"eng6_k24=26+4\": backward engine"
                                                  : "\"eng2_k24=7+eng6_k24=26+4\": forward engine, backward engine";
    return absl::FailedPreconditionError(absl::StrCat("the chosen form of mpc.", spec.name, " is written ", written,
                                                      ", parts that divide the batch of ", form.samples, "; got \"",
                                                      text, "\""));
  }
  choice.forward = words[0];
  choice.backward = words[1];
  return choice;
}

/// cuDNN derives delta, the row sums of dp * p, from y. Where y is no operand of the operation, it is computed again
/// with the engine that the forward operation would use. That is about a quarter of the gradient's work. A fixed order
/// of sums costs cuDNN workspace in proportion to the batch. So a large batch goes through in parts that share the
/// workspace.
class AttentionGradKernel : public CudnnKernel {
 public:
  /// `form` describes the whole batch. Errors: UNIMPLEMENTED where one part of `choice.parts` needs more workspace than
  /// allowed.
  static absl::StatusOr<std::unique_ptr<AttentionGradKernel>> Create(const Form& form, const KernelSpec& spec,
                                                                     const KernelContext& context,
                                                                     const GradientChoice& choice) {
    Form part = form;
    part.samples /= choice.parts;
    auto kernel = std::unique_ptr<AttentionGradKernel>(new AttentionGradKernel(part, choice.parts));
    kernel->scratch_ = form.has_stored_y ? 0 : Aligned(part.BytesOf(part.y_shape()));
    const std::pair<const HeadTensor*, Shape> results[] = {
        {&part.dquery, part.query_shape()}, {&part.dkey, part.key_shape()}, {&part.dvalue, part.value_shape()}};
    for (std::size_t i = 0; i < 3; ++i) {
      const auto& [tensor, shape] = results[i];
      kernel->is_used_[i] = spec.uses(tensor->index);
      if (kernel->is_used_[i]) continue;
      kernel->unused_[i] = kernel->scratch_;
      kernel->scratch_ += Aligned(part.BytesOf(shape));
    }
    // Parts begin inside tensors: cuDNN is told of 16-byte alignment.
    if (choice.parts > 1 && kernel->StatisticBytes() % 16 != 0) return UnsupportedTypes(spec);
    KernelContext rest = context;
    if (kernel->scratch_ > rest.workspace_cap) return UnsupportedTypes(spec);
    rest.workspace_cap -= kernel->scratch_;
    const auto choose = [&](const CudnnGraph::Operations& operations, const std::string& engine,
                            std::unique_ptr<CudnnGraph>& graph) {
      absl::StatusOr<std::unique_ptr<CudnnGraph>> made = CudnnGraph::Create(rest, form.dtype, operations);
      if (!made.ok()) return made.status();
      graph = *std::move(made);
      return graph->Choose(engine);
    };
    absl::Status status;
    if (!form.has_stored_y) status = choose(Forward(part, false), choice.forward, kernel->forward_);
    if (status.ok()) status = choose(Backward(part), choice.backward, kernel->backward_);
    if (!status.ok()) return status;
    return kernel;
  }

  std::size_t workspace_bytes() const override {
    return scratch_ + std::max(forward_ ? forward_->workspace_bytes() : 0, backward_->workspace_bytes());
  }
  std::string choice() const override { return With(backward_->engine()).ToString(); }
  std::vector<std::string> numerical_notes() const override {
    std::vector<std::string> notes = forward_ ? forward_->notes() : std::vector<std::string>();
    for (std::string& note : backward_->notes()) notes.push_back(std::move(note));
    return notes;
  }
  absl::Status BuildPlans() override {
    absl::Status status = forward_ ? forward_->Build() : absl::OkStatus();
    return status.ok() ? backward_->Build() : status;
  }
  /// Backward engines for the same parts, in the form of choices.
  absl::StatusOr<std::vector<std::string>> Alternatives(std::size_t limit) {
    absl::StatusOr<std::vector<std::string>> engines = backward_->Engines(limit);
    if (!engines.ok()) return engines.status();
    for (std::string& engine : *engines) engine = With(engine).ToString();
    return engines;
  }

  absl::Status Enqueue(const KernelOperands& operands, LaunchQueue& queue) override {
    auto* const workspace = static_cast<std::byte*>(operands.workspace);
    void* const scratch = workspace + scratch_;
    for (std::int64_t part = 0; part < parts_; ++part) {
      const std::int64_t sample = part * part_.samples;
      const auto input = [&](std::size_t index, const HeadRows& rows) {
        return part_.At(operands.inputs[index], rows, sample);
      };
      void* const query = input(part_.query.index, part_.query.rows);
      void* const key = input(part_.key.index, part_.key.rows);
      void* const value = input(part_.value.index, part_.value.rows);
      void* const y = part_.has_stored_y ? input(part_.stored_y, part_.y) : workspace;
      if (forward_) {
        if (absl::Status status = forward_->Run({query, key, value, y}, scratch, queue); !status.ok()) return status;
      }
      const auto* const statistics = static_cast<const std::byte*>(operands.inputs[part_.log_sum_exp]);
      std::vector<void*> tensors = {
          query,
          key,
          value,
          y,
          input(part_.dy, part_.y),
          const_cast<std::byte*>(statistics + static_cast<std::size_t>(part) * StatisticBytes())};
      const HeadTensor* const results[] = {&part_.dquery, &part_.dkey, &part_.dvalue};
      for (std::size_t i = 0; i < 3; ++i) {
        tensors.push_back(is_used_[i] ? part_.At(operands.outputs[results[i]->index], results[i]->rows, sample)
                                      : workspace + unused_[i]);
      }
      if (absl::Status status = backward_->Run(tensors, scratch, queue); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  AttentionGradKernel(const Form& part, std::int64_t parts) : part_(part), parts_(parts) {}

  GradientChoice With(std::string backward) const {
    return {forward_ ? forward_->engine() : "", std::move(backward), parts_};
  }
  /// Bytes of a part of log_sum_exp.
  std::size_t StatisticBytes() const { return TensorSpec{DType::kF32, part_.statistic()}.bytes(); }

  Form part_;
  std::int64_t parts_;
  std::unique_ptr<CudnnGraph> forward_;  ///< graph of one part; null where y is stored
  std::unique_ptr<CudnnGraph> backward_;
  bool is_used_[3] = {true, true, true};
  std::size_t unused_[3] = {0, 0, 0};  ///< offsets of results that nothing uses
  std::size_t scratch_ = 0;            ///< offset of what the engines need: behind y and unused results
};

absl::StatusOr<std::unique_ptr<AttentionGradKernel>> MakeAttentionGrad(const KernelSpec& spec,
                                                                       const KernelContext& context) {
  absl::StatusOr<Form> form = FormOf(spec);
  if (!form.ok()) return form.status();
  if (spec.inputs[form->dy].dtype != form->dtype) return UnsupportedTypes(spec);
  if (form->has_stored_y && spec.inputs[form->stored_y].dtype != form->dtype) return UnsupportedTypes(spec);
  for (std::size_t i = 0; i < spec.outputs.size(); ++i) {
    if (spec.uses(i) && spec.outputs[i].dtype != form->dtype) return UnsupportedTypes(spec);
  }
  if (!context.choice.empty()) {
    absl::StatusOr<GradientChoice> choice = ParseGradientChoice(spec, *form, context.choice);
    if (!choice.ok()) return choice.status();
    absl::StatusOr<std::unique_ptr<AttentionGradKernel>> kernel =
        AttentionGradKernel::Create(*form, spec, context, *choice);
    if (!absl::IsUnimplemented(kernel.status())) return kernel;
    return absl::FailedPreconditionError(kernel.status().message());
  }
  // Take as few parts as fit.
  absl::StatusOr<std::unique_ptr<AttentionGradKernel>> kernel = UnsupportedTypes(spec);
  for (std::int64_t parts = 1; parts <= form->samples && absl::IsUnimplemented(kernel.status()); ++parts) {
    if (form->samples % parts == 0) kernel = AttentionGradKernel::Create(*form, spec, context, {"", "", parts});
  }
  return kernel;
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateAttentionGrad(const KernelSpec& spec, const KernelContext& context) {
  return MakeAttentionGrad(spec, context);
}

constexpr std::size_t kCandidates = 8;

absl::StatusOr<std::vector<std::string>> AttentionCandidates(const KernelSpec& spec, const KernelContext& context) {
  absl::StatusOr<Form> form = FormOf(spec);
  if (!form.ok()) return form.status();
  absl::StatusOr<std::unique_ptr<CudnnGraph>> graph =
      CudnnGraph::Create(context, form->dtype, Forward(*form, spec.outputs.size() > 1 && spec.uses(1)));
  if (!graph.ok()) return graph.status();
  return (*graph)->Engines(kCandidates);
}

/// The heuristic's forward engine and number of parts, with each backward engine.
absl::StatusOr<std::vector<std::string>> AttentionGradCandidates(const KernelSpec& spec, const KernelContext& context) {
  KernelContext heuristic = context;
  heuristic.choice.clear();
  absl::StatusOr<std::unique_ptr<AttentionGradKernel>> kernel = MakeAttentionGrad(spec, heuristic);
  if (!kernel.ok()) return kernel.status();
  return (*kernel)->Alternatives(kCandidates);
}

}  // namespace

void RegisterCudnnAttention(Registry& registry) {
  registry.AddLibrary("attention", CreateAttention, AttentionCandidates);
  registry.AddLibrary("attention_grad", CreateAttentionGrad, AttentionGradCandidates);
  registry.AddLibrary("packed_attention", CreateAttention, AttentionCandidates);
  registry.AddLibrary("packed_attention_grad", CreateAttentionGrad, AttentionGradCandidates);
}

}  // namespace mpc::cuda
