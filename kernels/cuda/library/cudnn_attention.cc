// attention and its gradient on cuDNN's fused kernels, in f16 and bf16. Scores, softmax and sums are f32. Probabilities
// are rounded before their product, as the operation says. cuDNN rounds them before it divides by their sum, with the
// same relative error. Its statistic is the operation's log_sum_exp: the natural logarithm of the sum of exponentials
// of scaled scores.
#include <cudnn_frontend.h>

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/cuda/library/cudnn_graph.h"
#include "kernels/cuda/library/cudnn_kernel.h"
#include "kernels/cuda/registry.h"
#include "kernels/known_attributes.h"

namespace mpc::cuda {
namespace {

namespace fe = cudnn_frontend;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

constexpr std::size_t kAlignment = 256;
std::size_t Aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// query [B, H, T, D], key [B, H, S, D], value [B, H, S, E].
struct Form {
  TensorSpec query, key, value;
  float scale = 1;
  bool causal = false;

  TensorSpec y() const { return {query.dtype, {query.shape[0], query.shape[1], query.shape[2], value.shape[3]}}; }
  Shape statistic() const { return {query.shape[0], query.shape[1], query.shape[2], 1}; }
};

/// `first`: the input that is query. Errors: UNIMPLEMENTED for what the project's own kernel takes.
absl::StatusOr<Form> FormOf(const KernelSpec& spec, std::size_t first, std::size_t inputs_without_mask) {
  const Form form{spec.inputs[first], spec.inputs[first + 1], spec.inputs[first + 2],
                  spec.attributes.Get(attribute::kScale), spec.attributes.GetBool("causal")};
  // A mask is one byte a position here and an additive bias of a floating type in cuDNN.
  if (spec.inputs.size() > inputs_without_mask || !IsLowPrecision(form.query.dtype)) return UnsupportedTypes(spec);
  for (const TensorSpec* tensor : {&form.key, &form.value}) {
    if (tensor->dtype != form.query.dtype) return UnsupportedTypes(spec);
  }
  for (const TensorSpec* tensor : {&form.query, &form.key, &form.value}) {
    // Rows of heads are read in pieces of 16 bytes.
    if (tensor->num_elements() < 1 || tensor->shape[3] % 8 != 0) return UnsupportedTypes(spec);
  }
  // With fewer columns than rows the first rows may read nothing: the operation gives them 0 and -inf.
  if (form.causal && form.key.shape[2] < form.query.shape[2]) return UnsupportedTypes(spec);
  return form;
}

Tensor Input(fe::graph::Graph& graph, std::int64_t id, const Shape& shape) {
  return graph.tensor(fe::graph::Tensor_attributes().set_uid(id).set_dim(shape).set_stride(RowMajorStrides(shape)));
}

void Output(const Tensor& tensor, std::int64_t id, const Shape& shape) {
  tensor->set_output(true).set_uid(id).set_dim(shape).set_stride(RowMajorStrides(shape));
}

/// Row t reads columns s <= t + S - T.
template <typename Attributes>
void SetCausal(Attributes& attributes, const Form& form) {
  if (!form.causal) return;
  if (form.query.shape[2] == form.key.shape[2]) {
    attributes.set_causal_mask(true);
  } else {
    attributes.set_causal_mask_bottom_right(true);
  }
}

/// Tensors: query, key, value, y and, with `statistics`, log_sum_exp.
CudnnGraph::Operations Forward(const Form& form, bool statistics) {
  return [form, statistics](fe::graph::Graph& graph) {
    auto attributes = fe::graph::SDPA_attributes().set_name("attention").set_generate_stats(statistics);
    attributes.set_attn_scale(form.scale);
    SetCausal(attributes, form);
    auto [y, log_sum_exp] = [&] {
      auto outputs = graph.sdpa(Input(graph, 1, form.query.shape), Input(graph, 2, form.key.shape),
                                Input(graph, 3, form.value.shape), attributes);
      return std::pair(outputs[0], outputs[1]);
    }();
    Output(y, 4, form.y().shape);
    if (!statistics) return;
    Output(log_sum_exp, 5, form.statistic());
    log_sum_exp->set_data_type(fe::DataType_t::FLOAT);
  };
}

/// Tensors: query, key, value, y, dy, log_sum_exp, dquery, dkey, dvalue. The order of sums is fixed, which costs
/// workspace.
CudnnGraph::Operations Backward(const Form& form) {
  return [form](fe::graph::Graph& graph) {
    auto attributes = fe::graph::SDPA_backward_attributes().set_name("attention_grad");
    attributes.set_attn_scale(form.scale).set_deterministic_algorithm(true);
    SetCausal(attributes, form);
    const Shape y = form.y().shape;
    const Tensor log_sum_exp = Input(graph, 6, form.statistic());
    log_sum_exp->set_data_type(fe::DataType_t::FLOAT);
    const auto gradients = graph.sdpa_backward(Input(graph, 1, form.query.shape), Input(graph, 2, form.key.shape),
                                               Input(graph, 3, form.value.shape), Input(graph, 4, y),
                                               Input(graph, 5, y), log_sum_exp, attributes);
    Output(gradients[0], 7, form.query.shape);
    Output(gradients[1], 8, form.key.shape);
    Output(gradients[2], 9, form.value.shape);
  };
}

class AttentionKernel : public CudnnKernel {
 public:
  AttentionKernel(std::unique_ptr<CudnnGraph> graph, std::size_t y_bytes, bool statistics)
      : graph_(std::move(graph)), y_bytes_(y_bytes), statistics_(statistics) {}
  std::size_t workspace_bytes() const override { return y_bytes_ + graph_->workspace_bytes(); }
  std::string choice() const override { return graph_->engine(); }
  std::vector<std::string> numerical_notes() const override { return graph_->notes(); }
  absl::Status BuildPlans() override { return graph_->Build(); }

  absl::Status Enqueue(const KernelOperands& operands, LaunchQueue& queue) override {
    std::vector<void*> tensors;
    for (int i = 0; i < 3; ++i) tensors.push_back(const_cast<void*>(operands.inputs[i]));
    tensors.push_back(y_bytes_ == 0 ? operands.outputs[0] : operands.workspace);
    if (statistics_) tensors.push_back(operands.outputs[1]);
    return graph_->Run(tensors, static_cast<std::byte*>(operands.workspace) + y_bytes_, queue);
  }

 private:
  std::unique_ptr<CudnnGraph> graph_;
  std::size_t y_bytes_;  ///< bytes of y in the workspace, where nothing uses it
  bool statistics_;
};

absl::StatusOr<std::unique_ptr<Kernel>> CreateAttention(const KernelSpec& spec, const KernelContext& context) {
  absl::StatusOr<Form> form = FormOf(spec, 0, 3);
  if (!form.ok()) return form.status();
  if (spec.uses(0) && spec.outputs[0].dtype != form->query.dtype) return UnsupportedTypes(spec);
  const bool statistics = spec.outputs.size() > 1 && spec.uses(1);
  absl::StatusOr<std::unique_ptr<CudnnGraph>> graph =
      CudnnGraph::Create(context, form->query.dtype, Forward(*form, statistics));
  if (!graph.ok()) return graph.status();
  if (absl::Status status = (*graph)->Choose(context.choice); !status.ok()) return status;
  return std::make_unique<AttentionKernel>(*std::move(graph), spec.uses(0) ? 0 : Aligned(form->y().bytes()),
                                           statistics);
}

/// "forward+backward+parts": two engines, and into how many parts the batch is divided.
struct GradientChoice {
  std::string forward, backward;
  std::int64_t parts = 1;

  std::string ToString() const { return absl::StrCat(forward, "+", backward, "+", parts); }
};

absl::StatusOr<GradientChoice> ParseGradientChoice(const std::string& text, std::int64_t batch) {
  const std::vector<std::string> words = absl::StrSplit(text, '+');
  GradientChoice choice;
  if (words.size() != 3 || words[0].empty() || words[1].empty() || !absl::SimpleAtoi(words[2], &choice.parts) ||
      choice.parts < 1 || batch % choice.parts != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("the chosen form of mpc.attention_grad is written \"eng2_k24=7+eng6_k24=26+4\": forward engine, "
                     "backward engine, parts that divide the batch of ",
                     batch, "; got \"", text, "\""));
  }
  choice.forward = words[0];
  choice.backward = words[1];
  return choice;
}

/// cuDNN derives delta, the row sums of dp * p, from y, which is not an operand of the operation. So y is computed
/// again with the engine that the forward operation would use. That is about a quarter of the gradient's work. A fixed
/// order of sums costs cuDNN workspace in proportion to the batch. So a large batch goes through in parts that share
/// the workspace.
class AttentionGradKernel : public CudnnKernel {
 public:
  /// `form` describes the whole batch. Errors: UNIMPLEMENTED where one part of `choice.parts` needs more workspace than
  /// allowed.
  static absl::StatusOr<std::unique_ptr<AttentionGradKernel>> Create(const Form& form, const KernelSpec& spec,
                                                                     const KernelContext& context,
                                                                     const GradientChoice& choice) {
    auto kernel = std::unique_ptr<AttentionGradKernel>(new AttentionGradKernel);
    Form part = form;
    for (TensorSpec* tensor : {&part.query, &part.key, &part.value}) tensor->shape[0] /= choice.parts;
    kernel->parts_ = choice.parts;
    kernel->scratch_ = Aligned(part.y().bytes());
    const TensorSpec* const results[] = {&part.query, &part.key, &part.value};
    for (std::size_t i = 0; i < 3; ++i) {
      kernel->part_bytes_[i] = results[i]->bytes();
      if (spec.uses(i)) continue;
      kernel->unused_[i] = kernel->scratch_;
      kernel->scratch_ += Aligned(results[i]->bytes());
    }
    kernel->y_bytes_ = part.y().bytes();
    kernel->statistic_bytes_ = static_cast<std::size_t>(NumElements(part.statistic())) * sizeof(float);
    // Parts begin inside tensors: cuDNN is told of 16-byte alignment.
    if (choice.parts > 1 && kernel->statistic_bytes_ % 16 != 0) return UnsupportedTypes(spec);
    KernelContext rest = context;
    if (kernel->scratch_ > rest.workspace_cap) return UnsupportedTypes(spec);
    rest.workspace_cap -= kernel->scratch_;
    for (auto [graph, operations, engine] : {std::tuple(&kernel->forward_, Forward(part, false), choice.forward),
                                             std::tuple(&kernel->backward_, Backward(part), choice.backward)}) {
      absl::StatusOr<std::unique_ptr<CudnnGraph>> made = CudnnGraph::Create(rest, form.query.dtype, operations);
      if (!made.ok()) return made.status();
      if (absl::Status status = (*made)->Choose(engine); !status.ok()) return status;
      *graph = *std::move(made);
    }
    return kernel;
  }

  std::size_t workspace_bytes() const override {
    return scratch_ + std::max(forward_->workspace_bytes(), backward_->workspace_bytes());
  }
  std::string choice() const override {
    return GradientChoice{forward_->engine(), backward_->engine(), parts_}.ToString();
  }
  std::vector<std::string> numerical_notes() const override {
    std::vector<std::string> notes = forward_->notes();
    for (std::string& note : backward_->notes()) notes.push_back(std::move(note));
    return notes;
  }
  absl::Status BuildPlans() override {
    absl::Status status = forward_->Build();
    return status.ok() ? backward_->Build() : status;
  }
  /// Backward engines for the same parts, in the form of choices.
  absl::StatusOr<std::vector<std::string>> Alternatives(std::size_t limit) {
    absl::StatusOr<std::vector<std::string>> engines = backward_->Engines(limit);
    if (!engines.ok()) return engines.status();
    for (std::string& engine : *engines) engine = GradientChoice{forward_->engine(), engine, parts_}.ToString();
    return engines;
  }

  absl::Status Enqueue(const KernelOperands& operands, LaunchQueue& queue) override {
    auto* const workspace = static_cast<std::byte*>(operands.workspace);
    void* const scratch = workspace + scratch_;
    for (std::int64_t part = 0; part < parts_; ++part) {
      const auto at = [&](const void* base, std::size_t bytes) -> void* {
        return static_cast<std::byte*>(const_cast<void*>(base)) + static_cast<std::size_t>(part) * bytes;
      };
      void* const query = at(operands.inputs[1], part_bytes_[0]);
      void* const key = at(operands.inputs[2], part_bytes_[1]);
      void* const value = at(operands.inputs[3], part_bytes_[2]);
      void* const y = workspace;
      if (absl::Status status = forward_->Run({query, key, value, y}, scratch, queue); !status.ok()) return status;
      std::vector<void*> tensors = {
          query, key, value, y, at(operands.inputs[0], y_bytes_), at(operands.inputs[4], statistic_bytes_)};
      for (std::size_t i = 0; i < 3; ++i) {
        tensors.push_back(unused_[i] == 0 ? at(operands.outputs[i], part_bytes_[i]) : workspace + unused_[i]);
      }
      if (absl::Status status = backward_->Run(tensors, scratch, queue); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  AttentionGradKernel() = default;

  std::unique_ptr<CudnnGraph> forward_, backward_;  ///< graphs of one part
  std::int64_t parts_ = 1;
  std::size_t part_bytes_[3] = {0, 0, 0};  ///< bytes of a part of query, key, value (as of their gradients)
  std::size_t y_bytes_ = 0, statistic_bytes_ = 0;
  std::size_t unused_[3] = {0, 0, 0};  ///< offsets of results that nothing uses; 0: used
  std::size_t scratch_ = 0;            ///< offset of what the engines need: behind y and unused results
};

absl::StatusOr<std::unique_ptr<AttentionGradKernel>> MakeAttentionGrad(const KernelSpec& spec,
                                                                       const KernelContext& context) {
  absl::StatusOr<Form> form = FormOf(spec, 1, 5);
  if (!form.ok()) return form.status();
  if (spec.inputs[0].dtype != form->query.dtype) return UnsupportedTypes(spec);
  for (std::size_t i = 0; i < 3; ++i) {
    if (spec.uses(i) && spec.outputs[i].dtype != form->query.dtype) return UnsupportedTypes(spec);
  }
  const std::int64_t batch = form->query.shape[0];
  if (!context.choice.empty()) {
    absl::StatusOr<GradientChoice> choice = ParseGradientChoice(context.choice, batch);
    if (!choice.ok()) return choice.status();
    absl::StatusOr<std::unique_ptr<AttentionGradKernel>> kernel =
        AttentionGradKernel::Create(*form, spec, context, *choice);
    if (!absl::IsUnimplemented(kernel.status())) return kernel;
    return absl::FailedPreconditionError(kernel.status().message());
  }
  // Take as few parts as fit.
  absl::StatusOr<std::unique_ptr<AttentionGradKernel>> kernel = UnsupportedTypes(spec);
  for (std::int64_t parts = 1; parts <= batch && absl::IsUnimplemented(kernel.status()); ++parts) {
    if (batch % parts == 0) kernel = AttentionGradKernel::Create(*form, spec, context, {"", "", parts});
  }
  return kernel;
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateAttentionGrad(const KernelSpec& spec, const KernelContext& context) {
  return MakeAttentionGrad(spec, context);
}

constexpr std::size_t kCandidates = 8;

absl::StatusOr<std::vector<std::string>> AttentionCandidates(const KernelSpec& spec, const KernelContext& context) {
  absl::StatusOr<Form> form = FormOf(spec, 0, 3);
  if (!form.ok()) return form.status();
  absl::StatusOr<std::unique_ptr<CudnnGraph>> graph =
      CudnnGraph::Create(context, form->query.dtype, Forward(*form, spec.outputs.size() > 1 && spec.uses(1)));
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
}

}  // namespace mpc::cuda
