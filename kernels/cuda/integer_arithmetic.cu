// Arithmetic of integers, i32 or i64, with broadcasting: one thread an element. i32 is divided in 32 bits.
#include <cstdint>
#include <string_view>

#include "kernels/cuda/broadcast.h"
#include "kernels/cuda/registry.h"
#include "kernels/scalar/integer.h"

namespace mpc::cuda {
namespace {

/// An operand, stretched to the shape of the result.
template <typename T>
struct StretchedIntegers {
  const T* data;
  BroadcastMap map;
  __device__ __forceinline__ T Load(std::int64_t index) const { return data[map.OffsetAt(index)]; }
};

template <typename Op, typename T>
__global__ void __launch_bounds__(kMapThreads)
    IntegerBinaryKernel(StretchedIntegers<T> a, StretchedIntegers<T> b, T* y, std::int64_t count) {
  AwaitEarlierLaunches();
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += threads) {
    y[i] = Op::Apply(a.Load(i), b.Load(i));
  }
}

template <typename Op, typename T>
__global__ void __launch_bounds__(kMapThreads) IntegerUnaryKernel(const T* x, T* y, std::int64_t count) {
  AwaitEarlierLaunches();
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += threads) {
    y[i] = Op::Apply(x[i]);
  }
}

/// One thread an element.
LaunchShape ElementShape(std::int64_t count) {
  LaunchShape shape;
  shape.threads = kMapThreads;
  shape.blocks_x = BlocksFor(count, kMapThreads);
  return shape;
}

template <typename Op, typename T>
absl::StatusOr<std::unique_ptr<Kernel>> CreateBinaryOf(const KernelSpec& spec) {
  const auto maps = BroadcastMaps<2>(spec.inputs, spec.outputs[0].shape);
  if (!maps.ok()) return maps.status();
  return MakeKernel(
      [maps = *maps, count = spec.outputs[0].num_elements()](const KernelOperands& operands, LaunchQueue& queue) {
        return launch(queue, &IntegerBinaryKernel<Op, T>, ElementShape(count),
                      StretchedIntegers<T>{static_cast<const T*>(operands.inputs[0]), maps[0]},
                      StretchedIntegers<T>{static_cast<const T*>(operands.inputs[1]), maps[1]},
                      static_cast<T*>(operands.outputs[0]), count);
      });
}

template <typename Op, typename T>
absl::StatusOr<std::unique_ptr<Kernel>> CreateUnaryOf(const KernelSpec& spec) {
  return MakeKernel([count = spec.outputs[0].num_elements()](const KernelOperands& operands, LaunchQueue& queue) {
    return launch(queue, &IntegerUnaryKernel<Op, T>, ElementShape(count), static_cast<const T*>(operands.inputs[0]),
                  static_cast<T*>(operands.outputs[0]), count);
  });
}

/// The type of all operands and of the result; f32 where they are no integers of one type.
DType IntegerTypeOf(const KernelSpec& spec) {
  const DType dtype = spec.outputs[0].dtype;
  for (const TensorSpec& input : spec.inputs) {
    if (input.dtype != dtype) return DType::kF32;
  }
  return dtype;
}

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> CreateIntegerBinary(const KernelSpec& spec, const KernelContext&) {
  const DType dtype = IntegerTypeOf(spec);
  if (dtype == DType::kI32) return CreateBinaryOf<Op, std::int32_t>(spec);
  if (dtype == DType::kI64) return CreateBinaryOf<Op, std::int64_t>(spec);
  return UnsupportedTypes(spec);
}

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> CreateIntegerUnary(const KernelSpec& spec, const KernelContext&) {
  const DType dtype = IntegerTypeOf(spec);
  if (dtype == DType::kI32) return CreateUnaryOf<Op, std::int32_t>(spec);
  if (dtype == DType::kI64) return CreateUnaryOf<Op, std::int64_t>(spec);
  return UnsupportedTypes(spec);
}

}  // namespace

void RegisterIntegerArithmetic(Registry& registry) {
  scalar::ForEachIntegerBinary([&registry]<typename Op>(std::string_view name) {
    registry.Add(name, CreateIntegerBinary<Op>, {{0, 0}, {0, 1}});
  });
  scalar::ForEachIntegerUnary([&registry]<typename Op>(std::string_view name) {
    registry.Add(name, CreateIntegerUnary<Op>, {{0, 0}});
  });
}

}  // namespace mpc::cuda
