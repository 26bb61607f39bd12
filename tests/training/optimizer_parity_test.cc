// AMP-30: optimizers beside PyTorch's, with and without parameter groups. tools/parity/make_optimizer_goldens.py makes
// the golden values, in f64.
#include <functional>

#include "tests/training/goldens_file.h"
#include "tests/training/training_support.h"

namespace mpc::testing {
namespace {

constexpr int kWeights = 2;
constexpr int kElements = 4;

Tensor Start(int weight) {
  std::vector<float> values;
  for (int element = 0; element < kElements; ++element) values.push_back(0.5f + 0.25f * weight - 0.375f * element);
  return Tensor::From(values, {kElements});
}

Tensor GradientAt(int step, int weight) {
  std::vector<float> values;
  for (int element = 0; element < kElements; ++element) {
    values.push_back(static_cast<float>((step * 7 + element * 5 + weight * 3) % 17 - 8) / 16.0f);
  }
  return Tensor::From(values, {kElements});
}

/// Gives an optimizer two weights and the gradients of the step.
class GivenGradients : public nn::TrainingStep {
 public:
  MPC_CELL(GivenGradients, first, second)
  Tensor Construct(Tensor of_first, Tensor of_second) {
    return ops::Depend(of_first, (*optimizer)({of_first, of_second}));
  }
  Parameter first{Start(0)};
  Parameter second{Start(1)};
  std::unique_ptr<nn::Optimizer> optimizer;
};

using Maker = std::function<std::unique_ptr<nn::Optimizer>(const nn::ParameterGroups&)>;

template <typename Optimizer, typename Options>
Maker Make(const Options& options) {
  return [options](const nn::ParameterGroups& groups) { return std::make_unique<Optimizer>(groups, options); };
}

std::map<std::string, Maker> Makers() {
  return {
      {"sgd", Make<nn::SGD>(nn::SGDOptions{.learning_rate = 0.1})},
      {"sgd_decay", Make<nn::SGD>(nn::SGDOptions{.learning_rate = 0.1, .weight_decay = 0.02})},
      {"sgd_momentum",
       Make<nn::SGD>(nn::SGDOptions{.learning_rate = 0.1, .momentum = 0.8, .dampening = 0.3, .weight_decay = 0.01})},
      {"sgd_nesterov", Make<nn::SGD>(nn::SGDOptions{.learning_rate = 0.1, .momentum = 0.8, .nesterov = true})},
      {"sgd_groups", Make<nn::SGD>(nn::SGDOptions{.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.02})},
      {"adam", Make<nn::Adam>(nn::AdamOptions{.learning_rate = 0.01, .eps = 1e-12})},
      {"adam_decay", Make<nn::Adam>(nn::AdamOptions{.learning_rate = 0.01, .eps = 1e-12, .weight_decay = 0.05})},
      {"adamw", Make<nn::AdamW>(nn::AdamWOptions{.learning_rate = 0.01})},
      {"adamw_decay", Make<nn::AdamW>(nn::AdamWOptions{
                          .learning_rate = 0.01, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-4, .weight_decay = 0.1})},
      {"adamw_groups", Make<nn::AdamW>(nn::AdamWOptions{.learning_rate = 0.01, .weight_decay = 0.1})},
  };
}

nn::ParameterGroups GroupsOf(const GivenGradients& step, const std::string& name) {
  if (name.find("_groups") == std::string::npos) return {step.first, step.second};
  const double rate = name.rfind("sgd", 0) == 0 ? 0.1 : 0.01;
  return {nn::ParameterGroup{.params = {step.first}},
          nn::ParameterGroup{.params = {step.second}, .learning_rate = rate * 0.5, .weight_decay = 0.0}};
}

TEST(OptimizerParity, AMP_30_WeightsFollowPyTorchs) {
  const std::map<std::string, Maker> makers = Makers();
  const std::vector<GoldenCase> cases = ReadGoldens(std::string(MPC_GOLDENS) + "/optimizers.txt", "case");
  ASSERT_EQ(cases.size(), makers.size());
  for (const GoldenCase& golden : cases) {
    SCOPED_TRACE(golden.name);
    GivenGradients step;
    step.optimizer = makers.at(golden.name)(GroupsOf(step, golden.name));
    for (std::size_t i = 0; i < golden.lines.size(); ++i) {
      MPC_ASSERT_OK(step(GradientAt(static_cast<int>(i), 0), GradientAt(static_cast<int>(i), 1)).status());
      for (int weight = 0; weight < kWeights; ++weight) {
        const std::vector<float> values = (weight == 0 ? step.first : step.second).Value()->ToFloats();
        for (int element = 0; element < kElements; ++element) {
          // Weights stay below 2: half an ulp of 2^-23 for the weight, and a few relative 2^-24 of an update below 0.5,
          // at each step.
          const double tolerance = static_cast<double>(i + 1) * 3 * 0x1p-24;
          ASSERT_NEAR(values[static_cast<std::size_t>(element)],
                      golden.lines[i][static_cast<std::size_t>(weight * kElements + element)], tolerance)
              << "step " << i << " weight " << weight << " element " << element;
        }
      }
    }
  }
}

}  // namespace
}  // namespace mpc::testing
