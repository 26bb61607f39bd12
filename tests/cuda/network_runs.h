// A network that trains on "cuda" beside the CPU, for tests that compare the two.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "frontend/graph/device_rates.h"
#include "frontend/state/checkpoint_file.h"
#include "frontend/state/checkpoint_metadata.h"
#include "tests/cuda/network_device.h"
#include "tests/frontend/temporary_folder.h"
#include "tests/training/training_support.h"

namespace mpc::testing {

/// A test for which "cuda" is a device.
class OnCuda : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::Status status = test::NetworkDeviceStatus();
    if (absl::IsUnavailable(status)) GTEST_SKIP() << "no GPU: " << status;
    ASSERT_TRUE(status.ok()) << status;
    MPC_ASSERT_OK(SetContext({.fusion = test::NetworkDeviceFusion()}));
  }
  void TearDown() override { MPC_ASSERT_OK(SetContext({})); }
};

/// A Model on a device, made from seed 7.
template <typename Network, typename Loss>
struct DeviceRun {
  DeviceRun(const std::string& device, const Level& level, std::unique_ptr<Network> (*make)(),
            const LossScaleChoice& scale)
      : network((SetSeed(7), make())),
        loss(MakeLoss()),
        optimizer(network->TrainableParams(), {.learning_rate = 0.05}) {
    model = std::make_unique<Model>(
        *network, loss, optimizer,
        ModelOptions{
            .amp_level = level.level, .loss_scale_manager = scale, .amp_dtype = level.dtype, .device = device});
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

/// Gives `model` the rates that level auto weighs by, as the checkpoint of a run on such a device would: two devices
/// must decide alike to be compared, and an emulated one has no time for the products that are measured.
inline void UseRates(Model& model, const compiler::DeviceRates& rates) {
  const TemporaryFolder folder;
  const std::string path = folder / "rates";
  MPC_ASSERT_OK(model.SaveCheckpoint(path));
  absl::StatusOr<Safetensors> content = internal::ReadCheckpointFile(path);
  ASSERT_TRUE(content.ok()) << content.status();
  absl::StatusOr<internal::CheckpointMetadata> metadata = internal::ParseMetadata(content->metadata, path);
  ASSERT_TRUE(metadata.ok()) << metadata.status();
  for (const auto& [name, rate] : amp::RateChoices(rates)) metadata->choices["measured elsewhere"][name] = rate;
  content->metadata = internal::FormatMetadata(*metadata);
  MPC_ASSERT_OK(internal::WriteCheckpointFile(path, *std::move(content)));
  MPC_ASSERT_OK(model.LoadCheckpoint(path, {.continue_run = false}).status());
}

/// A device on which products of small networks are worth a cast, and the smallest are not.
inline constexpr compiler::DeviceRates kRatesOfSmallNetworks = {
    .bytes_per_second = 1e10, .low_flops = 8e10, .f32_flops = 2e10, .seconds_per_operation = 1e-9};

/// Half the distance between neighbours at 1.
inline double UnitRoundoff(const Level& level) {
  if (level.dtype == DType::kF16) return 0x1p-11;
  return level.dtype == DType::kBF16 ? 0x1p-8 : 0x1p-24;
}

inline std::vector<float> FloatsOf(const std::vector<std::uint8_t>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

/// |a - b|, in the Euclidean norm.
inline double Distance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
  return std::sqrt(sum);
}

struct Workload {
  std::vector<data::Row> batches;
  int roundings;  ///< that follow each other in one step
};

/// How far two devices may end apart after one step from equal state, as a part of the way that the step went. It makes
/// `roundings` roundings one after another, forward and backward. A device that adds in another order rounds some of
/// them the other way, by twice the unit roundoff, and its f32 sums of up to 2^10 terms differ by the square root of
/// that many roundings. These errors are independent from element to element and from layer to layer: in the norm of a
/// tensor their squares add.
///
/// That is an estimate for networks in which no operation magnifies errors and few elements sit at a relu's corner. It
/// is none for residual networks: those are compared operation by operation (cuda_network_steps_test.cc).
inline double Tolerance(const Level& level, const Workload& workload) {
  return std::sqrt(workload.roundings) * (2 * UnitRoundoff(level) + 0x1p-24 * 32);
}

/// Gives `to` the state of `from`.
inline void CopyState(const Model& from, const Model& to) {
  for (Parameter& entry : to.AllState()) {
    const absl::StatusOr<Tensor> value = from.State(entry.name()).Value();
    ASSERT_TRUE(value.ok()) << value.status();
    MPC_ASSERT_OK(entry.SetData(*value));
  }
}

/// What both devices must agree on bit for bit: counters, the scaler, learning rates, the generator.
inline bool IsExact(const std::string& name) {
  return name.rfind("scaler.", 0) == 0 || name.rfind("rng.", 0) == 0 || name == "optimizer.step" ||
         name == "optimizer.learning_rate";
}

/// Compares what moved, tensor by tensor: the distance of the two results against the way from where they began.
inline void ExpectSameWay(const Snapshot& start, const Snapshot& on_cpu, const Snapshot& on_gpu, double tolerance) {
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

/// `steps` batches of square images with 10 classes.
inline Workload ImageBatches(std::int64_t channels, std::int64_t size, std::int64_t rows, int steps, int roundings) {
  Workload workload{{}, roundings};
  for (int step = 0; step < steps; ++step) {
    workload.batches.push_back(MakeBatch({channels, size, size}, rows, step, 10));
  }
  return workload;
}

template <typename Network, typename Loss>
void ExpectFollowsTheCpu(const Workload& workload, const Level& level, std::unique_ptr<Network> (*make)()) {
  const FixedLossScaleManager fixed({.loss_scale = 128});
  const LossScaleChoice scale = level.dtype == DType::kF16 ? LossScaleChoice(fixed) : LossScaleChoice();
  DeviceRun<Network, Loss> cpu("cpu", level, make, scale), gpu("cuda", level, make, scale);
  if (level.level == "auto") {
    UseRates(*cpu.model, kRatesOfSmallNetworks);
    UseRates(*gpu.model, kRatesOfSmallNetworks);
  }
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
    const double tolerance = Tolerance(level, workload);
    EXPECT_NEAR(gpu_losses.losses.back(), cpu_losses.losses.back(), tolerance * std::abs(cpu_losses.losses.back()));
    ExpectSameWay(before, StateOf(*cpu.model), StateOf(*gpu.model), tolerance);
  }
  EXPECT_EQ(gpu.model->compiled().front()->assignment, cpu.model->compiled().front()->assignment);
  EXPECT_EQ(gpu.model->skipped_steps(), cpu.model->skipped_steps());
  EXPECT_NE(ParametersOf(*gpu.network), start) << "it trains";
  EXPECT_THAT(test::NetworkDeviceProblems(), ::testing::IsEmpty());
}

}  // namespace mpc::testing
