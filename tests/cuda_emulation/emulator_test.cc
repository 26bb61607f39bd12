// What the emulation promises to the tests of kernels: CUDA's meaning where a kernel is right, an error where it is
// not.
#include "tests/cuda_emulation/emulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "kernels/cuda/device_language.h"
#include "kernels/cuda/launch.h"
#include "tests/cuda_emulation/sanitizer.h"

namespace mpc::emulation {
namespace {

using cuda::kFullWarp;
using cuda::launch;
using cuda::LaunchShape;
using testing::AllOf;
using testing::HasSubstr;

LaunchShape Shape(unsigned blocks, unsigned threads, std::size_t shared_bytes = 0) {
  return {blocks, 1, 1, threads, shared_bytes};
}

// Runs a kernel under several orders; each starts with seed 1 restored.
template <typename... Parameters, typename... Arguments>
absl::Status LaunchWithSeed(std::uint64_t seed, void (*kernel)(Parameters...), const LaunchShape& shape,
                            const Arguments&... arguments) {
  SetOptions({seed});
  Queue queue;
  absl::Status status = launch(queue, kernel, shape, arguments...);
  SetOptions({});
  return status;
}

const std::vector<std::uint64_t>& Seeds() {
  static const auto* const seeds = new std::vector<std::uint64_t>{0, 1, 2, 77};
  return *seeds;
}

// ---- Blocks and barriers.

__global__ void FillIndices(int* y, int width) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  y[block * blockDim.x + threadIdx.x] += static_cast<int>(block * static_cast<unsigned>(width) + threadIdx.x);
}

TEST(Emulator, EveryThreadOfEveryBlockRunsOnce) {
  for (std::uint64_t seed : Seeds()) {
    std::vector<int> y(3 * 5 * 2 * 33, 0), expected(y.size());
    ASSERT_TRUE(LaunchWithSeed(seed, FillIndices, {3, 5, 2, 33, 0}, y.data(), 33).ok());
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(y, expected) << seed;
  }
}

template <int kThreads>
__global__ void TreeSum(const float* x, float* y) {
  MPC_SHARED_ARRAY(float, sums, kThreads);
  const unsigned thread = threadIdx.x;
  sums[thread] = x[blockIdx.x * kThreads + thread];
  __syncthreads();
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    if (thread < half) sums[thread] += sums[thread + half];
    __syncthreads();
  }
  if (thread == 0) y[blockIdx.x] = sums[0];
}

TEST(Emulator, BarriersOrderWhatThreadsShare) {
  std::vector<float> x(4 * 256);
  std::iota(x.begin(), x.end(), 1.0f);
  for (std::uint64_t seed : Seeds()) {
    std::vector<float> y(4), z(8);
    ASSERT_TRUE(LaunchWithSeed(seed, TreeSum<256>, Shape(4, 256), x.data(), y.data()).ok());
    ASSERT_TRUE(LaunchWithSeed(seed, TreeSum<128>, Shape(8, 128), x.data(), z.data()).ok());
    for (int block = 0; block < 4; ++block) {
      EXPECT_EQ(y[block], std::accumulate(x.begin() + block * 256, x.begin() + (block + 1) * 256, 0.0f));
      EXPECT_EQ(y[block], z[2 * block] + z[2 * block + 1]);
    }
  }
}

__global__ void NeighbourWithoutBarrier(int* y) {
  MPC_SHARED_ARRAY(int, values, 64);
  values[threadIdx.x] = static_cast<int>(threadIdx.x);
  y[threadIdx.x] = values[(threadIdx.x + 1) % 64];
}

TEST(Emulator, AMissingBarrierShowsInSomeOrder) {
  std::set<std::vector<int>> results;
  for (std::uint64_t seed : Seeds()) {
    std::vector<int> y(64);
    ASSERT_TRUE(LaunchWithSeed(seed, NeighbourWithoutBarrier, Shape(1, 64), y.data()).ok());
    EXPECT_THAT(y, testing::Contains(-1)) << "shared memory starts poisoned";
    results.insert(y);
  }
  EXPECT_EQ(results.size(), Seeds().size());
}

__global__ void TakeNumbers(unsigned* next, unsigned* blocks, unsigned* before, unsigned* after) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x == 0) blocks[blockIdx.x] = atomicAdd(next, 1u);
  before[thread] = atomicAdd(next + 1, 1u);
  __syncthreads();
  after[thread] = atomicAdd(next + 2, 1u);
}

TEST(Emulator, SeedsPermuteBlocksThreadsAndWhatFollowsABarrier) {
  std::set<std::vector<unsigned>> block_orders, first_orders, second_orders;
  for (std::uint64_t seed : Seeds()) {
    std::vector<unsigned> next(3), blocks(16), before(16 * 64), after(16 * 64);
    ASSERT_TRUE(
        LaunchWithSeed(seed, TakeNumbers, Shape(16, 64), next.data(), blocks.data(), before.data(), after.data()).ok());
    block_orders.insert(blocks);
    first_orders.insert(before);
    second_orders.insert(after);
    EXPECT_TRUE(seed != 0 || std::is_sorted(before.begin(), before.end()));
  }
  EXPECT_EQ(block_orders.size(), Seeds().size());
  EXPECT_EQ(first_orders.size(), Seeds().size());
  EXPECT_EQ(second_orders.size(), Seeds().size());
}

TEST(Emulator, EqualSeedsGiveEqualOrders) {
  std::vector<std::vector<unsigned>> orders;
  for (int run = 0; run < 2; ++run) {
    std::vector<unsigned> next(3), blocks(16), before(16 * 64), after(16 * 64);
    ASSERT_TRUE(
        LaunchWithSeed(5, TakeNumbers, Shape(16, 64), next.data(), blocks.data(), before.data(), after.data()).ok());
    orders.push_back(after);
  }
  EXPECT_EQ(orders[0], orders[1]);
}

__global__ void VoteOfBlock(int wanted, int* y) {
  for (int round = 0; round < 3; ++round) {
    const int vote = __syncthreads_or(round == 1 && static_cast<int>(threadIdx.x) == wanted);
    if (threadIdx.x == 0) y[round] = vote;
  }
}

TEST(Emulator, BlockVotesAreOfTheirBarrierOnly) {
  std::vector<int> y(3);
  ASSERT_TRUE(LaunchWithSeed(1, VoteOfBlock, Shape(1, 96), 40, y.data()).ok());
  EXPECT_THAT(y, testing::ElementsAre(0, 1, 0));
}

// ---- Warps.

__global__ void WarpSum(const float* x, float* y) {
  float sum = x[threadIdx.x];
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(kFullWarp, sum, lanes);
  y[threadIdx.x] = sum;
}

TEST(Emulator, ShufflesReduceEachWarp) {
  std::vector<float> x(96), y(96);
  std::iota(x.begin(), x.end(), 0.0f);
  for (std::uint64_t seed : Seeds()) {
    ASSERT_TRUE(LaunchWithSeed(seed, WarpSum, Shape(1, 96), x.data(), y.data()).ok());
    for (int i = 0; i < 96; ++i) EXPECT_EQ(y[i], 31 * 16 + i / 32 * 32 * 32) << i;
  }
}

__global__ void Shuffles(int* y) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  int* row = y + lane * 5;
  row[0] = __shfl_sync(kFullWarp, lane, 3);
  row[1] = __shfl_down_sync(kFullWarp, lane, 4);
  row[2] = __shfl_down_sync(kFullWarp, lane, 1, 8);
  row[3] = __shfl_sync(kFullWarp, lane, 9, 8);
  row[4] = static_cast<int>(__shfl_xor_sync(kFullWarp, 100.5 + lane, 1, 2) * 2);
}

TEST(Emulator, ShufflesFollowCudasRulesAtTheEdges) {
  std::vector<int> y(32 * 5);
  ASSERT_TRUE(LaunchWithSeed(3, Shuffles, Shape(1, 32), y.data()).ok());
  for (int lane = 0; lane < 32; ++lane) {
    EXPECT_THAT(std::vector<int>(y.begin() + lane * 5, y.begin() + lane * 5 + 5),
                testing::ElementsAre(3, lane + 4 < 32 ? lane + 4 : lane, lane % 8 == 7 ? lane : lane + 1,
                                     lane / 8 * 8 + 1, 201 + 2 * (lane ^ 1)))
        << lane;
  }
}

__global__ void Votes(unsigned* y) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const unsigned half = lane < 16 ? 0x0000ffffu : 0xffff0000u;
  unsigned* row = y + lane * 5;
  row[0] = __ballot_sync(kFullWarp, lane % 3 == 0);
  row[1] = __ballot_sync(half, lane % 2);
  row[2] = static_cast<unsigned>(__any_sync(half, lane == 20));
  row[3] = static_cast<unsigned>(__all_sync(half, lane >= 16));
  __syncwarp();
  row[4] = static_cast<unsigned>(__all_sync(kFullWarp, 1));
}

TEST(Emulator, VotesAreOfTheLanesInTheMask) {
  std::vector<unsigned> y(32 * 5);
  ASSERT_TRUE(LaunchWithSeed(2, Votes, Shape(1, 32), y.data()).ok());
  for (int lane = 0; lane < 32; ++lane) {
    const bool upper = lane >= 16;
    EXPECT_THAT(std::vector<unsigned>(y.begin() + lane * 5, y.begin() + lane * 5 + 5),
                testing::ElementsAre(0x49249249u, upper ? 0xaaaa0000u : 0x0000aaaau, upper, upper, 1u))
        << lane;
  }
}

// ---- Shared memory.

template <typename T>
__device__ T* ArrayOf() {
  MPC_SHARED_ARRAY(T, values, 8);
  return values;
}

__global__ void Addresses(const void** y) {
  MPC_SHARED_ARRAY(int, first, 8);
  MPC_SHARED_ARRAY(int, second, 8);
  const void** row = y + threadIdx.x * 5;
  row[0] = first;
  row[1] = second;
  row[2] = ArrayOf<int>();
  row[3] = ArrayOf<float>();
  row[4] = ArrayOf<int>();
  if (threadIdx.x > 0) __syncwarp(1u << threadIdx.x);
}

TEST(Emulator, EachArrayOfASourceAndAnInstantiationIsOneForTheBlock) {
  std::vector<const void*> y(32 * 5);
  ASSERT_TRUE(LaunchWithSeed(1, Addresses, Shape(1, 32), y.data()).ok());
  for (int thread = 1; thread < 32; ++thread) {
    EXPECT_TRUE(std::equal(y.begin(), y.begin() + 5, y.begin() + thread * 5)) << thread;
  }
  EXPECT_EQ(y[2], y[4]);
  EXPECT_EQ(std::set<const void*>(y.begin(), y.end()).size(), 4u);
}

__global__ void CountPoisoned(int* counts) {
  MPC_SHARED_ARRAY(float, values, 32);
  float* dynamic = cuda::dynamic_shared<float>();
  counts[blockIdx.x * 64 + threadIdx.x] = std::isnan(values[threadIdx.x]) && std::isnan(dynamic[threadIdx.x]);
  values[threadIdx.x] = dynamic[threadIdx.x] = 0;
}

TEST(Emulator, SharedMemoryIsPoisonedForEveryBlock) {
  std::vector<int> counts(3 * 64);
  ASSERT_TRUE(LaunchWithSeed(1, CountPoisoned, Shape(3, 32, 128), counts.data()).ok());
  for (int block = 0; block < 3; ++block) EXPECT_EQ(counts[block * 64 + 5], 1);
}

__global__ void WriteOutside(int index, bool dynamic) {
  MPC_SHARED_ARRAY(int, values, 5);
  int* target = dynamic ? cuda::dynamic_shared<int>() : values;
  target[index] = 0;
}

TEST(Emulator, AWriteOutsideASharedArrayIsAnError) {
  EXPECT_TRUE(LaunchWithSeed(1, WriteOutside, Shape(1, 1, 20), 4, false).ok());
  if (kAddressSanitizer) return;  // it stops the program, at the write itself
  for (int index : {-1, 5, 9}) {
    EXPECT_THAT(std::string(LaunchWithSeed(1, WriteOutside, Shape(1, 1, 20), index, false).message()),
                HasSubstr(index < 0 ? "a write before" : "a write past the end of"))
        << index;
  }
  EXPECT_THAT(std::string(LaunchWithSeed(1, WriteOutside, Shape(1, 1, 20), 5, true).message()),
              HasSubstr("past the end of dynamic shared memory (20 bytes)"));
}

__global__ void TakeMuchShared() {
  MPC_SHARED_ARRAY(float, values, 8 * 1024);
  MPC_SHARED_ARRAY(float, more, 4 * 1024 + 1);
  values[0] = more[0];
}

// ---- Errors.

__global__ void Nothing() {}

TEST(Emulator, RefusesShapesThatNoDeviceTakes) {
  EXPECT_THAT(std::string(LaunchWithSeed(1, Nothing, Shape(1, 1025)).message()), HasSubstr("1025 threads"));
  EXPECT_THAT(std::string(LaunchWithSeed(1, Nothing, Shape(1, 0)).message()), HasSubstr("0 threads"));
  EXPECT_THAT(std::string(LaunchWithSeed(1, Nothing, {1, 65536, 1, 1, 0}).message()), HasSubstr("1 x 65536 x 1"));
  EXPECT_THAT(std::string(LaunchWithSeed(1, Nothing, {1, 1, 65536, 1, 0}).message()), HasSubstr("1 x 1 x 65536"));
  EXPECT_THAT(std::string(LaunchWithSeed(1, Nothing, Shape(1, 1, 232449)).message()), HasSubstr("232449 bytes"));
  EXPECT_THAT(std::string(LaunchWithSeed(1, TakeMuchShared, Shape(1, 1)).message()),
              AllOf(HasSubstr("emulator_test.cc"), HasSubstr("49156 bytes")));
  EXPECT_TRUE(LaunchWithSeed(1, Nothing, {0, 1, 1, 1, 0}).ok()) << "launch() starts nothing";
}

__global__ void HalfWaits() {
  if (threadIdx.x % 2 == 1) __syncthreads();
}

__global__ void TwoBarriers() {
  if (threadIdx.x % 2 == 1) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

__global__ void LanesLeave(int* y) {
  if (threadIdx.x >= 30) return;
  y[threadIdx.x] = __shfl_xor_sync(kFullWarp, 1, 1);
}

__global__ void LaneOutsideMask(unsigned mask, int source) { __shfl_sync(mask, 1, source); }

TEST(Emulator, NamesThreadsThatWaitInVain) {
  EXPECT_THAT(std::string(LaunchWithSeed(1, HalfWaits, Shape(2, 64)).message()),
              AllOf(HasSubstr("of 64 threads"), HasSubstr("32 x has left (threads 0, 2, 4, 6, 8, 10, ...)"),
                    HasSubstr("32 x waits for its block at "), HasSubstr("emulator_test.cc")));
  EXPECT_THAT(std::string(LaunchWithSeed(1, TwoBarriers, Shape(1, 64)).message()), HasSubstr("different barriers"));
  std::vector<int> y(32);
  EXPECT_THAT(std::string(LaunchWithSeed(1, LanesLeave, Shape(1, 32), y.data()).message()),
              AllOf(HasSubstr("2 x has left (threads 30, 31)"), HasSubstr("30 x waits for its warp")));
}

TEST(Emulator, RefusesMasksAndSourcesThatAreNotThere) {
  EXPECT_THAT(std::string(LaunchWithSeed(1, LaneOutsideMask, Shape(1, 32), 1u, 0).message()),
              HasSubstr("is not in the mask 1"));
  EXPECT_THAT(std::string(LaunchWithSeed(1, LaneOutsideMask, Shape(1, 48), kFullWarp, 0).message()),
              HasSubstr("lacks: it has 16"));
  EXPECT_THAT(std::string(LaunchWithSeed(1, LaneOutsideMask, Shape(1, 16), 0xffffu, 20).message()),
              HasSubstr("reads lane 20"));
}

TEST(Emulator, RunsOnAfterAnError) {
  EXPECT_FALSE(LaunchWithSeed(1, HalfWaits, Shape(1, 256)).ok());
  std::vector<float> x(256, 1.0f), y(1);
  ASSERT_TRUE(LaunchWithSeed(1, TreeSum<256>, Shape(1, 256), x.data(), y.data()).ok());
  EXPECT_EQ(y[0], 256);
}

// ---- The queue.

TEST(Emulator, CopiesAndFills) {
  Queue queue;
  std::vector<int> x = {1, 2, 3, 4}, y(4);
  ASSERT_TRUE(queue.Copy(y.data(), x.data(), 16).ok());
  EXPECT_EQ(x, y);
  ASSERT_TRUE(queue.Fill(y.data() + 1, 0xFF, 8).ok());
  EXPECT_THAT(y, testing::ElementsAre(1, -1, -1, 4));
  EXPECT_THAT(std::string(queue.Copy(x.data() + 1, x.data(), 8).message()), HasSubstr("overlap"));
}

}  // namespace
}  // namespace mpc::emulation
