// Many steps on the GPU of this machine: what they wait for, and what they leave behind.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include "models/lenet5.h"
#include "tests/cuda/network_runs.h"

namespace mpc::testing {
namespace {

using SteadyState = OnCuda;
using LeNetRun = DeviceRun<models::LeNet5, nn::SoftmaxCrossEntropyWithLogits>;

std::unique_ptr<models::LeNet5> MakeLeNet() { return std::make_unique<models::LeNet5>(); }

std::vector<data::Row> ImageRows(int count) {
  std::vector<data::Row> batches;
  for (int step = 0; step < count; ++step) batches.push_back(MakeBatch({1, 32, 32}, 32, step, 10));
  return batches;
}

/// A host that takes longer than a step of LeNet-5, which is done in well under a millisecond.
class SlowHost : public Callback {
 public:
  void OnStepBegin(RunContext& context) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const test::CallCounts now = test::NetworkDeviceCalls()->counts();
    if (context.global_step == 10) begin_ = now;
    if (context.global_step == 40) counts = now - begin_;
  }
  test::CallCounts counts;

 private:
  test::CallCounts begin_;
};

TEST_F(SteadyState, AStepNeedsNoSynchronisationWithTheHost) {
  const DynamicLossScaleManager dynamic({.init_loss_scale = 256});
  LeNetRun run("cuda", {"O2", DType::kF16}, MakeLeNet, dynamic);
  SlowHost host;
  LossRecorder losses;
  MPC_ASSERT_OK(run.model->Train(1, Batches(ImageRows(50)), {host, losses}));
  EXPECT_EQ(losses.losses.size(), 50u);
  EXPECT_EQ(host.counts.graph_launches, 30u);
  EXPECT_EQ(host.counts.waits, 0u) << "whatever the host waits for, it need not";
  EXPECT_EQ(host.counts.creations, 0u);
}

/// Bytes of this process that lie in memory.
std::int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

std::int64_t FreeDeviceBytes() {
  const auto info = test::NetworkDeviceCalls()->MemoryInfo();
  EXPECT_TRUE(info.ok()) << info.status();
  return info.ok() ? static_cast<std::int64_t>(info->free_bytes) : 0;
}

TEST_F(SteadyState, TenThousandStepsUseNoMoreMemory) {
  const DynamicLossScaleManager dynamic({.init_loss_scale = 256});
  LeNetRun run("cuda", {"O2", DType::kF16}, MakeLeNet, dynamic);
  const data::Dataset epoch = Batches(ImageRows(100));
  MPC_ASSERT_OK(run.model->Train(10, epoch));
  const std::int64_t device_before = FreeDeviceBytes(), host_before = ResidentBytes();
  MPC_ASSERT_OK(run.model->Train(100, epoch));
  // The driver and the allocator of the C library keep some pages of their own; 400 bytes a step would be 4 MiB.
  EXPECT_LE(ResidentBytes() - host_before, std::int64_t{4} << 20);
  EXPECT_GE(FreeDeviceBytes(), device_before);
}

}  // namespace
}  // namespace mpc::testing
