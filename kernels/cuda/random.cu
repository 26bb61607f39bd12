// random and dropout: the draws of kernels/scalar/philox.h, four elements a generator block.
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/attribute_words.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/registry.h"
#include "kernels/known_attributes.h"
#include "kernels/scalar/philox.h"

namespace mpc::cuda {
namespace {

/// Elements of a generator block.
constexpr int kDrawn = 4;
static_assert(kVector == 2 * kDrawn, "a vector is two generator blocks");

struct Draw {
  std::uint32_t stream;
  float a, b;
};

// Each distribution has `Four`, the elements of generator block `block`. They are the values that `One` gives one by
// one.
struct UniformDraws {
  __device__ static float One(const Draw& draw, std::uint64_t seed, std::uint64_t element) {
    return RandomUniform(seed, draw.stream, element, draw.a, draw.b);
  }
  __device__ static void Four(const Draw& draw, std::uint64_t seed, std::uint64_t block, float* values) {
    const std::array<std::uint32_t, 4> words = PhiloxBlock(seed, 0, draw.stream, block);
    for (int i = 0; i < kDrawn; ++i) values[i] = draw.a + (draw.b - draw.a) * UniformFromBits(words[i]);
  }
};

struct NormalDraws {
  __device__ static float One(const Draw& draw, std::uint64_t seed, std::uint64_t element) {
    return RandomNormal(seed, draw.stream, element, draw.a, draw.b);
  }
  __device__ static void Four(const Draw& draw, std::uint64_t seed, std::uint64_t block, float* values) {
    const std::array<std::uint32_t, 4> words = PhiloxBlock(seed, 0, draw.stream, block);
    MPC_UNROLL
    for (int pair = 0; pair < kDrawn; pair += 2) {
      const std::array<double, 2> normals = NormalsFromBits(words[pair], words[pair + 1]);
      for (int i = 0; i < 2; ++i) {
        values[pair + i] = static_cast<float>(static_cast<double>(draw.a) + static_cast<double>(draw.b) * normals[i]);
      }
    }
  }
};

template <typename Draws>
__global__ void __launch_bounds__(kMapThreads)
    RandomKernel(Draw draw, const std::int64_t* seed_address, Sink y, std::int64_t count) {
  AwaitEarlierLaunches();
  const auto seed = static_cast<std::uint64_t>(*seed_address);
  ForEachVector(
      count,
      [&](std::int64_t first) {
        float values[kVector];
        const auto block = static_cast<std::uint64_t>(first / kDrawn);
        Draws::Four(draw, seed, block, values);
        Draws::Four(draw, seed, block + 1, values + kDrawn);
        y.StoreVector(first, values);
      },
      [&](std::int64_t i) { y.Store(i, Draws::One(draw, seed, static_cast<std::uint64_t>(i))); });
}

/// Each element is drawn from generator blocks of its own, as often as it takes.
__global__ void __launch_bounds__(kMapThreads)
    TruncatedNormalKernel(Draw draw, const std::int64_t* seed_address, Sink y, std::int64_t count) {
  AwaitEarlierLaunches();
  const auto seed = static_cast<std::uint64_t>(*seed_address);
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += threads) {
    y.Store(i, RandomTruncatedNormal(seed, draw.stream, static_cast<std::uint64_t>(i), draw.a, draw.b));
  }
}

using FillFunction = void (*)(Draw, const std::int64_t*, Sink, std::int64_t);

FillFunction FillOf(Distribution distribution) {
  switch (distribution) {
    case Distribution::kUniform:
      return &RandomKernel<UniformDraws>;
    case Distribution::kNormal:
      return &RandomKernel<NormalDraws>;
    case Distribution::kTruncatedNormal:
      return &TruncatedNormalKernel;
  }
  return nullptr;
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateRandom(const KernelSpec& spec, const KernelContext&) {
  const absl::StatusOr<Distribution> distribution = ReadWord(spec.attributes, attribute::kDistribution);
  if (!distribution.ok()) return distribution.status();
  const Draw draw{static_cast<std::uint32_t>(spec.attributes.GetInt("stream")), FloatAttribute(spec, "a"),
                  spec.attributes.Get(attribute::kUpper)};
  return MakeKernel([kernel = FillOf(*distribution), draw, dtype = spec.outputs[0].dtype,
                     count = spec.outputs[0].num_elements()](const KernelOperands& operands, LaunchQueue& queue) {
    return launch(queue, kernel, MapShape(count), draw, static_cast<const std::int64_t*>(operands.inputs[0]),
                  Sink{operands.outputs[0], dtype}, count);
  });
}

struct Dropout {
  float p;
  std::uint32_t call_site;
};

/// Seed and step lie in device memory: they change without a new launch.
__global__ void __launch_bounds__(kMapThreads)
    DropoutKernel(Dropout dropout, Source x, const std::int64_t* seed_address, const std::int32_t* step_address, Sink y,
                  std::int64_t count) {
  AwaitEarlierLaunches();
  const auto seed = static_cast<std::uint64_t>(*seed_address);
  const auto step = static_cast<std::uint32_t>(*step_address);
  const float scale = DropoutScale(dropout.p);
  ForEachVector(
      count,
      [&](std::int64_t first) {
        float values[kVector];
        x.LoadVector(first, values);
        MPC_UNROLL
        for (int half = 0; half < 2; ++half) {
          const auto block = static_cast<std::uint64_t>(first / kDrawn + half);
          const std::array<std::uint32_t, 4> words = PhiloxBlock(seed, step, dropout.call_site, block);
          for (int i = 0; i < kDrawn; ++i) {
            float& value = values[half * kDrawn + i];
            value = UniformFromBits(words[i]) >= dropout.p ? value * scale : 0.0f;
          }
        }
        y.StoreVector(first, values);
      },
      [&](std::int64_t i) {
        const bool kept = DropoutKeeps(seed, step, dropout.call_site, static_cast<std::uint64_t>(i), dropout.p);
        y.Store(i, kept ? x.Load(i) * scale : 0.0f);
      });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateDropout(const KernelSpec& spec, const KernelContext&) {
  const Dropout dropout{static_cast<float>(spec.attributes.GetDouble("p")),
                        static_cast<std::uint32_t>(spec.attributes.GetInt("call_site"))};
  return MakeKernel([dropout, in = spec.inputs[0].dtype, out = spec.outputs[0].dtype,
                     count = spec.outputs[0].num_elements()](const KernelOperands& operands, LaunchQueue& queue) {
    return launch(queue, &DropoutKernel, MapShape(count), dropout, Source{operands.inputs[0], in},
                  static_cast<const std::int64_t*>(operands.inputs[1]),
                  static_cast<const std::int32_t*>(operands.inputs[2]), Sink{operands.outputs[0], out}, count);
  });
}

}  // namespace

void RegisterRandom(Registry& registry) {
  registry.Add("random", CreateRandom);
  registry.Add("dropout", CreateDropout, {{0, 0}});
}

}  // namespace mpc::cuda
