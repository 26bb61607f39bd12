#include "tests/compiler/random_graph.h"

#include <array>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace mpc::test {
namespace {

using compiler::GraphBuilder;
using compiler::NamedArgument;
using compiler::NamedResult;
using compiler::Scope;
using compiler::TypedValue;
using compiler::ValueHandle;

/// Sequences of a step with attention, and the rows of each.
constexpr std::int64_t kSamples = 2, kPositions = 3;

class Generator {
 public:
  Generator(std::uint64_t seed, StepKind kind, int most_rows, bool updates)
      : random_(seed), kind_(kind), most_rows_(most_rows), updates_(updates) {}

  compiler::Module Run() {
    builder_.BeginFunction("train_step", /*is_private=*/false);
    builder_.BeginFunction("forward", /*is_private=*/true);
    AddInputs();
    const int operations = kind_ == StepKind::kWide ? Between(2, 4) : Between(6, 14);
    for (int i = 0; i < operations; ++i) {
      scope_.path = "net/op" + std::to_string(i);
      scope_.network = true;
      scope_.pin = Chance(0.06) ? std::optional(Chance(0.5) ? DType::kF16 : DType::kF32) : std::nullopt;
      AddToNetwork();
    }
    scope_.pin.reset();
    const TypedValue loss = AddLoss();
    builder_.EndFunction(std::vector<NamedResult>{{loss.value, "", std::nullopt}});

    scope_ = {};
    const TypedValue seed = builder_.Splat({DType::kF32, {}}, 1.0, scope_);
    const auto values = builder_.ValueAndGrad("forward", outer_, seed.value, wrt_, /*loss_id=*/-1, scope_);
    Require(values.ok(), "value_and_grad");
    std::vector<NamedResult> results{{(*values)[0].value, "loss", Role::kOutput}};
    for (std::size_t i = 0; i < wrt_.size() && !updates_; ++i) {
      results.push_back({(*values)[i + 1].value, "gradient" + std::to_string(i), Role::kOutput});
    }
    if (updates_) Update({values->begin() + 1, values->end()}, results);
    builder_.EndFunction(results);
    auto module = builder_.Finish();
    Require(module.ok(), "finish");
    return *std::move(module);
  }

 private:
  static void Require(bool condition, std::string_view what) {
    if (condition) return;
    std::cerr << "random graph: " << what << " failed\n";
    std::abort();
  }

  int Between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool Chance(double probability) { return std::uniform_real_distribution<double>(0, 1)(random_) < probability; }

  /// An argument of the step and of the network.
  TypedValue Argument(const TensorSpec& spec, const std::string& name, Role role) {
    outer_.push_back(builder_.AddArgument(spec, {.name = name, .role = role}, 1));
    if (role == Role::kParameter) wrt_.push_back(static_cast<std::int64_t>(outer_.size()) - 1);
    const Role inside = role == Role::kParameter ? Role::kCapture : role;
    return {builder_.AddArgument(spec, {.name = name, .role = inside}, 2), spec};
  }

  TypedValue Parameter(Shape shape) {
    return Argument({DType::kF32, std::move(shape)}, "p" + std::to_string(outer_.size()), Role::kParameter);
  }

  /// An optimizer's update of each parameter.
  struct Rule {
    std::string_view op;
    int slots;
    bool has_step;
  };

  void Update(std::vector<TypedValue> gradients, std::vector<NamedResult>& results) {
    static constexpr std::array<Rule, 6> kRules = {{{"sgd", 1, true},
                                                    {"momentum", 1, false},
                                                    {"adam", 2, true},
                                                    {"adam_weight_decay", 2, false},
                                                    {"adamw", 2, true},
                                                    {"lamb", 2, true}}};
    const Rule& rule = kRules[Between(0, static_cast<int>(kRules.size()) - 1)];
    scope_.path = "optimizer";
    const TensorSpec rate{DType::kF32, {}}, step{DType::kI32, {}};
    const NamedArgument rate_argument{.name = "learning_rate", .role = Role::kLearningRate};
    const NamedArgument step_argument{.name = "step", .role = Role::kStep};
    const std::vector<TypedValue> scalars{{builder_.AddArgument(rate, rate_argument, 1), rate},
                                          {builder_.AddArgument(step, step_argument, 1), step}};
    if (Chance(0.3)) Clip(gradients);
    for (std::size_t i = 0; i < wrt_.size(); ++i) {
      const ValueHandle parameter = outer_[wrt_[i]];
      const std::string name = builder_.ArgumentName(parameter);
      // A parameter has the shape of its gradient.
      const TensorSpec spec{DType::kF32, gradients[i].spec.shape};
      std::vector<TypedValue> operands{{parameter, spec}};
      for (int slot = 0; slot < rule.slots; ++slot) {
        const std::string slot_name = SlotName(name, slot);
        const NamedArgument argument{.name = slot_name, .role = Role::kSlot, .of = name};
        operands.push_back({builder_.AddArgument(spec, argument, 1), spec});
      }
      operands.push_back(gradients[i]);
      operands.push_back(scalars[0]);
      if (rule.has_step) operands.push_back(scalars[1]);
      const std::vector<TypedValue> updated = Emit(rule.op, operands);
      results.push_back({updated[0].value, name, Role::kParameter});
      for (int slot = 0; slot < rule.slots; ++slot) {
        results.push_back({updated[slot + 1].value, SlotName(name, slot), Role::kSlot});
      }
    }
    results.push_back({Emit("increment", {scalars[1]})[0].value, "step", Role::kStep});
  }

  static std::string SlotName(const std::string& parameter, int slot) {
    return parameter + ".slot" + std::to_string(slot);
  }

  void Clip(std::vector<TypedValue>& gradients) {
    const TypedValue norm = Emit("global_norm", gradients)[0];
    for (TypedValue& gradient : gradients) gradient = Emit("clip_by_norm", {gradient, norm}, {{"max_norm", 0.5}})[0];
  }

  std::vector<TypedValue> Emit(std::string_view op, const std::vector<TypedValue>& operands,
                               const Attributes& attributes = {}, std::optional<DType> result = std::nullopt) {
    std::vector<ValueHandle> handles;
    for (const TypedValue& operand : operands) handles.push_back(operand.value);
    auto results = builder_.Emit(op, handles, attributes, scope_, result);
    Require(results.ok(), op);
    return *std::move(results);
  }

  void Keep(std::string_view op, const std::vector<TypedValue>& operands, const Attributes& attributes = {},
            std::optional<DType> result = std::nullopt) {
    pool_.push_back(Emit(op, operands, attributes, result)[0]);
  }

  void AddInputs() {
    switch (kind_) {
      case StepKind::kMixed:
        pool_.push_back(Argument({DType::kF32, {2, 3, 6, 6}}, "image", Role::kInput));
        pool_.push_back(Argument({DType::kF32, {2, 5}}, "row", Role::kInput));
        return;
      case StepKind::kFusible:
        pool_.push_back(Argument({DType::kF32, {Between(2, most_rows_), Between(1, 40)}}, "row", Role::kInput));
        return;
      case StepKind::kHeads:
        pool_.push_back(Argument({DType::kF32, {kSamples * kPositions, 5}}, "row", Role::kInput));
        return;
      case StepKind::kWide:
        pool_.push_back(Argument({DType::kF32, {2, 32, 2, 2}}, "image", Role::kInput));
        if (Chance(0.5)) AddFrozenConvolution(pool_.back());
        return;
    }
  }

  void AddToNetwork() {
    switch (kind_) {
      case StepKind::kMixed:
        return AddOperation();
      case StepKind::kFusible:
        return AddFusible(Pick(2));
      case StepKind::kHeads:
        return Chance(0.4) ? AddSelfAttention(Pick(2)) : AddToRows(Pick(2));
      case StepKind::kWide:
        return AddWideConvolution(pool_.back());
    }
  }

  /// A recent value of this rank: late values make deep graphs, early ones make joins.
  TypedValue Pick(std::size_t rank) {
    std::vector<TypedValue> candidates;
    for (const TypedValue& value : pool_) {
      if (value.spec.shape.size() == rank) candidates.push_back(value);
    }
    const int last = static_cast<int>(candidates.size()) - 1;
    return candidates[Chance(0.7) ? last : Between(0, last)];
  }

  /// Another value of the same shape, or one made from a parameter.
  TypedValue Partner(const TypedValue& value) {
    std::vector<TypedValue> candidates;
    for (const TypedValue& other : pool_) {
      if (other.spec.shape == value.spec.shape && other.value != value.value) candidates.push_back(other);
    }
    if (candidates.empty() || Chance(0.2)) {
      Shape shape(value.spec.shape.size(), 1);
      shape[1] = value.spec.shape[1];
      return Parameter(shape);
    }
    return candidates[Between(0, static_cast<int>(candidates.size()) - 1)];
  }

  void AddOperation() {
    if (Chance(0.35)) return AddToImage(Pick(4));
    if (Chance(0.6)) return AddToRows(Pick(2));
    AddElementwise(Chance(0.5) ? Pick(4) : Pick(2));
  }

  void AddToImage(const TypedValue& x) {
    const Shape& shape = x.spec.shape;
    switch (Between(0, 5)) {
      case 0:
      case 1: {
        const std::int64_t filters = Between(1, 4);
        const std::int64_t size = Chance(0.5) ? 3 : 1;
        std::vector<TypedValue> operands{x, Parameter({filters, shape[1], size, size})};
        if (Chance(0.5)) operands.push_back(Parameter({filters}));
        return Keep("conv2d", operands, {{"pad_mode", "same"}, {"activation", Chance(0.3) ? "relu" : "none"}});
      }
      case 2:
        return Keep("batch_norm_train", {x, Parameter({shape[1]}), Parameter({shape[1]})});
      case 3:
        if (shape[2] < 2) break;
        return Keep(Chance(0.5) ? "max_pool2d" : "avg_pool2d", {x},
                    {{"kernel_size", std::vector<std::int64_t>{2, 2}}, {"strides", std::vector<std::int64_t>{2, 2}}});
      case 4:
        return Keep("reshape", Emit("all_reduce", {x}),
                    {{"shape", std::vector<std::int64_t>{shape[0], shape[1] * shape[2] * shape[3]}}});
      default:
        break;
    }
    AddElementwise(x);
  }

  /// Nothing asks for a gradient of it: gelu alone reads the product.
  void AddFrozenConvolution(const TypedValue& x) {
    scope_ = {"net/frozen", true, {}, "", {}};
    const std::int64_t channels = x.spec.shape[1];
    const TypedValue weight = Argument({DType::kF32, {channels, channels, 1, 1}}, "frozen", Role::kInput);
    Keep("gelu", {Emit("conv2d", {x, weight}, {{"pad_mode", "same"}})[0]});
  }

  void AddWideConvolution(const TypedValue& x) {
    const std::int64_t filters = 8 * Between(4, 5), size = Chance(0.2) ? 3 : 1;
    Keep("conv2d", {x, Parameter({filters, x.spec.shape[1], size, size})}, {{"pad_mode", "same"}});
    if (Chance(0.8)) Keep("batch_norm_train", {pool_.back(), Parameter({filters}), Parameter({filters})});
    if (Chance(0.6)) AddElementwise(pool_.back());
  }

  void AddToRows(const TypedValue& x) {
    const Shape& shape = x.spec.shape;
    switch (Between(0, 7)) {
      case 0:
      case 1:
      case 2: {
        const std::int64_t columns = Between(1, 5);
        const bool transposed = Chance(0.5);
        std::vector<TypedValue> operands{x,
                                         Parameter(transposed ? Shape{columns, shape[1]} : Shape{shape[1], columns})};
        if (Chance(0.5)) operands.push_back(Parameter({columns}));
        return Keep("matmul", operands, {{"transpose_b", transposed}});
      }
      case 3:
        return Keep(Chance(0.5) ? "softmax" : "log_softmax", {x});
      case 4:
        return Keep("layer_norm", {x, Parameter({shape[1]}), Parameter({shape[1]})});
      case 5: {
        const TypedValue y = Pick(2);
        if (y.spec.shape[0] != shape[0] || y.spec.dtype != x.spec.dtype) break;
        return Keep("concat", {x, y}, {{"axis", std::int64_t{1}}});
      }
      case 6:
        return Keep("reduce_mean", {x}, {{"axes", std::vector<std::int64_t>{1}}, {"keep_dims", true}});
      default: {
        // Twice: rows stay the first axis.
        const Attributes swap{{"permutation", std::vector<std::int64_t>{1, 0}}};
        const TypedValue turned = Emit("transpose", {x}, swap)[0];
        return Keep("transpose", {Emit("relu", {turned})[0]}, swap);
      }
    }
    AddElementwise(x);
  }

  /// On the rows of kSamples sequences, as MultiHeadAttention has it, or with the product split first.
  void AddSelfAttention(const TypedValue& x) {
    const std::int64_t heads = Between(1, 3), width = Between(1, 4), joined = heads * width;
    std::vector<TypedValue> operands{x, Parameter({x.spec.shape[1], 3 * joined})};
    if (Chance(0.5)) operands.push_back(Parameter({3 * joined}));
    const TypedValue projected = Emit("matmul", operands)[0];
    const auto reshaped = [this](const TypedValue& value, std::vector<std::int64_t> shape) {
      return Emit("reshape", {value}, {{"shape", std::move(shape)}})[0];
    };
    const auto transposed = [this](const TypedValue& value, std::vector<std::int64_t> permutation) {
      return Emit("transpose", {value}, {{"permutation", std::move(permutation)}})[0];
    };
    std::vector<TypedValue> parts;
    if (Chance(0.5)) {
      const TypedValue all = reshaped(projected, {kSamples, kPositions, 3, heads, width});
      parts = Emit("split", {transposed(all, {2, 0, 3, 1, 4})}, {{"sizes", std::vector<std::int64_t>{1, 1, 1}}});
      for (TypedValue& part : parts) part = reshaped(part, {kSamples, heads, kPositions, width});
    } else {
      parts = Emit("split", {projected}, {{"sizes", std::vector<std::int64_t>(3, joined)}, {"axis", std::int64_t{1}}});
      for (TypedValue& part : parts) {
        part = transposed(reshaped(part, {kSamples, kPositions, heads, width}), {0, 2, 1, 3});
      }
    }
    const TypedValue y = Emit("attention", parts, {{"scale", 0.5}, {"causal", Chance(0.5)}})[0];
    pool_.push_back(reshaped(transposed(y, {0, 2, 1, 3}), {kSamples * kPositions, joined}));
  }

  void AddFusible(const TypedValue& x) {
    const Shape& shape = x.spec.shape;
    const std::vector<std::int64_t> rows{0}, columns{1};
    switch (Between(0, 11)) {
      case 0:
        return Keep("layer_norm", {x, Parameter({shape[1]}), Parameter({shape[1]})});
      case 1:
        return Keep("batch_norm_train", {x, Parameter({shape[1]}), Parameter({shape[1]})});
      case 2:
        return Keep(Chance(0.5) ? "softmax" : "log_softmax", {x});
      case 3: {
        const TypedValue mean = Emit("reduce_mean", {x}, {{"axes", columns}, {"keep_dims", true}})[0];
        return Keep("sub", {x, mean});
      }
      case 4: {
        const TypedValue sum = Emit("reduce_sum", {x}, {{"axes", rows}, {"keep_dims", Chance(0.5)}})[0];
        return Keep("add", {x, sum});
      }
      case 5: {
        const TypedValue largest = Emit("reduce_max", {x}, {{"axes", columns}, {"keep_dims", true}})[0];
        return Keep("mul", {x, largest});
      }
      case 6: {
        const TypedValue other = Partner(x);
        return Keep("where", {Emit("greater", {x, other})[0], x, other});
      }
      case 7:
        return Keep("clamp", {x}, {{"minimum", -1.5}, {"maximum", 1.25}});
      case 8:
        if (!Chance(0.4)) break;
        return Keep("matmul", {x, Parameter({shape[1], Between(1, 40)})});
      default:
        break;
    }
    AddElementwise(x);
  }

  void AddElementwise(const TypedValue& x) {
    static constexpr std::array<std::string_view, 9> kUnary = {"relu", "sigmoid", "tanh",   "neg",       "gelu",
                                                               "silu", "abs",     "square", "hard_swish"};
    switch (Between(0, 6)) {
      case 0:
      case 1:
        return Keep(kUnary[Between(0, static_cast<int>(kUnary.size()) - 1)], {x});
      case 2:
        return Keep(Chance(0.5) ? "add" : "sub", {x, Partner(x)});
      case 3:
        return Keep(Chance(0.5) ? "mul" : "maximum", {x, Partner(x)});
      case 4:
        return Keep(Chance(0.5) ? "mul_scalar" : "add_scalar", {x}, {{"value", 0.75}});
      case 5:
        return Keep("exp", {Emit("tanh", {x})[0]});
      default: {
        const DType dtype = Chance(0.4) ? DType::kF16 : Chance(0.5) ? DType::kBF16 : DType::kF32;
        return Keep("cast", {x}, {{"user", true}}, dtype);
      }
    }
  }

  TypedValue AddLoss() {
    TypedValue last = pool_.back();
    scope_.path = "net";
    if (last.spec.shape.size() == 4) {
      const Shape& shape = last.spec.shape;
      last =
          Emit("reshape", {last}, {{"shape", std::vector<std::int64_t>{shape[0], shape[1] * shape[2] * shape[3]}}})[0];
    }
    // The parameters that the network uses are at least those of a last layer.
    last = Emit("matmul", {last, Parameter({last.spec.shape[1], 3})})[0];
    const std::int64_t rows = last.spec.shape[0];
    switch (Between(0, 2)) {
      case 0:
        scope_ = {"loss", false, {}, "", {}};
        return Emit("mse", {last, Argument({DType::kF32, {rows, 3}}, "target", Role::kInput)})[0];
      case 1:
        scope_ = {"loss", false, {}, "", {}};
        return Emit("softmax_cross_entropy", {last, Argument({DType::kI32, {rows}}, "label", Role::kInput)})[0];
      default:
        return Emit("reduce_mean", {Emit("mul", {last, last})[0]}, {{"axes", std::vector<std::int64_t>{0, 1}}})[0];
    }
  }

  std::mt19937_64 random_;
  StepKind kind_;
  int most_rows_;
  bool updates_;
  GraphBuilder builder_;
  Scope scope_;
  std::vector<ValueHandle> outer_;  ///< what the step passes to the network
  std::vector<std::int64_t> wrt_;
  std::vector<TypedValue> pool_;
};

}  // namespace

compiler::Module MakeRandomGraph(std::uint64_t seed) {
  return Generator(seed, StepKind::kMixed, 0, /*updates=*/false).Run();
}

compiler::Module MakeRandomTrainingStep(std::uint64_t seed, StepKind kind) {
  return Generator(seed, kind, /*most_rows=*/6, /*updates=*/true).Run();
}

compiler::Module MakeRandomFusibleGraph(std::uint64_t seed, int most_rows) {
  return Generator(seed, StepKind::kFusible, most_rows, /*updates=*/false).Run();
}

}  // namespace mpc::test
