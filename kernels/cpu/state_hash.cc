// state_hash: the hash of all operands together, for records of the state after a step.
#include "kernels/cpu/state_hash.h"

#include <atomic>
#include <cstdint>
#include <vector>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/tensor_blocks.h"
#include "kernels/state_hash.h"

namespace mpc::cpu {
namespace {

/// A multiple of a word.
constexpr std::int64_t kBlockBytes = std::int64_t{1} << 18;

using HashFunction = std::uint64_t (*)(std::uint64_t key, const void* bytes, std::size_t size, std::size_t offset);

/// The same with a product of eight words in one instruction, which keeps up with memory.
[[gnu::target("avx512f,avx512dq,avx512vl"), gnu::flatten]] std::uint64_t HashBytesAvx512(std::uint64_t key,
                                                                                         const void* bytes,
                                                                                         std::size_t size,
                                                                                         std::size_t offset) {
  return HashBytes(key, bytes, size, offset);
}

HashFunction ChooseHash() {
  if (__builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0) return HashBytesAvx512;
  return [](std::uint64_t key, const void* bytes, std::size_t size, std::size_t offset) {
    return HashBytes(key, bytes, size, offset);
  };
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateStateHash(const KernelSpec& spec) {
  const std::vector<std::int64_t> keys = spec.attributes.GetInts(kHashKeys);
  if (absl::Status status = CheckStateHash(spec); !status.ok()) return status;
  TensorBlocks blocks(kBlockBytes);
  for (const TensorSpec& input : spec.inputs) blocks.Add(static_cast<std::int64_t>(input.bytes()));
  return MakeKernel([blocks, keys, hash = ChooseHash()](const KernelOperands& operands) {
    std::atomic<std::uint64_t> sum = 0;
    ParallelFor(blocks.count(), blocks.total() / 8, [&](std::int64_t i) {
      const TensorBlocks::Block block = blocks.BlockAt(i);
      const auto* bytes = static_cast<const std::byte*>(operands.inputs[block.tensor]) + block.offset;
      // Addition modulo 2^64 has no order.
      sum.fetch_add(hash(static_cast<std::uint64_t>(keys[block.tensor]), bytes, static_cast<std::size_t>(block.size),
                         static_cast<std::size_t>(block.offset)),
                    std::memory_order_relaxed);
    });
    *static_cast<std::uint64_t*>(operands.outputs[0]) = sum;
  });
}

}  // namespace

void RegisterStateHash(Registry& registry) { registry.Add(kStateHash, CreateStateHash); }

}  // namespace mpc::cpu
