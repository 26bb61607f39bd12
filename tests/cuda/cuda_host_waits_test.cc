// A network in training never makes its GPU wait for the host: emulated, or that of this machine with its calls counted
// (network_device.h).
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "models/lenet5.h"
#include "tests/cuda/network_runs.h"

namespace mpc::testing {
namespace {

/// The calls between the beginnings of two steps of an epoch.
class CallsOfSteps : public Callback {
 public:
  CallsOfSteps(std::int64_t first, std::int64_t last) : first_(first), last_(last) {}
  void OnStepBegin(RunContext& context) override {
    if (context.global_step == first_) begin_ = test::NetworkDeviceCalls()->counts();
    if (context.global_step == last_) counts = test::NetworkDeviceCalls()->counts() - begin_;
  }
  test::CallCounts counts;

 private:
  std::int64_t first_, last_;
  test::CallCounts begin_;
};

using CudaHostWaits = OnCuda;

TEST_F(CudaHostWaits, NoneStopsTheDeviceWhileANetworkTrains) {
  for (const Level& level : {Level{"O0", {}}, Level{"O2", DType::kF16}}) {
    SCOPED_TRACE(level.level);
    // Small enough to begin without an overflow: steps that overflow one after another are read at once.
    const DynamicLossScaleManager dynamic({.init_loss_scale = 256});
    DeviceRun<models::LeNet5, nn::SoftmaxCrossEntropyWithLogits> run(
        "cuda", level, [] { return std::make_unique<models::LeNet5>(); },
        level.level == "O0" ? LossScaleChoice() : LossScaleChoice(dynamic));
    std::vector<data::Row> batches;
    for (std::int64_t step = 0; step < 24; ++step) batches.push_back(MakeBatch({1, 32, 32}, 2, step, 10));
    CallsOfSteps calls(10, 20);
    LossRecorder losses;
    MPC_ASSERT_OK(run.model->Train(1, Batches(batches), {calls, losses}));
    EXPECT_EQ(losses.losses.size(), 24u) << "each is read";
    EXPECT_EQ(calls.counts.graph_launches, 10u) << "one a step";
    EXPECT_EQ(calls.counts.drains, 0u);
    EXPECT_LE(calls.counts.waits, 2 * 10u) << "for a record, and for a buffer, of the launch before the last";
    EXPECT_EQ(calls.counts.creations, 0u);
  }
}

}  // namespace
}  // namespace mpc::testing
