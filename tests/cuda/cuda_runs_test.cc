// How a network trains on a GPU, emulated or that of this machine (network_device.h): overflows, graphs, steps a
// launch, what a level decided.
#include <gmock/gmock.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "kernels/state_hash.h"
#include "models/bnnet.h"
#include "models/lenet5.h"
#include "tests/cuda/network_runs.h"

namespace mpc::testing {
namespace {

using LeNetRun = DeviceRun<models::LeNet5, nn::SoftmaxCrossEntropyWithLogits>;

using CudaLossScale = OnCuda;

TEST_F(CudaLossScale, AnOverflowChangesNothingButTheScaler) {
  const Level level{"O2", DType::kF16};
  const DynamicLossScaleManager dynamic({.init_loss_scale = 256});
  const auto make = [] { return std::make_unique<models::BnNet>(); };
  using BnNetRun = DeviceRun<models::BnNet, nn::SoftmaxCrossEntropyWithLogits>;
  BnNetRun cpu("cpu", level, make, dynamic), gpu("cuda", level, make, dynamic);
  for (std::int64_t step = 0; step < 5; ++step) {
    SCOPED_TRACE(step);
    const bool overflows = step == 2;
    data::Row batch = MakeBatch({1, 32, 32}, 4, step, 10);
    if (overflows) batch = WithBadValue(batch, kInfinity);
    const Snapshot before = StateOf(*gpu.model);
    MPC_ASSERT_OK(cpu.model->Train(1, Batches({batch})));
    MPC_ASSERT_OK(gpu.model->Train(1, Batches({batch})));
    const Snapshot after = StateOf(*gpu.model);
    EXPECT_EQ(Differences(WithoutScaler(before), WithoutScaler(after)).empty(), overflows);
    EXPECT_EQ(gpu.model->loss_scale(), step < 2 ? 256 : 128);
    EXPECT_EQ(gpu.model->loss_scale(), cpu.model->loss_scale());
    EXPECT_EQ(gpu.model->skipped_steps(), cpu.model->skipped_steps());
  }
  EXPECT_EQ(gpu.model->skipped_steps(), 1);
  EXPECT_THAT(test::NetworkDeviceProblems(), ::testing::IsEmpty());
}

/// The state after five steps in a context.
Snapshot TrainLeNet(ContextOptions context) {
  context.fusion = test::NetworkDeviceFusion();
  MPC_EXPECT_OK(SetContext(context));
  const FixedLossScaleManager fixed({.loss_scale = 128});
  LeNetRun run(
      "cuda", {"O2", DType::kF16}, [] { return std::make_unique<models::LeNet5>(); }, fixed);
  std::vector<data::Row> batches;
  for (std::int64_t step = 0; step < 5; ++step) batches.push_back(MakeBatch({1, 32, 32}, 2, step, 10));
  MPC_EXPECT_OK(run.model->Train(1, Batches(batches)));
  const Snapshot state = StateOf(*run.model);
  MPC_EXPECT_OK(SetContext({}));
  return state;
}

/// The hash of each step that BnNet makes in a context.
std::vector<std::uint64_t> HashesOfBnNet(ContextOptions context) {
  context.fusion = test::NetworkDeviceFusion();
  MPC_EXPECT_OK(SetContext(context));
  using BnNetRun = DeviceRun<models::BnNet, nn::SoftmaxCrossEntropyWithLogits>;
  const DynamicLossScaleManager dynamic({.init_loss_scale = 256});
  BnNetRun run(
      context.device, {"O2", DType::kF16}, [] { return std::make_unique<models::BnNet>(); }, dynamic);
  Model model(*run.network, run.loss, run.optimizer,
              {.amp_level = "O2",
               .loss_scale_manager = dynamic,
               .amp_dtype = DType::kF16,
               .device = context.device,
               .record_state_hash = true});
  std::vector<data::Row> batches;
  for (std::int64_t step = 0; step < 4; ++step) batches.push_back(MakeBatch({1, 32, 32}, 2, step, 10));
  batches[2] = WithBadValue(batches[2], kInfinity);
  std::vector<std::uint64_t> hashes;
  LambdaCallback record(
      {.on_train_step_end = [&](RunContext& step) { hashes.push_back(step.state_hash.value_or(0)); }});
  MPC_EXPECT_OK(model.Train(1, Batches(batches), {record}));
  std::uint64_t of_the_host = 0;
  for (const auto& [name, bytes] : StateOf(model)) {
    // The network draws nothing, so that its step has no generator.
    if (!name.starts_with("rng.")) of_the_host += HashBytes(HashKey(name), bytes.data(), bytes.size());
  }
  EXPECT_EQ(hashes.back(), of_the_host) << context.device;
  MPC_EXPECT_OK(SetContext({}));
  return hashes;
}

using CudaStateHash = OnCuda;

TEST_F(CudaStateHash, IsOfTheStateAfterEachStepHoweverStepsAreLaunched) {
  const std::vector<std::uint64_t> hashes = HashesOfBnNet({.device = "cuda"});
  EXPECT_EQ(std::set<std::uint64_t>(hashes.begin(), hashes.end()).size(), 4u);
  EXPECT_EQ(HashesOfBnNet({.device = "cuda", .graph = false}), hashes);
  EXPECT_EQ(HashesOfBnNet({.device = "cuda", .steps_per_launch = 2}), hashes);
  HashesOfBnNet({.device = "cpu"});
  EXPECT_THAT(test::NetworkDeviceProblems(), ::testing::IsEmpty());
}

using CudaContext = OnCuda;

TEST_F(CudaContext, GraphsAndStepsALaunchChangeNoBit) {
  test::CountingApi* const calls = test::NetworkDeviceCalls();
  const auto launches = [calls] { return calls == nullptr ? 0 : calls->counts().graph_launches; };
  const Snapshot state = TrainLeNet({.device = "cuda"});
  EXPECT_EQ(Differences(state, TrainLeNet({.device = "cuda"})), std::vector<std::string>{}) << "two runs";
  const std::size_t before = launches();
  EXPECT_EQ(Differences(state, TrainLeNet({.device = "cuda", .graph = false})), std::vector<std::string>{});
  EXPECT_EQ(launches(), before);
  EXPECT_EQ(Differences(state, TrainLeNet({.device = "cuda", .steps_per_launch = 4})), std::vector<std::string>{});
  if (calls != nullptr) {
    EXPECT_EQ(launches(), before + 2) << "four steps, then one";
  }
}

TEST_F(CudaContext, LevelAutoDecidesByTheRatesThatItIsGiven) {
  const auto low_slots = [](const compiler::DeviceRates& rates) {
    LeNetRun run("cuda", {"auto", DType::kBF16}, [] { return std::make_unique<models::LeNet5>(); }, {});
    UseRates(*run.model, rates);
    MPC_EXPECT_OK(run.model->Train(1, Batches({MakeBatch({1, 32, 32}, 4, 0, 10)})));
    int count = 0;
    for (const auto& [slot, type] : run.model->compiled().front()->assignment) count += type == "bf16" ? 1 : 0;
    return count;
  };
  compiler::DeviceRates no_gain = kRatesOfSmallNetworks;
  no_gain.low_flops = no_gain.f32_flops;
  no_gain.bytes_per_second = 1e15;
  EXPECT_EQ(low_slots(no_gain), 0);
  EXPECT_GT(low_slots(kRatesOfSmallNetworks), 0);
}

}  // namespace
}  // namespace mpc::testing
