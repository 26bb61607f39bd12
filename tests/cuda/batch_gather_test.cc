// The batch that a step takes from a data set in device memory.
#include "kernels/cuda/batch_gather.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/cuda_emulation/emulator.h"
#include "tests/kernels/kernel_run.h"

namespace mpc::test {
namespace {

constexpr std::int64_t kRows = 23;

std::vector<std::int64_t> Shuffled() {
  std::vector<std::int64_t> order(kRows);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(3));
  return order;
}

struct DataSet {
  explicit DataSet(std::size_t row_bytes) : row_bytes(row_bytes), data(kRows * row_bytes) {
    auto* bytes = static_cast<std::uint8_t*>(data.data());
    for (std::size_t i = 0; i < data.bytes(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
  }
  std::vector<std::uint8_t> Row(std::int64_t row) const {
    const auto* begin = static_cast<const std::uint8_t*>(data.data()) + static_cast<std::size_t>(row) * row_bytes;
    return {begin, begin + row_bytes};
  }

  std::size_t row_bytes;
  GuardedBuffer data;
};

TEST(BatchGather, TakesTheRowsThatThePermutationNames) {
  const std::vector<std::int64_t> permutation = Shuffled();
  for (std::size_t row_bytes : {1, 2, 3, 4, 12, 16, 100, 784, 4096, 4100}) {
    const DataSet set(row_bytes);
    for (std::int32_t batch_index : {0, 1, 2, 3, 1000}) {
      for (std::int64_t batch_rows : {1, 8, 30}) {
        GuardedBuffer batch(static_cast<std::size_t>(batch_rows) * row_bytes);
        emulation::Queue queue;
        ASSERT_TRUE(
            cuda::EnqueueBatchGather(
                {set.data.data(), kRows, row_bytes, permutation.data(), &batch_index, batch.data(), batch_rows}, queue)
                .ok());
        std::vector<std::uint8_t> expected;
        for (std::int64_t i = 0; i < batch_rows; ++i) {
          const std::vector<std::uint8_t> row = set.Row(permutation[(batch_index * batch_rows + i) % kRows]);
          expected.insert(expected.end(), row.begin(), row.end());
        }
        EXPECT_EQ(batch.Bits(), expected) << row_bytes << " bytes, batch " << batch_index << " of " << batch_rows;
        EXPECT_TRUE(batch.GuardIntact());
      }
    }
  }
}

// A replay has only what lies in device memory to learn which batch it is.
TEST(BatchGather, ReadsTheBatchIndexWhenItRuns) {
  const std::vector<std::int64_t> permutation = Shuffled();
  const DataSet set(4);
  std::int32_t batch_index = 0;
  GuardedBuffer batch(2 * 4);
  const cuda::BatchGather gather{set.data.data(), kRows, 4, permutation.data(), &batch_index, batch.data(), 2};
  emulation::Queue queue;
  ASSERT_TRUE(cuda::EnqueueBatchGather(gather, queue).ok());
  const std::vector<std::uint8_t> first = batch.Bits();
  batch_index = 1;
  ASSERT_TRUE(cuda::EnqueueBatchGather(gather, queue).ok());
  EXPECT_NE(batch.Bits(), first);
}

TEST(BatchGather, RefusesADataSetWithoutRows) {
  emulation::Queue queue;
  const absl::Status status = cuda::EnqueueBatchGather({}, queue);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace mpc::test
