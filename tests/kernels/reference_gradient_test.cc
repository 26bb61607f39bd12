// The reference's gradient operations against central differences of its forward operations.
#include <cmath>
#include <functional>

#include "kernels/known_attributes.h"
#include "tests/kernels/reference_run.h"
#include "tests/op_cases/op_case.h"

namespace mpc::test {
namespace {

using op_cases::AllOpCases;
using op_cases::OpCase;
using Tensors = std::vector<reference::Tensor>;

// One element in this many is perturbed: cases are many and forward runs naive.
constexpr std::size_t kSamples = 5;
constexpr double kStep = 1e-4;
// Central differences err by step^2 / 6 times the third derivative, here below 100, and by f64 rounding / step.
constexpr double kTolerance = 1e-6;

Tensors Apply(const OpCase& forward, const Tensors& inputs) {
  Tensors outputs;
  for (const TensorSpec& spec : forward.results) {
    outputs.push_back({spec, Values(static_cast<std::size_t>(spec.num_elements()))});
  }
  reference::Find(forward.op)(forward.attributes, inputs, absl::MakeSpan(outputs));
  return outputs;
}

// d <cotangent, first result of `forward`> / d inputs[operand][element].
double NumericalDerivative(const OpCase& forward, Tensors inputs, std::size_t operand, std::size_t element,
                           const Values& cotangent) {
  const auto inner = [&](double offset) {
    Tensors moved = inputs;
    moved[operand].values[element] += offset;
    const Values y = Apply(forward, moved)[0].values;
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += cotangent[i] * y[i];
    return sum;
  };
  return (inner(kStep) - inner(-kStep)) / (2 * kStep);
}

Values CotangentOf(const OpCase& forward) {
  Values cotangent(static_cast<std::size_t>(forward.results[0].num_elements()));
  for (std::size_t i = 0; i < cotangent.size(); ++i) cotangent[i] = std::sin(1.0 + static_cast<double>(i));
  return cotangent;
}

// How the operands of a gradient operation follow from a forward case. Result i of the gradient operation is the
// derivative by forward operand `wrt[i]`.
struct Rule {
  std::string gradient;
  std::vector<std::size_t> wrt;
  std::function<Tensors(const Tensors& inputs, const Tensors& outputs, reference::Tensor cotangent)> operands;
  Attributes (*attributes)(const OpCase& forward, const Tensors& inputs) = [](const OpCase& forward, const Tensors&) {
    return forward.attributes;
  };
};

Attributes WithInputShape(const OpCase& forward, const Tensors& inputs) {
  Attributes attributes = forward.attributes;
  attributes.Set("input_shape", inputs[0].spec.shape);
  return attributes;
}
Attributes WithWeightShape(const OpCase& forward, const Tensors& inputs) {
  Attributes attributes = forward.attributes;
  attributes.Set("weight_shape", inputs[1].spec.shape);
  return attributes;
}

void ExpectGradients(const std::string& forward_op, const Rule& rule) {
  int checked = 0;
  for (const OpCase& forward : AllOpCases()) {
    if (forward.op != forward_op || !forward.operands[0].differentiable) continue;
    if (forward.attributes.Get(attribute::kActivation) != Activation::kNone) continue;
    if (forward.operands[0].spec.num_elements() > 3000) continue;
    SCOPED_TRACE(forward.name);
    ++checked;
    const Tensors inputs = op_cases::MakeInputs(forward, DType::kF32);
    const Values cotangent = CotangentOf(forward);
    const Tensors outputs = Apply(forward, inputs);
    const Tensors operands = rule.operands(inputs, outputs, {forward.results[0], cotangent});
    Tensors gradients;
    for (std::size_t operand : rule.wrt) {
      const bool before_broadcast =
          rule.gradient == "div_grad" || rule.gradient == "maximum_grad" || rule.gradient == "minimum_grad";
      const Shape& shape = before_broadcast ? forward.results[0].shape : inputs[operand].spec.shape;
      gradients.push_back({{DType::kF32, shape}, Values(static_cast<std::size_t>(NumElements(shape)))});
    }
    reference::Find(rule.gradient)(rule.attributes(forward, inputs), operands, absl::MakeSpan(gradients));
    for (std::size_t i = 0; i < rule.wrt.size(); ++i) {
      const std::size_t operand = rule.wrt[i];
      if (gradients[i].values.size() != inputs[operand].values.size()) continue;  // a broadcast operand
      const std::size_t stride = std::max<std::size_t>(1, inputs[operand].values.size() / kSamples);
      for (std::size_t e = 0; e < inputs[operand].values.size(); e += stride) {
        const double expected = NumericalDerivative(forward, inputs, operand, e, cotangent);
        EXPECT_NEAR(gradients[i].values[e], expected, kTolerance * (1 + std::abs(expected))) << "operand " << operand;
      }
    }
  }
  EXPECT_GT(checked, 0) << forward_op;
}

const auto kFromResult = [](const Tensors&, const Tensors& outputs, reference::Tensor dy) {
  return Tensors{std::move(dy), outputs[0]};
};

TEST(ReferenceGradients, Unary) {
  for (const char* op : {"relu", "sigmoid", "tanh", "sqrt", "softmax", "log_softmax"}) {
    ExpectGradients(op, {std::string(op) + "_grad", {0}, kFromResult});
  }
}

TEST(ReferenceGradients, UnaryFromTheOperand) {
  for (const char* op :
       {"abs", "square", "log1p", "sin", "cos", "silu", "hard_swish", "erf", "gelu", "leaky_relu", "pow", "clamp"}) {
    ExpectGradients(op,
                    {std::string(op) + "_grad", {0}, [](const Tensors& inputs, const Tensors&, reference::Tensor dy) {
                       return Tensors{std::move(dy), inputs[0]};
                     }});
  }
}

TEST(ReferenceGradients, Prelu) {
  ExpectGradients("prelu", {"prelu_grad", {0, 1}, [](const Tensors& inputs, const Tensors&, reference::Tensor dy) {
                              return Tensors{std::move(dy), inputs[0], inputs[1]};
                            }});
}

Attributes WithRows(const OpCase& forward, const Tensors& inputs) {
  Attributes attributes = forward.attributes;
  attributes.Set("rows", inputs[0].spec.shape[0]);
  return attributes;
}

TEST(ReferenceGradients, GatherAndReduceMax) {
  ExpectGradients("gather", {"gather_grad",
                             {0},
                             [](const Tensors& inputs, const Tensors&, reference::Tensor dy) {
                               return Tensors{std::move(dy), inputs[1]};
                             },
                             WithRows});
  ExpectGradients("reduce_max",
                  {"reduce_max_grad", {0}, [](const Tensors& inputs, const Tensors& outputs, reference::Tensor dy) {
                     return Tensors{std::move(dy), inputs[0], outputs[0]};
                   }});
}

TEST(ReferenceGradients, ReduceMinAndReduceProd) {
  ExpectGradients("reduce_min",
                  {"reduce_max_grad", {0}, [](const Tensors& inputs, const Tensors& outputs, reference::Tensor dy) {
                     return Tensors{std::move(dy), inputs[0], outputs[0]};
                   }});
  ExpectGradients("reduce_prod",
                  {"reduce_prod_grad", {0}, [](const Tensors& inputs, const Tensors&, reference::Tensor dy) {
                     return Tensors{std::move(dy), inputs[0]};
                   }});
}

Attributes Reversed(const OpCase& forward, const Tensors&) {
  Attributes attributes = forward.attributes;
  attributes.Set("reverse", !attributes.GetBool("reverse"));
  return attributes;
}

TEST(ReferenceGradients, Cumsum) {
  ExpectGradients("cumsum",
                  {"cumsum",
                   {0},
                   [](const Tensors&, const Tensors&, reference::Tensor dy) { return Tensors{std::move(dy)}; },
                   Reversed});
}

TEST(ReferenceGradients, Binary) {
  ExpectGradients("div", {"div_grad", {1}, [](const Tensors& inputs, const Tensors& outputs, reference::Tensor dy) {
                            return Tensors{std::move(dy), outputs[0], inputs[1]};
                          }});
  for (const std::string op : {"maximum", "minimum"}) {
    ExpectGradients(op, {op + "_grad", {0, 1}, [](const Tensors& inputs, const Tensors&, reference::Tensor dy) {
                           return Tensors{std::move(dy), inputs[0], inputs[1]};
                         }});
  }
}

TEST(ReferenceGradients, Convolution) {
  ExpectGradients("conv2d", {"conv2d_grad_input",
                             {0},
                             [](const Tensors& inputs, const Tensors&, reference::Tensor dy) {
                               return Tensors{std::move(dy), inputs[1]};
                             },
                             WithInputShape});
  ExpectGradients("conv2d", {"conv2d_grad_weight",
                             {1},
                             [](const Tensors& inputs, const Tensors&, reference::Tensor dy) {
                               return Tensors{inputs[0], std::move(dy)};
                             },
                             WithWeightShape});
}

TEST(ReferenceGradients, Pooling) {
  ExpectGradients("max_pool2d", {"max_pool2d_grad",
                                 {0},
                                 [](const Tensors&, const Tensors& outputs, reference::Tensor dy) {
                                   return Tensors{std::move(dy), outputs[1]};
                                 },
                                 WithInputShape});
  ExpectGradients("avg_pool2d",
                  {"avg_pool2d_grad",
                   {0},
                   [](const Tensors&, const Tensors&, reference::Tensor dy) { return Tensors{std::move(dy)}; },
                   WithInputShape});
}

TEST(ReferenceGradients, Resize) {
  ExpectGradients("resize",
                  {"resize_grad",
                   {0},
                   [](const Tensors&, const Tensors&, reference::Tensor dy) { return Tensors{std::move(dy)}; },
                   WithInputShape});
}

TEST(ReferenceGradients, BatchNorm) {
  ExpectGradients(
      "batch_norm_train",
      {"batch_norm_train_grad", {0, 1, 2}, [](const Tensors& inputs, const Tensors& outputs, reference::Tensor dy) {
         return Tensors{std::move(dy), inputs[0], inputs[1], outputs[1], outputs[3]};
       }});
  ExpectGradients("batch_norm_infer",
                  {"batch_norm_infer_grad", {0, 1, 2}, [](const Tensors& inputs, const Tensors&, reference::Tensor dy) {
                     return Tensors{std::move(dy), inputs[0], inputs[1], inputs[3], inputs[4]};
                   }});
}

TEST(ReferenceGradients, LayerAndGroupNorm) {
  for (const char* op : {"layer_norm", "group_norm"}) {
    ExpectGradients(
        op,
        {std::string(op) + "_grad", {0, 1, 2}, [](const Tensors& inputs, const Tensors& outputs, reference::Tensor dy) {
           return Tensors{std::move(dy), inputs[0], inputs[1], outputs[1], outputs[2]};
         }});
  }
}

TEST(ReferenceGradients, Attention) {
  ExpectGradients(
      "attention",
      {"attention_grad", {0, 1, 2}, [](const Tensors& inputs, const Tensors& outputs, reference::Tensor dy) {
         Tensors operands{std::move(dy), inputs[0], inputs[1], inputs[2], outputs[1]};
         if (inputs.size() > 3) operands.push_back(inputs[3]);
         return operands;
       }});
}

TEST(ReferenceGradients, PackedAttention) {
  ExpectGradients(
      "packed_attention",
      {"packed_attention_grad", {0}, [](const Tensors& inputs, const Tensors& outputs, reference::Tensor dy) {
         Tensors operands{std::move(dy), inputs[0], outputs[0], outputs[1]};
         if (inputs.size() > 1) operands.push_back(inputs[1]);
         return operands;
       }});
}

TEST(ReferenceGradients, LstmCell) {
  ExpectGradients(
      "lstm_cell",
      {"lstm_cell_grad", {0, 1}, [](const Tensors& inputs, const Tensors& outputs, reference::Tensor dhidden) {
         reference::Tensor none = outputs[1];
         std::fill(none.values.begin(), none.values.end(), 0.0);
         return Tensors{std::move(dhidden), none, outputs[2], inputs[1], outputs[1]};
       }});
}

TEST(ReferenceGradients, Losses) {
  ExpectGradients("bce_with_logits",
                  {"bce_with_logits_grad", {0}, [](const Tensors& inputs, const Tensors&, reference::Tensor dloss) {
                     return Tensors{std::move(dloss), inputs[0], inputs[1]};
                   }});
  ExpectGradients(
      "softmax_cross_entropy",
      {"softmax_cross_entropy_grad", {0}, [](const Tensors& inputs, const Tensors& outputs, reference::Tensor dloss) {
         return Tensors{std::move(dloss), inputs[0], inputs[1], outputs[1]};
       }});
  ExpectGradients("mse", {"mse_grad", {0}, [](const Tensors& inputs, const Tensors&, reference::Tensor dloss) {
                            return Tensors{std::move(dloss), inputs[0], inputs[1]};
                          }});
}

}  // namespace
}  // namespace mpc::test
