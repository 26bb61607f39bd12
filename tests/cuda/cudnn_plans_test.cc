// Every cuDNN graph of every model gets a plan, for GPUs that are not here.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "kernels/cuda/library/cudnn_kernel.h"
#include "tests/cuda/model_kernels.h"

namespace mpc::testing {
namespace {

const std::map<std::string, ModelKernel>& ModelKernels() {
  static const auto* const kernels = new std::map<std::string, ModelKernel>(CudnnOperationsOf(StepsOfAllModels()));
  return *kernels;
}

bool IsAttention(const KernelSpec& spec) { return spec.name.find("attention") != std::string::npos; }

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
    SCOPED_TRACE(entry.step.model + " " + entry.step.level + ": " + key);
    const KernelSpec& spec = entry.spec;
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
    SCOPED_TRACE(entry.step.model + " " + entry.step.level + ": " + key);
    cuda::KernelContext context = Context();
    const absl::StatusOr<std::unique_ptr<cuda::Kernel>> first = cuda::CreateKernel(entry.spec, context);
    const absl::StatusOr<std::unique_ptr<cuda::Kernel>> second = cuda::CreateKernel(entry.spec, context);
    ASSERT_TRUE(first.ok() && second.ok());
    context.choice = (*first)->choice();
    const absl::StatusOr<std::unique_ptr<cuda::Kernel>> named = cuda::CreateKernel(entry.spec, context);
    ASSERT_TRUE(named.ok()) << named.status();
    for (const auto* other : {&second, &named}) {
      EXPECT_EQ((**other)->choice(), (*first)->choice());
      EXPECT_EQ((**other)->workspace_bytes(), (*first)->workspace_bytes());
    }
  }
}

TEST_P(CudnnPlans, TakeTheStatisticsOfEachConvolutionThatThePassChooses) {
  std::size_t with_statistics = 0;
  for (const auto& [key, entry] : ModelKernels()) with_statistics += entry.spec.name == "conv2d_statistics" ? 1 : 0;
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
