// state_hash: the hash of all operands together, for records of the state after a step.
#include <cstdint>
#include <vector>

#include "kernels/cuda/block_reduce.h"
#include "kernels/cuda/multi_tensor.h"
#include "kernels/cuda/state_hash.h"
#include "kernels/state_hash.h"

namespace mpc::cuda {
namespace {

/// An operand. It begins where a word may.
struct HashedEntry {
  const unsigned char* data;
  std::uint64_t bytes;
  std::uint64_t key;
};

/// Addition modulo 2^64, which has no order.
struct AddHashes {
  using Value = std::uint64_t;
  __device__ static Value Combine(Value a, Value b) { return a + b; }
};

/// Adds a block's part of the hash to `sum`. CUDA's atomic addition is declared for another type of 64 bits.
struct HashBody {
  using Segment = HashedEntry;
  unsigned long long* sum;  // NOLINT(google-runtime-int)

  __device__ void operator()(const HashedEntry& entry, const SegmentShare& share) const {
    const auto* words = reinterpret_cast<const std::uint64_t*>(entry.data);
    const std::uint64_t count = entry.bytes / sizeof(std::uint64_t);
    const std::uint64_t thread = static_cast<std::uint64_t>(share.block) * kTensorThreads + threadIdx.x;
    const std::uint64_t threads = static_cast<std::uint64_t>(share.blocks) * kTensorThreads;
    std::uint64_t part = 0;
    for (std::uint64_t i = thread; i < count; i += threads) part += HashWord(entry.key, words[i], i);
    const std::uint64_t rest = entry.bytes % sizeof(std::uint64_t);
    if (thread == 0 && rest > 0) {
      part += HashWord(entry.key, LastWord(entry.data + entry.bytes - rest, rest), count);
    }
    part = BlockReduce<AddHashes, kTensorThreads>(part);
    if (threadIdx.x == 0) atomicAdd(sum, part);
  }
};

__global__ void ClearHashKernel(unsigned long long* sum) {  // NOLINT(google-runtime-int)
  AwaitEarlierLaunches();
  *sum = 0;
}

class StateHashKernel final : public Kernel {
 public:
  explicit StateHashKernel(const KernelSpec& spec) : keys_(spec.attributes.GetInts(kHashKeys)) {
    std::int64_t words = 0;
    for (const TensorSpec& input : spec.inputs) {
      bytes_.push_back(input.bytes());
      words += static_cast<std::int64_t>(input.bytes() / sizeof(std::uint64_t));
    }
    plan_ = SegmentPlan::For(words);
  }

  absl::Status Enqueue(const KernelOperands& operands, LaunchQueue& queue) override {
    auto* const sum = static_cast<unsigned long long*>(operands.outputs[0]);  // NOLINT(google-runtime-int)
    if (absl::Status status = launch(queue, &ClearHashKernel, LaunchShape{}, sum); !status.ok()) return status;
    Table table{};
    unsigned blocks = 0;
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      if (bytes_[i] == 0) continue;
      blocks += plan_.BlocksOf(static_cast<std::int64_t>(bytes_[i] / sizeof(std::uint64_t)));
      table.segments[table.count] = {static_cast<const unsigned char*>(operands.inputs[i]), bytes_[i],
                                     static_cast<std::uint64_t>(keys_[i])};
      table.end_block[table.count] = blocks;
      if (++table.count < Table::kCapacity) continue;
      if (absl::Status status = LaunchSegments(queue, table, blocks, HashBody{sum}); !status.ok()) return status;
      table.count = 0;
      blocks = 0;
    }
    return table.count == 0 ? absl::OkStatus() : LaunchSegments(queue, table, blocks, HashBody{sum});
  }

 private:
  using Table = SegmentTable<HashedEntry>;

  std::vector<std::int64_t> keys_;
  std::vector<std::uint64_t> bytes_;
  SegmentPlan plan_;
};

absl::StatusOr<std::unique_ptr<Kernel>> CreateStateHash(const KernelSpec& spec, const KernelContext&) {
  if (absl::Status status = CheckStateHash(spec); !status.ok()) return status;
  return std::make_unique<StateHashKernel>(spec);
}

}  // namespace

void RegisterStateHash(Registry& registry) { registry.Add(kStateHash, CreateStateHash); }

}  // namespace mpc::cuda
