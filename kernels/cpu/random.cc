// random and dropout: the draws of kernels/scalar/philox.h, four elements a generator block. A block of elements starts
// at a multiple of four, so that threads and block size cannot change a draw.
#include <cstdint>

#include "kernels/attribute_words.h"
#include "kernels/cpu/blocks.h"
#include "kernels/cpu/normal_draws.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"
#include "kernels/known_attributes.h"
#include "kernels/scalar/philox.h"

namespace mpc::cpu {
namespace {

static_assert(kBlock % (4 * kBlocksAbreast) == 0,
              "generator blocks must not straddle two tasks, and are drawn several at a time");

using FillBlock = void (*)(const Draw&, std::uint64_t seed, std::int64_t offset, std::int64_t size, float* values);

// uniform[i] in [0, 1) of elements offset + i. Writes `size` rounded up to a multiple of 64 elements, which a block
// buffer holds.
void FillUniformWords(std::uint64_t seed, std::uint32_t step, std::uint32_t call_site, std::int64_t offset,
                      std::int64_t size, float* uniform) {
  constexpr auto kBlocks = static_cast<std::int64_t>(kBlocksAbreast);
  for (std::int64_t start = 0; start < size; start += 4 * kBlocks) {
    const WordsAbreast words = PhiloxBlocks(seed, step, call_site, static_cast<std::uint64_t>(offset + start) / 4);
    for (std::size_t i = 0; i < kBlocksAbreast; ++i) {
      float* const block = uniform + start + 4 * static_cast<std::int64_t>(i);
      for (std::size_t word = 0; word < 4; ++word) block[word] = UniformFromBits(words[word][i]);
    }
  }
}

void FillUniform(const Draw& draw, std::uint64_t seed, std::int64_t offset, std::int64_t size, float* values) {
  BlockBuffer uniform;
  FillUniformWords(seed, 0, draw.stream, offset, size, uniform.values);
  const auto [stream, a, b] = draw;
  for (std::int64_t i = 0; i < size; ++i) values[i] = a + (b - a) * uniform.values[i];
}

FillBlock FillOf(Distribution distribution) {
  switch (distribution) {
    case Distribution::kUniform:
      return FillUniform;
    case Distribution::kNormal:
      return FillNormal;
    case Distribution::kTruncatedNormal:
      return FillTruncatedNormal;
  }
  return nullptr;
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateRandom(const KernelSpec& spec) {
  const absl::StatusOr<Distribution> distribution = ReadWord(spec.attributes, attribute::kDistribution);
  if (!distribution.ok()) return distribution.status();
  const Draw draw{static_cast<std::uint32_t>(spec.attributes.GetInt("stream")), FloatAttribute(spec, "a"),
                  spec.attributes.Get(attribute::kUpper)};
  return MakeKernel([fill = FillOf(*distribution), draw, dtype = spec.outputs[0].dtype,
                     count = spec.outputs[0].num_elements()](const KernelOperands& operands) {
    const auto seed = static_cast<std::uint64_t>(*static_cast<const std::int64_t*>(operands.inputs[0]));
    const Sink y{dtype, operands.outputs[0]};
    ParallelBlocks(count, kBlock, [&](std::int64_t offset, std::int64_t size) {
      BlockBuffer buffer;
      float* values = y.Target(offset, buffer.values);
      fill(draw, seed, offset, size, values);
      y.Commit(offset, size, values);
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateDropout(const KernelSpec& spec) {
  return MakeKernel(
      [in = spec.inputs[0].dtype, out = spec.outputs[0].dtype, count = spec.outputs[0].num_elements(),
       p = static_cast<float>(spec.attributes.GetDouble("p")),
       call_site = static_cast<std::uint32_t>(spec.attributes.GetInt("call_site"))](const KernelOperands& operands) {
        const auto seed = static_cast<std::uint64_t>(*static_cast<const std::int64_t*>(operands.inputs[1]));
        const auto step = static_cast<std::uint32_t>(*static_cast<const std::int32_t*>(operands.inputs[2]));
        const Source x{in, operands.inputs[0]};
        const Sink y{out, operands.outputs[0]};
        const float scale = DropoutScale(p);
        ParallelBlocks(count, kBlock, [&](std::int64_t offset, std::int64_t size) {
          BlockBuffer x_buffer, y_buffer, uniform;
          FillUniformWords(seed, step, call_site, offset, size, uniform.values);
          const float* in_values = x.Load(offset, size, x_buffer.values);
          float* target = y.Target(offset, y_buffer.values);
          // Locals, not captures: the loop vectorises only if they cannot change under it.
          const float threshold = p;
          const float factor = scale;
#pragma omp simd
          for (std::int64_t i = 0; i < size; ++i) {
            target[i] = uniform.values[i] >= threshold ? in_values[i] * factor : 0.0f;
          }
          y.Commit(offset, size, target);
        });
      });
}

}  // namespace

void RegisterRandom(Registry& registry) {
  registry.Add("random", CreateRandom);
  registry.Add("dropout", CreateDropout, {{0, 0}});
}

}  // namespace mpc::cpu
