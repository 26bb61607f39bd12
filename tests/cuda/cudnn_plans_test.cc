// Every cuDNN graph of every model gets a plan, for GPUs that are not here.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "kernels/cuda/library/cudnn_kernel.h"
#include "tests/cuda/model_kernels.h"

namespace mpc::testing {
namespace {

const std::set<std::string> kCudnnOperations = {"attention",         "attention_grad",     "conv2d",
                                                "conv2d_grad_input", "conv2d_grad_weight", "conv2d_statistics",
                                                "conv_transpose2d"};

/// Steps at the batch sizes that they are meant for.
std::vector<ModelStep> ModelSteps() {
  const std::vector<std::pair<std::string, std::int64_t>> models = {{"lenet5", 32},
                                                                    {"lenet5", 1024},
                                                                    {"bnnet", 32},
                                                                    {"dcgan-generator", 64},
                                                                    {"dcgan-discriminator", 64},
                                                                    {"resnet18", 128},
                                                                    {"resnet18-imagenet", 64},
                                                                    {"resnet50-imagenet", 256},
                                                                    {"bert-tiny", 8},
                                                                    {"bert", 32},
                                                                    {"gpt2-tiny", 8},
                                                                    {"gpt2", 32}};
  std::vector<ModelStep> steps;
  for (const auto& [model, batch] : models) {
    for (bool train : {false, true}) {
      steps.push_back({model, batch, train, "O0", std::nullopt});
      steps.push_back({model, batch, train, "O2", DType::kF16});
      steps.push_back({model, batch, train, "O2", DType::kBF16});
    }
  }
  for (const auto& [model, batch] : models) {
    steps.push_back({model, batch, /*train=*/true, "O2", DType::kF16, /*conv_statistics=*/true});
  }
  return steps;
}

/// The convolutions and attentions of all models, each once, with the first step that has it.
const std::map<std::string, std::pair<KernelSpec, std::string>>& ModelKernels() {
  static const auto* const kernels = [] {
    auto* found = new std::map<std::string, std::pair<KernelSpec, std::string>>;
    for (const ModelStep& step : ModelSteps()) {
      absl::StatusOr<std::vector<KernelSpec>> specs = KernelsOf(step);
      EXPECT_TRUE(specs.ok()) << step.model << " " << step.level << ": " << specs.status();
      if (!specs.ok()) continue;
      for (KernelSpec& spec : *specs) {
        if (kCudnnOperations.count(spec.name) == 0) continue;
        std::string key = cuda::ChoiceKey(spec);
        found->emplace(std::move(key), std::pair(std::move(spec), step.model + " " + step.level));
      }
    }
    return found;
  }();
  return *kernels;
}

bool IsAttention(const KernelSpec& spec) { return spec.name.rfind("attention", 0) == 0; }

/// Why the project's own kernel is expected; empty: it is not.
std::string ReasonForOwnKernel(const KernelSpec& spec) {
  if (IsAttention(spec)) return spec.inputs[0].dtype == DType::kF32 ? "cuDNN's attention is low" : "";
  const Shape& filter = spec.name == "conv2d_grad_weight" ? spec.outputs[0].shape : spec.inputs[1].shape;
  return std::min(filter[0], filter[1]) < 16 ? "few channels" : "";
}

class CudnnPlans : public ::testing::TestWithParam<int> {
 protected:
  cuda::KernelContext Context() const {
    cuda::KernelContext context;
    context.target.compute_capability = GetParam();
    return context;
  }
};

TEST_P(CudnnPlans, EveryModelsConvolutionsAndAttentionsHaveOneThatKeepsTheContract) {
  ASSERT_GT(ModelKernels().size(), 100u);
  std::size_t on_cudnn = 0;
  for (const auto& [key, entry] : ModelKernels()) {
    SCOPED_TRACE(entry.second + ": " + key);
    const KernelSpec& spec = entry.first;
    const cuda::KernelContext context = Context();
    const absl::StatusOr<std::unique_ptr<cuda::Kernel>> kernel = cuda::CreateKernel(spec, context);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    EXPECT_LE((*kernel)->workspace_bytes(), context.workspace_cap);
    const auto* cudnn = dynamic_cast<const cuda::CudnnKernel*>(kernel->get());
    if (cudnn == nullptr) {
      EXPECT_EQ((*kernel)->choice(), "own");
      EXPECT_NE(ReasonForOwnKernel(spec), "") << "cuDNN should have taken this";
      continue;
    }
    ++on_cudnn;
    const bool is_f32 = spec.inputs[0].dtype == DType::kF32;
    for (const std::string& note : cudnn->numerical_notes()) {
      EXPECT_TRUE(note == "STRICT_NAN_PROP" || (note == "TENSOR_CORE" && !is_f32)) << note;
    }
  }
  EXPECT_GT(on_cudnn, 100u);
}

TEST_P(CudnnPlans, AreTheSameWhenMadeAgainAndWhenAskedForByName) {
  for (const auto& [key, entry] : ModelKernels()) {
    SCOPED_TRACE(entry.second + ": " + key);
    cuda::KernelContext context = Context();
    const absl::StatusOr<std::unique_ptr<cuda::Kernel>> first = cuda::CreateKernel(entry.first, context);
    const absl::StatusOr<std::unique_ptr<cuda::Kernel>> second = cuda::CreateKernel(entry.first, context);
    ASSERT_TRUE(first.ok() && second.ok());
    context.choice = (*first)->choice();
    const absl::StatusOr<std::unique_ptr<cuda::Kernel>> named = cuda::CreateKernel(entry.first, context);
    ASSERT_TRUE(named.ok()) << named.status();
    for (const auto* other : {&second, &named}) {
      EXPECT_EQ((**other)->choice(), (*first)->choice());
      EXPECT_EQ((**other)->workspace_bytes(), (*first)->workspace_bytes());
    }
  }
}

TEST_P(CudnnPlans, TakeTheStatisticsOfEachConvolutionThatThePassChooses) {
  std::size_t with_statistics = 0;
  for (const auto& [key, entry] : ModelKernels()) with_statistics += entry.first.name == "conv2d_statistics" ? 1 : 0;
  EXPECT_GE(with_statistics, 30u);
  // The least that the pass takes: 32 channels, and others that are multiples of 8.
  const auto on_cudnn = [&](DType dtype, std::int64_t inputs, std::int64_t results) {
    const TensorSpec x{dtype, {4, 14, 14, inputs}}, y{dtype, {4, 14, 14, results}};
    const TensorSpec filter{dtype, {results, inputs, 3, 3}}, statistic{DType::kF32, {results}};
    const KernelSpec spec{"conv2d_statistics",
                          {x, filter},
                          {y, statistic, statistic, statistic},
                          {},
                          {{"data_format", std::string("NHWC")}, {"pad_mode", std::string("same")}}};
    const absl::StatusOr<std::unique_ptr<cuda::Kernel>> kernel = cuda::CreateKernel(spec, Context());
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    return kernel.ok() && (*kernel)->choice() != "own";
  };
  EXPECT_TRUE(on_cudnn(DType::kF16, 32, 32));
  EXPECT_TRUE(on_cudnn(DType::kF16, 32, 40));
  EXPECT_TRUE(on_cudnn(DType::kF16, 72, 32));
  EXPECT_TRUE(on_cudnn(DType::kF16, 40, 136));
  // Why it takes no others.
  EXPECT_FALSE(on_cudnn(DType::kF16, 36, 32));
  EXPECT_FALSE(on_cudnn(DType::kF16, 8, 32));
  EXPECT_FALSE(on_cudnn(DType::kBF16, 64, 64));
  EXPECT_FALSE(on_cudnn(DType::kF32, 64, 64));
}

INSTANTIATE_TEST_SUITE_P(Architectures, CudnnPlans, ::testing::Values(80, 90),
                         [](const auto& info) { return "Sm" + std::to_string(info.param); });

}  // namespace
}  // namespace mpc::testing
