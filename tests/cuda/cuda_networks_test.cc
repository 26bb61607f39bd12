// Whole networks train on a GPU as they do on the CPU: step by step, at every precision. What differs is the order of
// sums, and with it a rounding here and there. The GPU is emulated and has the project's own kernels, or it is that of
// this machine with the vendor's libraries (network_device.h).
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "models/bnnet.h"
#include "models/dcgan.h"
#include "models/gpt2.h"
#include "models/lenet5.h"
#include "tests/cuda/network_device.h"
#include "tests/training/training_support.h"

namespace mpc::testing {
namespace {

struct Precision {
  std::string level;
  std::optional<DType> dtype;
};

std::string PrecisionName(const ::testing::TestParamInfo<Precision>& info) {
  return info.param.level + (info.param.dtype.has_value() ? "_" + std::string(DTypeName(*info.param.dtype)) : "");
}

std::vector<Precision> Precisions() {
  return {{"O0", {}}, {"O1", DType::kF16}, {"O2", DType::kF16}, {"O2", DType::kBF16}};
}

/// Half the distance between neighbours at 1.
double UnitRoundoff(const Precision& precision) {
  if (precision.dtype == DType::kF16) return 0x1p-11;
  return precision.dtype == DType::kBF16 ? 0x1p-8 : 0x1p-24;
}

template <typename Network, typename Loss>
struct DeviceRun {
  DeviceRun(const std::string& device, const Precision& precision, std::unique_ptr<Network> (*make)(),
            const LossScaleChoice& scale)
      : network((SetSeed(7), make())),
        loss(MakeLoss()),
        optimizer(network->TrainableParams(), {.learning_rate = 0.05}) {
    model = std::make_unique<Model>(
        *network, loss, optimizer,
        ModelOptions{
            .amp_level = precision.level, .loss_scale_manager = scale, .amp_dtype = precision.dtype, .device = device});
  }
  static Loss MakeLoss() {
    if constexpr (std::is_same_v<Loss, nn::SoftmaxCrossEntropyWithLogits>) {
      return Loss({.reduction = "mean"});
    } else {
      return Loss();
    }
  }
  std::unique_ptr<Network> network;
  Loss loss;
  nn::Momentum optimizer;
  std::unique_ptr<Model> model;
};

std::vector<float> FloatsOf(const std::vector<std::uint8_t>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

/// |a - b|, in the Euclidean norm.
double Distance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
  return std::sqrt(sum);
}

/// How far two devices may end apart after one step from equal state, as a part of the way that the step went. It makes
/// `roundings` roundings one after another, forward and backward. A device that adds in another order rounds some of
/// them the other way, by twice the unit roundoff, and its f32 sums of up to 2^10 terms differ by the square root of
/// that many roundings. These errors are independent from element to element and from layer to layer: in the norm of a
/// tensor their squares add.
double Tolerance(const Precision& precision, int roundings) {
  const double sums = 0x1p-24 * 32;
  return std::sqrt(roundings) * (2 * UnitRoundoff(precision) + sums);
}

/// Gives `to` the state of `from`.
void CopyState(const Model& from, const Model& to) {
  for (Parameter& entry : to.AllState()) {
    const absl::StatusOr<Tensor> value = from.State(entry.name()).Value();
    ASSERT_TRUE(value.ok()) << value.status();
    MPC_ASSERT_OK(entry.SetData(*value));
  }
}

/// What both devices must agree on bit for bit: counters, the scaler, learning rates, the generator.
bool IsExact(const std::string& name) {
  return name.rfind("scaler.", 0) == 0 || name.rfind("rng.", 0) == 0 || name == "optimizer.step" ||
         name == "optimizer.learning_rate";
}

/// Compares what moved, tensor by tensor: the distance of the two results against the way from where they began.
void ExpectSameWay(const Snapshot& start, const Snapshot& on_cpu, const Snapshot& on_gpu, double tolerance) {
  ASSERT_EQ(on_cpu.size(), on_gpu.size());
  for (const auto& [name, bytes] : on_cpu) {
    ASSERT_TRUE(on_gpu.count(name)) << name;
    if (on_gpu.at(name) == bytes) continue;
    EXPECT_FALSE(IsExact(name)) << name << " differs";
    const std::vector<float> first = FloatsOf(start.at(name)), cpu = FloatsOf(bytes), gpu = FloatsOf(on_gpu.at(name));
    const double ulps = 0x1p-23 * Distance(cpu, std::vector<float>(cpu.size(), 0.0f));
    EXPECT_LE(Distance(cpu, gpu), tolerance * Distance(cpu, first) + ulps) << name;
  }
}

struct Workload {
  std::vector<data::Row> batches;
  int roundings;  ///< that follow each other in one step
};

template <typename Network, typename Loss>
void ExpectFollowsTheCpu(const Workload& workload, const Precision& precision, std::unique_ptr<Network> (*make)()) {
  const FixedLossScaleManager fixed({.loss_scale = 128});
  const LossScaleChoice scale = precision.dtype == DType::kF16 ? LossScaleChoice(fixed) : LossScaleChoice();
  DeviceRun<Network, Loss> cpu("cpu", precision, make, scale), gpu("cuda", precision, make, scale);
  const Snapshot start = ParametersOf(*gpu.network);
  LossRecorder cpu_losses, gpu_losses;
  for (std::size_t step = 0; step < workload.batches.size(); ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    const data::Dataset batch = Batches({workload.batches[step]});
    // Training is unstable: what differs by a rounding grows. Each step begins anew from the CPU's state.
    CopyState(*cpu.model, *gpu.model);
    const Snapshot before = StateOf(*cpu.model);
    MPC_ASSERT_OK(cpu.model->Train(1, batch, {cpu_losses}));
    MPC_ASSERT_OK(gpu.model->Train(1, batch, {gpu_losses}));
    const double tolerance = Tolerance(precision, workload.roundings);
    EXPECT_NEAR(gpu_losses.losses.back(), cpu_losses.losses.back(), tolerance * std::abs(cpu_losses.losses.back()));
    ExpectSameWay(before, StateOf(*cpu.model), StateOf(*gpu.model), tolerance);
  }
  EXPECT_EQ(gpu.model->skipped_steps(), cpu.model->skipped_steps());
  EXPECT_NE(ParametersOf(*gpu.network), start) << "it trains";
  EXPECT_THAT(test::NetworkDeviceProblems(), ::testing::IsEmpty());
}

/// A test for which "cuda" is a device.
class OnCuda : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::Status status = test::NetworkDeviceStatus();
    if (absl::IsUnavailable(status)) GTEST_SKIP() << "no GPU: " << status;
    ASSERT_TRUE(status.ok()) << status;
  }
};

class CudaNetworks : public OnCuda, public ::testing::WithParamInterface<Precision> {};
INSTANTIATE_TEST_SUITE_P(Precisions, CudaNetworks, ::testing::ValuesIn(Precisions()), PrecisionName);

Workload ImageBatches(std::int64_t size, std::int64_t rows, int steps, int roundings) {
  Workload workload{{}, roundings};
  for (int step = 0; step < steps; ++step) workload.batches.push_back(MakeBatch({1, size, size}, rows, step, 10));
  return workload;
}

TEST_P(CudaNetworks, LeNet5) {
  ExpectFollowsTheCpu<models::LeNet5, nn::SoftmaxCrossEntropyWithLogits>(
      ImageBatches(32, 4, 5, 20), GetParam(), [] { return std::make_unique<models::LeNet5>(); });
}

TEST_P(CudaNetworks, BatchNormNet) {
  ExpectFollowsTheCpu<models::BnNet, nn::SoftmaxCrossEntropyWithLogits>(
      ImageBatches(32, 4, 5, 26), GetParam(), [] { return std::make_unique<models::BnNet>(); });
}

TEST_P(CudaNetworks, TinyGpt2WithDropout) {
  std::vector<std::int32_t> ids, next;
  for (std::int32_t i = 0; i < 24; ++i) {
    ids.push_back(i * i % 19);
    next.push_back((i + 1) * (i + 1) % 19);
  }
  const data::Row batch = {Tensor::From(ids, {2, 12}), Tensor::From(next, {2, 12})};
  ExpectFollowsTheCpu<models::Gpt2, models::NextTokenLoss>({{batch, batch, batch}, 60}, GetParam(), [] {
    return std::make_unique<models::Gpt2>(
        models::Gpt2Config{.vocabulary = 19, .context = 12, .width = 32, .layers = 2, .heads = 4, .dropout = 0.1});
  });
}

TEST_P(CudaNetworks, BothHalvesOfDcgan) {
  static const models::DcganOptions options{.image_size = 8, .latent_size = 6, .width = 4};
  const Tensor images = Values({6, 1, 8, 8}, 3);
  const data::Row judged = {images, Tensor::From({1.0f, 0.0f, 1.0f, 0.0f, 1.0f, 0.0f}, {6, 1})};
  ExpectFollowsTheCpu<models::DcganDiscriminator, nn::BCEWithLogitsLoss>(
      {{judged, judged, judged}, 16}, GetParam(), [] { return std::make_unique<models::DcganDiscriminator>(options); });
  const data::Row made = {Values({6, 6}, 4), images};
  ExpectFollowsTheCpu<models::DcganGenerator, nn::MSELoss>(
      {{made, made, made}, 20}, GetParam(), [] { return std::make_unique<models::DcganGenerator>(options); });
}

using CudaLossScale = OnCuda;

TEST_F(CudaLossScale, AnOverflowChangesNothingButTheScaler) {
  const Precision precision{"O2", DType::kF16};
  const DynamicLossScaleManager dynamic({.init_loss_scale = 256});
  const auto make = [] { return std::make_unique<models::BnNet>(); };
  using BnNetRun = DeviceRun<models::BnNet, nn::SoftmaxCrossEntropyWithLogits>;
  BnNetRun cpu("cpu", precision, make, dynamic), gpu("cuda", precision, make, dynamic);
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
Snapshot TrainLeNet(const ContextOptions& context) {
  MPC_EXPECT_OK(SetContext(context));
  const FixedLossScaleManager fixed({.loss_scale = 128});
  DeviceRun<models::LeNet5, nn::SoftmaxCrossEntropyWithLogits> run(
      "cuda", {"O2", DType::kF16}, [] { return std::make_unique<models::LeNet5>(); }, fixed);
  std::vector<data::Row> batches;
  for (std::int64_t step = 0; step < 5; ++step) batches.push_back(MakeBatch({1, 32, 32}, 2, step, 10));
  MPC_EXPECT_OK(run.model->Train(1, Batches(batches)));
  const Snapshot state = StateOf(*run.model);
  MPC_EXPECT_OK(SetContext({}));
  return state;
}

using CudaContext = OnCuda;

TEST_F(CudaContext, GraphsAndStepsALaunchChangeNoBit) {
  const Snapshot state = TrainLeNet({.device = "cuda"});
  EXPECT_EQ(Differences(state, TrainLeNet({.device = "cuda"})), std::vector<std::string>{}) << "two runs";
  const std::optional<std::size_t> launches = test::GraphLaunches();
  EXPECT_EQ(Differences(state, TrainLeNet({.device = "cuda", .graph = false})), std::vector<std::string>{});
  EXPECT_EQ(test::GraphLaunches(), launches);
  EXPECT_EQ(Differences(state, TrainLeNet({.device = "cuda", .steps_per_launch = 4})), std::vector<std::string>{});
  if (launches.has_value()) {
    EXPECT_EQ(test::GraphLaunches(), *launches + 2) << "four steps, then one";
  }
}

}  // namespace
}  // namespace mpc::testing
