#include "tools/mpc-bench/op_graphs.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/mpc-bench/step_graphs.h"

namespace mpc::tools {
namespace {

using Value = compiler::TypedValue;
using Graph = GraphUnderTest;

double Product(const Shape& shape) {
  double product = 1;
  for (const std::int64_t extent : shape) product *= static_cast<double>(extent);
  return product;
}

/// Two floating-point operations for each of the m k n products.
double MatmulFlops(const Shape& shape) { return 2 * Product(shape); }

// Convolutions of stride 1, padded to their input's size, on channels-last images: N, H, W, C, O, kernel.

double ConvolutionFlops(const Shape& s) { return 2 * Product(s) * static_cast<double>(s[5]); }

Attributes ConvolutionAttributes() { return {{"pad_mode", std::string("same")}, {"data_format", std::string("NHWC")}}; }

Attributes With(Attributes attributes, const char* name, const AttributeValue& value) {
  attributes.Set(name, value);
  return attributes;
}

Shape Image(const Shape& s) { return {s[0], s[1], s[2], s[3]}; }
Shape ImageOut(const Shape& s) { return {s[0], s[1], s[2], s[4]}; }
Shape Weight(const Shape& s) { return {s[4], s[3], s[5], s[5]}; }

std::vector<OpGraph> MatrixGraphs() {
  // gelu, of which `between` may keep a product apart.
  const auto add_gelu = [](Graph& graph, const Value& product, const char* between) {
    const Value x = between == nullptr ? product : graph.Op(between, {product});
    graph.Result(graph.Op("gelu", {x}, {{"approximate", std::string("tanh")}}));
  };
  const auto dense_gelu = [=](Graph& graph, const Shape& s, const char* between) {
    const std::vector<Value> operands = {graph.Argument({s[0], s[1]}), graph.Argument({s[2], s[1]}),
                                         graph.Argument({s[2]})};
    const Value y = graph.Op("matmul", operands, {{"transpose_b", true}});
    add_gelu(graph, y, between);
    return y;
  };
  const auto conv2d_gelu = [=](Graph& graph, const Shape& s, const char* between) {
    const std::vector<Value> operands = {graph.Argument(Image(s)), graph.Argument(Weight(s)), graph.Argument({s[4]})};
    add_gelu(graph, graph.Op("conv2d", operands, ConvolutionAttributes()), between);
  };
  return {
      {"matmul",
       "MxKxN",
       {1024, 1024, 1024},
       [](Graph& graph, const Shape& s) {
         graph.Result(graph.Op("matmul", {graph.Argument({s[0], s[1]}), graph.Argument({s[1], s[2]})}));
       },
       MatmulFlops},
      // Of y = x w: x^T dy.
      {"matmul_grad_weight",
       "MxKxN",
       {1024, 1024, 1024},
       [](Graph& graph, const Shape& s) {
         const std::vector<Value> operands = {graph.Argument({s[0], s[1]}), graph.Argument({s[0], s[2]})};
         graph.Result(graph.Op("matmul", operands, {{"transpose_a", true}}));
       },
       MatmulFlops},
      {"dense_relu",
       "MxKxN",
       {1024, 1024, 1024},
       [](Graph& graph, const Shape& s) {
         const std::vector<Value> operands = {graph.Argument({s[0], s[1]}), graph.Argument({s[2], s[1]}),
                                              graph.Argument({s[2]})};
         graph.Result(graph.Op("relu", {graph.Op("matmul", operands, {{"transpose_b", true}})}));
       },
       MatmulFlops},
      // As training has it, and as prediction: where nothing else reads the product, it takes gelu.
      {"dense_gelu",
       "MxKxN",
       {1024, 384, 1536},
       [=](Graph& graph, const Shape& s) { graph.Result(dense_gelu(graph, s, nullptr)); },
       MatmulFlops},
      {"dense_gelu_forward",
       "MxKxN",
       {1024, 384, 1536},
       [=](Graph& graph, const Shape& s) { dense_gelu(graph, s, nullptr); },
       MatmulFlops},
      // The same with gelu in a region of its own.
      {"dense_gelu_apart",
       "MxKxN",
       {1024, 384, 1536},
       [=](Graph& graph, const Shape& s) { dense_gelu(graph, s, "stop_gradient"); },
       MatmulFlops},
      {"conv2d",
       "NxHxWxCxOxK",
       {32, 32, 32, 64, 64, 3},
       [](Graph& graph, const Shape& s) {
         graph.Result(
             graph.Op("conv2d", {graph.Argument(Image(s)), graph.Argument(Weight(s))}, ConvolutionAttributes()));
       },
       ConvolutionFlops},
      {"conv2d_gelu_forward",
       "NxHxWxCxOxK",
       {32, 32, 32, 64, 64, 3},
       [=](Graph& graph, const Shape& s) { conv2d_gelu(graph, s, nullptr); },
       ConvolutionFlops},
      {"conv2d_gelu_apart",
       "NxHxWxCxOxK",
       {32, 32, 32, 64, 64, 3},
       [=](Graph& graph, const Shape& s) { conv2d_gelu(graph, s, "stop_gradient"); },
       ConvolutionFlops},
      {"conv2d_grad_input",
       "NxHxWxCxOxK",
       {32, 32, 32, 64, 64, 3},
       [](Graph& graph, const Shape& s) {
         graph.Result(graph.Op("conv2d_grad_input", {graph.Argument(ImageOut(s)), graph.Argument(Weight(s))},
                               With(ConvolutionAttributes(), "input_shape", Image(s))));
       },
       ConvolutionFlops},
      {"conv2d_grad_weight",
       "NxHxWxCxOxK",
       {32, 32, 32, 64, 64, 3},
       [](Graph& graph, const Shape& s) {
         graph.Result(graph.Op("conv2d_grad_weight", {graph.Argument(Image(s)), graph.Argument(ImageOut(s))},
                               With(ConvolutionAttributes(), "weight_shape", Weight(s))));
       },
       ConvolutionFlops},
      {"attention",
       "NxHxTxD",
       {4, 6, 256, 64},
       [](Graph& graph, const Shape& s) {
         const std::vector<Value> operands = {graph.Argument(s), graph.Argument(s), graph.Argument(s)};
         const double scale = 1 / std::sqrt(static_cast<double>(s[3]));
         const std::vector<Value> results = graph.Emit("attention", operands, {{"causal", true}, {"scale", scale}});
         graph.Result(results[0]);
         graph.Result(results[1]);
       },
       // Two products, half of each below the diagonal.
       [](const Shape& s) { return 2 * Product(s) * static_cast<double>(s[2]); }},
      {"attention_grad",
       "NxHxTxD",
       {4, 6, 256, 64},
       [](Graph& graph, const Shape& s) {
         std::vector<Value> operands;
         for (int i = 0; i < 4; ++i) operands.push_back(graph.Argument(s));
         operands.push_back(graph.F32Argument({s[0], s[1], s[2]}, Fill::kPositive));
         const double scale = 1 / std::sqrt(static_cast<double>(s[3]));
         for (const Value& gradient : graph.Emit("attention_grad", operands, {{"causal", true}, {"scale", scale}})) {
           graph.Result(gradient);
         }
       },
       // Five products, half of each below the diagonal.
       [](const Shape& s) { return 5 * Product(s) * static_cast<double>(s[2]); }},
  };
}

/// A graph of one N x M tensor to another.
OpGraph Elementwise(const std::string& name, const std::function<Value(Graph&, const Shape&)>& result) {
  return {name, "NxM", {4096, 4096}, [result](Graph& graph, const Shape& s) { graph.Result(result(graph, s)); }, {}};
}

std::vector<OpGraph> ElementwiseGraphs() {
  const auto gelu = [](Graph& graph, const Value& x) {
    return graph.Op("gelu", {x}, {{"approximate", std::string("tanh")}});
  };
  return {
      Elementwise("relu", [](Graph& graph, const Shape& s) { return graph.Op("relu", {graph.Argument(s)}); }),
      Elementwise("exp", [](Graph& graph, const Shape& s) { return graph.Op("exp", {graph.Argument(s)}); }),
      Elementwise("tanh", [](Graph& graph, const Shape& s) { return graph.Op("tanh", {graph.Argument(s)}); }),
      Elementwise("gelu", [=](Graph& graph, const Shape& s) { return gelu(graph, graph.Argument(s)); }),
      Elementwise("add",
                  [](Graph& graph, const Shape& s) {
                    return graph.Op("add", {graph.Argument(s), graph.Argument(s)});
                  }),
      Elementwise("add_relu",
                  [](Graph& graph, const Shape& s) {
                    return graph.Op("relu", {graph.Op("add", {graph.Argument(s), graph.Argument(s)})});
                  }),
      Elementwise("gelu_bias",
                  [=](Graph& graph, const Shape& s) {
                    return gelu(graph, graph.Op("add", {graph.Argument(s), graph.Argument({s[1]})}));
                  }),
      Elementwise("gelu_grad",
                  [](Graph& graph, const Shape& s) {
                    return graph.Op("gelu_grad", {graph.Argument(s), graph.Argument(s)},
                                    {{"approximate", std::string("tanh")}});
                  }),
      Elementwise("relu_grad",
                  [](Graph& graph, const Shape& s) {
                    return graph.Op("relu_grad", {graph.Argument(s), graph.Argument(s)});
                  }),
      Elementwise("sum_n",
                  [](Graph& graph, const Shape& s) {
                    return graph.Op("sum_n", {graph.Argument(s), graph.Argument(s), graph.Argument(s)});
                  }),
      Elementwise("dropout",
                  [](Graph& graph, const Shape& s) {
                    const std::vector<Value> operands = {graph.Argument(s), graph.Scalar(7, DType::kI64),
                                                         graph.Scalar(1, DType::kI32)};
                    return graph.Op("dropout", operands, {{"p", 0.1}, {"call_site", std::int64_t{3}}});
                  }),
      Elementwise("cast", [](Graph& graph, const Shape& s) { return graph.Cast(graph.Argument(s)); }),
      Elementwise(
          "transpose",
          [](Graph& graph, const Shape& s) {
            return graph.Op("transpose", {graph.Argument(s)}, {{"permutation", std::vector<std::int64_t>{1, 0}}});
          }),
  };
}

std::vector<OpGraph> RowGraphs() {
  const Shape rows = {16384, 768};
  return {
      {"softmax",
       "NxM",
       rows,
       [](Graph& graph, const Shape& s) { graph.Result(graph.Op("softmax", {graph.Argument(s)})); },
       {}},
      {"layer_norm",
       "NxM",
       rows,
       [](Graph& graph, const Shape& s) {
         const std::vector<Value> results =
             graph.Emit("layer_norm", {graph.Argument(s), graph.F32Argument({s[1]}), graph.F32Argument({s[1]})});
         for (std::size_t i = 0; i < 3; ++i) graph.Result(results[i]);
       },
       {}},
      {"layer_norm_grad",
       "NxM",
       rows,
       [](Graph& graph, const Shape& s) {
         const std::vector<Value> results =
             graph.Emit("layer_norm_grad", {graph.Argument(s), graph.Argument(s), graph.F32Argument({s[1]}),
                                            graph.F32Argument({s[0]}), graph.F32Argument({s[0]}, Fill::kPositive)});
         for (std::size_t i = 0; i < 3; ++i) graph.Result(results[i]);
       },
       {}},
      {"add_layer_norm",
       "NxM",
       rows,
       [](Graph& graph, const Shape& s) {
         const Value x = graph.Op("add", {graph.Argument(s), graph.Argument(s)});
         const std::vector<Value> results =
             graph.Emit("layer_norm", {x, graph.F32Argument({s[1]}), graph.F32Argument({s[1]})});
         graph.Result(x);
         for (std::size_t i = 0; i < 3; ++i) graph.Result(results[i]);
       },
       {}},
      {"softmax_cross_entropy",
       "NxM",
       {1024, 50257},
       [](Graph& graph, const Shape& s) {
         const Value logits = graph.Argument(s);
         const Value labels = graph.Labels({s[0]}, s[1]);
         const std::vector<Value> loss = graph.Emit("softmax_cross_entropy", {logits, labels});
         graph.Result(loss[0]);
         graph.Result(graph.Op("softmax_cross_entropy_grad", {graph.Scalar(1), logits, labels, loss[1]}));
       },
       {}},
  };
}

std::vector<OpGraph> ColumnGraphs() {
  const Attributes channels_last = {{"data_format", std::string("NHWC")}};
  const auto batch_norm = [=](Graph& graph, const Shape& s) {
    return graph.Emit("batch_norm_train", {graph.Argument(s), graph.F32Argument({s[3]}), graph.F32Argument({s[3]})},
                      channels_last);
  };
  const auto batch_norm_grad = [=](Graph& graph, const Shape& s, const Value& dy) {
    const std::vector<Value> results =
        graph.Emit("batch_norm_train_grad",
                   {dy, graph.Argument(s), graph.F32Argument({s[3]}), graph.F32Argument({s[3]}),
                    graph.F32Argument({s[3]}, Fill::kPositive)},
                   channels_last);
    for (std::size_t i = 0; i < 3; ++i) graph.Result(results[i]);
  };
  return {
      {"bias_grad",
       "NxM",
       {16384, 1536},
       [](Graph& graph, const Shape& s) {
         graph.Result(graph.Op("reduce_sum", {graph.Argument(s)}, {{"axes", std::vector<std::int64_t>{0}}}));
       },
       {}},
      {"batch_norm",
       "NxHxWxC",
       {32, 56, 56, 64},
       [=](Graph& graph, const Shape& s) {
         const std::vector<Value> results = batch_norm(graph, s);
         for (std::size_t i = 0; i < 4; ++i) graph.Result(results[i]);
       },
       {}},
      {"batch_norm_grad",
       "NxHxWxC",
       {32, 56, 56, 64},
       [=](Graph& graph, const Shape& s) { batch_norm_grad(graph, s, graph.Argument(s)); },
       {}},
      {"batch_norm_relu",
       "NxHxWxC",
       {32, 56, 56, 64},
       [=](Graph& graph, const Shape& s) {
         const std::vector<Value> results = batch_norm(graph, s);
         graph.Result(graph.Op("relu", {results[0]}));
         for (std::size_t i = 1; i < 4; ++i) graph.Result(results[i]);
       },
       {}},
      {"batch_norm_relu_grad",
       "NxHxWxC",
       {32, 56, 56, 64},
       [=](Graph& graph, const Shape& s) {
         batch_norm_grad(graph, s, graph.Op("relu_grad", {graph.Argument(s), graph.Argument(s)}));
       },
       {}},
  };
}

}  // namespace

const std::vector<OpGraph>& OpGraphs() {
  static const auto* const graphs = [] {
    auto* const all = new std::vector<OpGraph>();
    for (const auto& family : {MatrixGraphs(), ElementwiseGraphs(), RowGraphs(), ColumnGraphs(), StepGraphs()}) {
      all->insert(all->end(), family.begin(), family.end());
    }
    return all;
  }();
  return *graphs;
}

std::vector<std::string> OpGraphNames() {
  std::vector<std::string> names;
  for (const OpGraph& graph : OpGraphs()) names.push_back(graph.name);
  return names;
}

const OpGraph& FindOpGraph(const std::string& name) {
  return *std::find_if(OpGraphs().begin(), OpGraphs().end(), [&](const OpGraph& graph) { return graph.name == name; });
}

absl::Status CheckOpGraph(const std::string& name, const Shape& shape) {
  const std::vector<std::string> names = OpGraphNames();
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    return absl::InvalidArgumentError(absl::StrCat("--op: '", name, "' is not one of ", absl::StrJoin(names, ", ")));
  }
  const OpGraph& graph = FindOpGraph(name);
  if (!shape.empty() && shape.size() != graph.default_shape.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--shape: ", name, " takes ", graph.sizes, ", got ", ShapeToString(shape)));
  }
  return absl::OkStatus();
}

}  // namespace mpc::tools
