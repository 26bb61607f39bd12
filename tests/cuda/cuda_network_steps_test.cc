// What is proved of a whole step on an emulated GPU, at every level: each kernel is within the bound derived for its
// operation, on the operands that it has in that step; and what the device leaves is what these kernels leave, bit for
// bit. Nothing is assumed of how errors spread through a network. Beside another device that can only be estimated:
// where every rounding has a random error, the gradients of these bottleneck blocks end 4 to 5 times as far apart as
// the root of the number of roundings says (basic blocks: 2 to 2.6 times), since batch norm's gradients cancel; and a
// relu may decide by the last bit.
#include <memory>

#include "models/bnnet.h"
#include "models/lenet5.h"
#include "models/resnet.h"
#include "tests/cuda/emulated_kernel_device.h"
#include "tests/cuda/network_runs.h"
#include "tests/cuda/step_by_operations.h"

namespace mpc::testing {
namespace {

/// The kernels that the emulated GPU makes.
std::unique_ptr<test::KernelDevice> KernelsOfTheGpu() {
  const absl::StatusOr<runtime::CudaDeviceProperties> properties = test::NetworkDeviceCalls()->Properties();
  EXPECT_TRUE(properties.ok()) << properties.status();
  cuda::KernelContext context = test::EmulatedContext();
  if (properties.ok()) context.target = {properties->compute_capability, properties->multiprocessors};
  return test::EmulatedKernelsIn(context);
}

template <typename Network>
void ExpectStepsAreTheirOperations(const Workload& workload, const Level& level, std::unique_ptr<Network> (*make)()) {
  const FixedLossScaleManager fixed({.loss_scale = 128});
  const LossScaleChoice scale = level.dtype == DType::kF16 ? LossScaleChoice(fixed) : LossScaleChoice();
  DeviceRun<Network, nn::SoftmaxCrossEntropyWithLogits> gpu("cuda", level, make, scale);
  if (level.level == "auto") UseRates(*gpu.model, kRatesOfSmallNetworks);
  const std::unique_ptr<test::KernelDevice> kernels = KernelsOfTheGpu();
  const Snapshot start = StateOf(*gpu.model);
  for (std::size_t step = 0; step < workload.batches.size(); ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    const Snapshot before = StateOf(*gpu.model);
    MPC_ASSERT_OK(gpu.model->Train(1, Batches({workload.batches[step]})));
    const Snapshot expected =
        test::RunByOperations(*kernels, gpu.model->compiled().front()->final_ir, before, workload.batches[step]);
    const Snapshot after = StateOf(*gpu.model);
    EXPECT_FALSE(expected.empty());
    for (const auto& [name, bytes] : expected) EXPECT_TRUE(after.at(name) == bytes) << name << " differs";
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_EQ(gpu.model->skipped_steps(), 0);
  EXPECT_NE(StateOf(*gpu.model), start) << "it trains";
  EXPECT_THAT(test::NetworkDeviceProblems(), ::testing::IsEmpty());
}

class CudaNetworkSteps : public OnCuda, public ::testing::WithParamInterface<Level> {};
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

class CudaConvStatistics : public OnCuda {
 protected:
  void SetUp() override {
    OnCuda::SetUp();
    MPC_ASSERT_OK(SetContext({.device = "cuda", .allow_conv_statistics = true}));
  }
  void TearDown() override { MPC_ASSERT_OK(SetContext({})); }
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
