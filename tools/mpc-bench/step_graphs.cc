#include "tools/mpc-bench/step_graphs.h"

namespace mpc::tools {
namespace {

using Value = compiler::TypedValue;
using Graph = GraphUnderTest;

/// Sizes are N x T: T tensors of N elements. Operations on tensors of the same kind become one kernel, as those on a
/// network's parameters do. One tensor of N * T elements is what they would be in a flat buffer.
constexpr char kSizes[] = "NxT";

Shape Tensor(const Shape& s) { return {s[0]}; }

/// Momentum of each tensor, with gradients that `gradient` makes.
template <typename Gradient>
void Momentum(Graph& graph, const Shape& s, const Gradient& gradient) {
  const Value rate = graph.Scalar(1e-3);
  for (std::int64_t i = 0; i < s[1]; ++i) {
    const Value parameter = graph.F32Argument(Tensor(s));
    const Value velocity = graph.F32Argument(Tensor(s));
    const std::vector<Value> updated =
        graph.Emit("momentum", {parameter, velocity, gradient(graph.Argument(Tensor(s))), rate});
    graph.Update(parameter, updated[0]);
    graph.Update(velocity, updated[1]);
  }
}

void AllFinite(Graph& graph, const Shape& s) {
  std::vector<Value> operands = {graph.Scalar(1), graph.Scalar(1)};
  for (std::int64_t i = 0; i < s[1]; ++i) operands.push_back(graph.Argument(Tensor(s)));
  for (const Value& result : graph.Emit("all_finite", operands)) graph.Result(result);
}

void GlobalNorm(Graph& graph, const Shape& s) {
  std::vector<Value> gradients;
  for (std::int64_t i = 0; i < s[1]; ++i) gradients.push_back(graph.Argument(Tensor(s)));
  graph.Result(graph.Op("global_norm", gradients));
}

/// The compiler folds the division into the update, unless something else reads the unscaled gradients too.
void UnscaleMomentum(Graph& graph, const Shape& s, bool apart) {
  const Value scale = graph.Scalar(1024);
  Momentum(graph, s, [&](const Value& gradient) {
    const Value unscaled = graph.Op("unscale", {gradient, scale});
    if (apart) graph.Result(unscaled);
    return unscaled;
  });
}

void AdamW(Graph& graph, const Shape& s) {
  const Value rate = graph.Scalar(1e-3), step = graph.Scalar(1, DType::kI32);
  for (std::int64_t i = 0; i < s[1]; ++i) {
    const Value parameter = graph.F32Argument(Tensor(s));
    const Value moment1 = graph.F32Argument(Tensor(s));
    const Value moment2 = graph.F32Argument(Tensor(s), Fill::kPositive);
    const std::vector<Value> updated =
        graph.Emit("adamw", {parameter, moment1, moment2, graph.Argument(Tensor(s)), rate, step});
    graph.Update(parameter, updated[0]);
    graph.Update(moment1, updated[1]);
    graph.Update(moment2, updated[2]);
  }
}

}  // namespace

std::vector<OpGraph> StepGraphs() {
  const Shape one = {1 << 24, 1};
  return {
      {"all_finite", kSizes, one, AllFinite, {}},
      {"global_norm", kSizes, one, GlobalNorm, {}},
      {"momentum",
       kSizes,
       one,
       [](Graph& graph, const Shape& s) { Momentum(graph, s, [](const Value& gradient) { return gradient; }); },
       {}},
      {"unscale_momentum", kSizes, one, [](Graph& graph, const Shape& s) { UnscaleMomentum(graph, s, false); }, {}},
      {"unscale_momentum_apart",
       kSizes,
       one,
       [](Graph& graph, const Shape& s) { UnscaleMomentum(graph, s, true); },
       {}},
      {"adamw", kSizes, one, AdamW, {}},
  };
}

}  // namespace mpc::tools
