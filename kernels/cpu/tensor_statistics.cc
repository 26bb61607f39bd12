// tensor_statistics: a histogram of f32 exponents, the number of zeros and the largest finite magnitude.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"

namespace mpc::cpu {
namespace {

struct Statistics {
  std::array<std::int32_t, 256> exponents;
  std::int32_t zeros;
  // Magnitudes compare like their bits.
  std::uint32_t largest;

  void Add(const float* values, std::int64_t size) {
    for (std::int64_t i = 0; i < size; ++i) {
      const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(values[i]) & 0x7fffffffu;
      const std::uint32_t exponent = magnitude >> 23;
      ++exponents[exponent];
      zeros += magnitude == 0 ? 1 : 0;
      if (exponent != 255) largest = std::max(largest, magnitude);
    }
  }
  void Add(const Statistics& other) {
    for (std::size_t bin = 0; bin < exponents.size(); ++bin) exponents[bin] += other.exponents[bin];
    zeros += other.zeros;
    largest = std::max(largest, other.largest);
  }
};

// Each chunk counts into its own table; counts and maxima do not depend on the order they meet in.
constexpr std::int64_t kChunkElements = 64 * kBlock;

absl::StatusOr<std::unique_ptr<Kernel>> CreateTensorStatistics(const KernelSpec& spec) {
  const std::int64_t count = spec.inputs[0].num_elements();
  const std::int64_t chunks = (count + kChunkElements - 1) / kChunkElements;
  const std::array<bool, 3> used{spec.uses(0), spec.uses(1), spec.uses(2)};
  return MakeKernel(
      [dtype = spec.inputs[0].dtype, count, chunks, used](const KernelOperands& operands) {
        const Source x{dtype, operands.inputs[0]};
        auto* tables = static_cast<Statistics*>(operands.workspace);
        ParallelFor(chunks, count, [&](std::int64_t chunk) {
          Statistics& table = tables[chunk];
          std::memset(&table, 0, sizeof(table));
          BlockBuffer buffer;
          const std::int64_t end = std::min(count, (chunk + 1) * kChunkElements);
          for (std::int64_t offset = chunk * kChunkElements; offset < end; offset += kBlock) {
            const std::int64_t size = std::min(kBlock, end - offset);
            table.Add(x.Load(offset, size, buffer.values), size);
          }
        });
        Statistics all{};
        for (std::int64_t chunk = 0; chunk < chunks; ++chunk) all.Add(tables[chunk]);
        if (used[0]) std::memcpy(operands.outputs[0], all.exponents.data(), sizeof(all.exponents));
        if (used[1]) *static_cast<std::int32_t*>(operands.outputs[1]) = all.zeros;
        if (used[2]) *static_cast<float*>(operands.outputs[2]) = std::bit_cast<float>(all.largest);
      },
      static_cast<std::size_t>(chunks) * sizeof(Statistics));
}

}  // namespace

void RegisterTensorStatistics(Registry& registry) { registry.Add("tensor_statistics", CreateTensorStatistics); }

}  // namespace mpc::cpu
