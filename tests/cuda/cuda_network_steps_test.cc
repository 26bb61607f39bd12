// What is proved of a whole step on a GPU, at every level: each kernel is within the bound derived for its operation,
// on the operands that it has in that step; and what the device leaves is what these kernels leave, bit for bit. The
// GPU is emulated and has the project's own kernels, or it is that of this machine. Nothing is assumed of how errors
// spread through a network. Beside another device that can only be estimated: where every rounding has a random error,
// the gradients of these bottleneck blocks end 4 to 5 times as far apart as the root of the number of roundings says
// (basic blocks: 2 to 2.6 times), since batch norm's gradients cancel; and a relu may decide by the last bit.
#include <gtest/gtest-spi.h>

#include <cstring>
#include <memory>
#include <utility>

#include "models/bnnet.h"
#include "models/lenet5.h"
#include "models/resnet.h"
#include "tests/cuda/network_runs.h"
#include "tests/cuda/step_by_operations.h"
#include "tests/kernels/kernel_run.h"

namespace mpc::testing {
namespace {

template <typename Network>
void ExpectStepsAreTheirOperations(const Workload& workload, const Level& level, std::unique_ptr<Network> (*make)()) {
  const FixedLossScaleManager fixed({.loss_scale = 128});
  const LossScaleChoice scale = level.dtype == DType::kF16 ? LossScaleChoice(fixed) : LossScaleChoice();
  DeviceRun<Network, nn::SoftmaxCrossEntropyWithLogits> gpu("cuda", level, make, scale);
  if (level.level == "auto") UseRates(*gpu.model, kRatesOfSmallNetworks);
  const Snapshot start = StateOf(*gpu.model);
  for (std::size_t step = 0; step < workload.batches.size(); ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    const Snapshot before = StateOf(*gpu.model);
    MPC_ASSERT_OK(gpu.model->Train(1, Batches({workload.batches[step]})));
    const Snapshot expected = test::RunByOperations(
        test::NetworkDeviceKernels(), gpu.model->compiled().front()->final_ir, before, workload.batches[step]);
    const Snapshot after = StateOf(*gpu.model);
    EXPECT_FALSE(expected.empty());
    for (const auto& [name, bytes] : expected) EXPECT_TRUE(after.at(name) == bytes) << name << " differs";
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_EQ(gpu.model->skipped_steps(), 0);
  EXPECT_NE(StateOf(*gpu.model), start) << "it trains";
  EXPECT_THAT(test::NetworkDeviceProblems(), ::testing::IsEmpty());
}

/// Operations stand alone in these steps: they run one at a time.
class CudaUnfusedSteps : public OnCuda {
 protected:
  void SetUp() override {
    OnCuda::SetUp();
    if (!IsSkipped()) MPC_ASSERT_OK(SetContext({.fusion = false}));
  }
};

class CudaNetworkSteps : public CudaUnfusedSteps, public ::testing::WithParamInterface<Level> {};
INSTANTIATE_TEST_SUITE_P(Levels, CudaNetworkSteps, ::testing::ValuesIn(AllLevels()), LevelName);

constexpr models::ResNetOptions kTiny = {
    .num_classes = 10, .num_channels = 3, .stem = models::ResNetStem::kCifar, .width = 4};

/// Residual networks of four blocks of 4 to 32 channels.
struct TinyResNet : models::ResNet<models::BasicBlock> {
  MPC_CELL(TinyResNet)
  TinyResNet() : ResNet({1, 1, 1, 1}, kTiny) {}
  Tensor Construct(Tensor x) { return ResNet::Construct(x); }
};
struct TinyBottleneckNet : models::ResNet<models::Bottleneck> {
  MPC_CELL(TinyBottleneckNet)
  TinyBottleneckNet() : ResNet({1, 1, 1, 1}, kTiny) {}
  Tensor Construct(Tensor x) { return ResNet::Construct(x); }
};

TEST_P(CudaNetworkSteps, LeNet5) {
  ExpectStepsAreTheirOperations<models::LeNet5>(ImageBatches(1, 32, 4, 2, 0), GetParam(),
                                                [] { return std::make_unique<models::LeNet5>(); });
}

TEST_P(CudaNetworkSteps, BasicBlocks) {
  ExpectStepsAreTheirOperations<TinyResNet>(ImageBatches(3, 16, 4, 2, 0), GetParam(),
                                            [] { return std::make_unique<TinyResNet>(); });
}

TEST_P(CudaNetworkSteps, BottleneckBlocks) {
  ExpectStepsAreTheirOperations<TinyBottleneckNet>(ImageBatches(3, 16, 4, 2, 0), GetParam(),
                                                   [] { return std::make_unique<TinyBottleneckNet>(); });
}

/// The kernels of the device, of which one forward convolution drops a term: it takes one weight for 0.
class KernelsWithAFault : public test::KernelDevice {
 public:
  /// `faulty`: the number of the convolution, from 0 in the order of creation; -1: none.
  explicit KernelsWithAFault(int faulty) : faulty_(faulty) {}

  absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelSpec& spec) const override {
    absl::StatusOr<std::unique_ptr<Kernel>> kernel = test::NetworkDeviceKernels().Create(spec);
    if (!kernel.ok() || spec.name != "conv2d" || convolutions_++ != faulty_) return kernel;
    return std::make_unique<Faulty>(spec, *std::move(kernel));
  }
  bool MayAlias(std::string_view name, std::size_t output, std::size_t input) const override {
    return test::NetworkDeviceKernels().MayAlias(name, output, input);
  }
  int convolutions() const { return convolutions_; }

 private:
  class Faulty : public Kernel {
   public:
    Faulty(KernelSpec spec, std::unique_ptr<Kernel> kernel) : spec_(std::move(spec)), kernel_(std::move(kernel)) {}
    std::size_t workspace_bytes() const override { return kernel_->workspace_bytes(); }
    absl::Status Run(const void* const* inputs, void* const* outputs, void* workspace) override {
      const TensorSpec& filter = spec_.inputs[1];
      test::GuardedBuffer weights(filter.bytes());
      std::memcpy(weights.data(), inputs[1], filter.bytes());
      // The middle of the first window: its pixels are never outside the image.
      const std::size_t element_bytes = filter.bytes() / static_cast<std::size_t>(filter.num_elements());
      const auto middle = static_cast<std::size_t>(filter.shape[2] / 2 * filter.shape[3] + filter.shape[3] / 2);
      std::memset(static_cast<std::uint8_t*>(weights.data()) + middle * element_bytes, 0, element_bytes);
      std::vector<const void*> given(inputs, inputs + spec_.inputs.size());
      given[1] = weights.data();
      return kernel_->Run(given.data(), outputs, workspace);
    }

   private:
    KernelSpec spec_;
    std::unique_ptr<Kernel> kernel_;
  };

  int faulty_;
  mutable int convolutions_ = 0;
};

class CudaPlantedFault : public CudaUnfusedSteps {};

TEST_F(CudaPlantedFault, OneTermThatOneConvolutionDropsIsFoundThere) {
  const Level level = {"O2", DType::kBF16};
  DeviceRun<TinyResNet, nn::SoftmaxCrossEntropyWithLogits> gpu(
      "cuda", level, [] { return std::make_unique<TinyResNet>(); }, LossScaleChoice());
  const data::Row batch = MakeBatch({3, 16, 16}, 4, 0, 10);
  const Snapshot before = StateOf(*gpu.model);
  MPC_ASSERT_OK(gpu.model->Train(1, Batches({batch})));
  const auto run = [&](const KernelsWithAFault& kernels) {
    ::testing::TestPartResultArray failures;
    {
      const ::testing::ScopedFakeTestPartResultReporter reporter(
          ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
      test::RunByOperations(kernels, gpu.model->compiled().front()->final_ir, before, batch);
    }
    std::string messages;
    for (int i = 0; i < failures.size(); ++i) messages += failures.GetTestPartResult(i).message();
    return std::pair(failures.size(), messages);
  };
  const KernelsWithAFault right(-1);
  EXPECT_EQ(run(right), std::pair(0, std::string()));
  ASSERT_GE(right.convolutions(), 9);
  // The last one adds most terms, 288, so that one of them weighs least.
  for (const int faulty : {0, right.convolutions() - 1}) {
    const auto [failures, messages] = run(KernelsWithAFault(faulty));
    EXPECT_EQ(failures, 1) << faulty;
    EXPECT_THAT(messages, ::testing::HasSubstr("mpc.conv2d result 0")) << faulty;
  }
}

class CudaConvStatistics : public OnCuda {
 protected:
  void SetUp() override {
    OnCuda::SetUp();
    if (IsSkipped()) return;
    MPC_ASSERT_OK(SetContext({.device = "cuda", .fusion = false, .allow_conv_statistics = true}));
  }
};

TEST_F(CudaConvStatistics, OfOneConvolutionOfThree) {
  const Level level = {"O2", DType::kF16};
  ExpectStepsAreTheirOperations<models::BnNet>(ImageBatches(1, 32, 4, 2, 0), level,
                                               [] { return std::make_unique<models::BnNet>(); });
  DeviceRun<models::BnNet, nn::SoftmaxCrossEntropyWithLogits> gpu(
      "cuda", level, [] { return std::make_unique<models::BnNet>(); }, LossScaleChoice());
  MPC_ASSERT_OK(gpu.model->Train(1, Batches({MakeBatch({1, 32, 32}, 4, 0, 10)})));
  EXPECT_THAT(gpu.model->compiled().front()->final_ir.Print(), ::testing::HasSubstr("mpc.conv2d_statistics"));
}

}  // namespace
}  // namespace mpc::testing
