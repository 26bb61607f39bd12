// Arithmetic of integers, i32 or i64, with broadcasting.
#include <cstdint>
#include <string_view>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/broadcast.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"
#include "kernels/scalar/integer.h"

namespace mpc::cpu {
namespace {

// Elements [offset, offset + size) in the shape of the result, where they lie if that is the operand's own.
template <typename T>
const T* LoadBlock(const BroadcastMap& map, const T* operand, std::int64_t offset, std::int64_t size, T* buffer) {
  if (map.is_identity()) return operand + offset;
  map.ForEachSegment(offset, size,
                     [&](std::int64_t position, std::int64_t from, std::int64_t stride, std::int64_t length) {
                       for (std::int64_t i = 0; i < length; ++i) buffer[position + i] = operand[from + i * stride];
                     });
  return buffer;
}

template <typename Op, typename T>
absl::StatusOr<std::unique_ptr<Kernel>> CreateBinaryOf(const KernelSpec& spec) {
  const Shape& shape = spec.outputs[0].shape;
  absl::StatusOr<BroadcastMap> a_map = BroadcastMap::Create(spec.inputs[0].shape, shape);
  if (!a_map.ok()) return a_map.status();
  absl::StatusOr<BroadcastMap> b_map = BroadcastMap::Create(spec.inputs[1].shape, shape);
  if (!b_map.ok()) return b_map.status();
  return MakeKernel([a_map = *a_map, b_map = *b_map, count = NumElements(shape)](const KernelOperands& operands) {
    const auto* a = static_cast<const T*>(operands.inputs[0]);
    const auto* b = static_cast<const T*>(operands.inputs[1]);
    auto* y = static_cast<T*>(operands.outputs[0]);
    ParallelBlocks(count, kBlock, [&](std::int64_t offset, std::int64_t size) {
      T a_buffer[kBlock], b_buffer[kBlock];
      const T* a_values = LoadBlock(a_map, a, offset, size, a_buffer);
      const T* b_values = LoadBlock(b_map, b, offset, size, b_buffer);
      T* target = y + offset;
#pragma omp simd
      for (std::int64_t i = 0; i < size; ++i) target[i] = Op::Apply(a_values[i], b_values[i]);
    });
  });
}

template <typename Op, typename T>
absl::StatusOr<std::unique_ptr<Kernel>> CreateUnaryOf(const KernelSpec& spec) {
  return MakeKernel([count = spec.outputs[0].num_elements()](const KernelOperands& operands) {
    const auto* x = static_cast<const T*>(operands.inputs[0]);
    auto* y = static_cast<T*>(operands.outputs[0]);
    ParallelBlocks(count, kBlock, [&](std::int64_t offset, std::int64_t size) {
#pragma omp simd
      for (std::int64_t i = offset; i < offset + size; ++i) y[i] = Op::Apply(x[i]);
    });
  });
}

// The type of all operands and of the result; f32 where they are no integers of one type.
DType IntegerTypeOf(const KernelSpec& spec) {
  const DType dtype = spec.outputs[0].dtype;
  for (const TensorSpec& input : spec.inputs) {
    if (input.dtype != dtype) return DType::kF32;
  }
  return dtype;
}

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> CreateIntegerBinary(const KernelSpec& spec) {
  const DType dtype = IntegerTypeOf(spec);
  if (dtype == DType::kI32) return CreateBinaryOf<Op, std::int32_t>(spec);
  if (dtype == DType::kI64) return CreateBinaryOf<Op, std::int64_t>(spec);
  return UnsupportedTypes(spec);
}

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> CreateIntegerUnary(const KernelSpec& spec) {
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

}  // namespace mpc::cpu
