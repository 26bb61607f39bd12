// iota, for f32, i32 and i64.
#include "kernels/scalar/iota.h"

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"

namespace mpc::cpu {
namespace {

template <typename T>
absl::StatusOr<std::unique_ptr<Kernel>> CreateIotaOf(const KernelSpec& spec) {
  const TensorSpec& y = spec.outputs[0];
  return MakeKernel(
      [iota = scalar::Iota::Of(spec.attributes, y.shape), count = y.num_elements()](const KernelOperands& operands) {
        T* y = static_cast<T*>(operands.outputs[0]);
        ParallelBlocks(count, kBlock, [&](std::int64_t offset, std::int64_t size) {
          for (std::int64_t i = offset; i < offset + size; ++i) y[i] = static_cast<T>(iota.At(i));
        });
      });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateIota(const KernelSpec& spec) {
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

}  // namespace mpc::cpu
