// iota, for f32, i32 and i64: one thread an element.
#include <cstdint>

#include "kernels/cuda/map.h"
#include "kernels/cuda/registry.h"
#include "kernels/scalar/iota.h"

namespace mpc::cuda {
namespace {

template <typename T>
__global__ void __launch_bounds__(kMapThreads) IotaKernel(scalar::Iota iota, T* y, std::int64_t count) {
  AwaitEarlierLaunches();
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += threads) {
    y[i] = static_cast<T>(iota.At(i));
  }
}

template <typename T>
absl::StatusOr<std::unique_ptr<Kernel>> CreateIotaOf(const KernelSpec& spec) {
  const TensorSpec& y = spec.outputs[0];
  return MakeKernel([iota = scalar::Iota::Of(spec.attributes, y.shape), count = y.num_elements()](
                        const KernelOperands& operands, LaunchQueue& queue) {
    LaunchShape shape;
    shape.threads = kMapThreads;
    shape.blocks_x = BlocksFor(count, kMapThreads);
    return launch(queue, &IotaKernel<T>, shape, iota, static_cast<T*>(operands.outputs[0]), count);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateIota(const KernelSpec& spec, const KernelContext&) {
  switch (spec.outputs[0].dtype) {
    case DType::kF32:
      return CreateIotaOf<float>(spec);
    case DType::kI32:
      return CreateIotaOf<std::int32_t>(spec);
    case DType::kI64:
      return CreateIotaOf<std::int64_t>(spec);
    default:
      return UnsupportedTypes(spec);
  }
}

}  // namespace

void RegisterIota(Registry& registry) { registry.Add("iota", CreateIota); }

}  // namespace mpc::cuda
