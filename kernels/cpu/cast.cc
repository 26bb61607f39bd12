// cast between every pair of f32, f16, bf16, i8, i32, i64 and i1, and of an f64 scalar to f32. Floating to floating
// goes through f32 blocks (exact or one rounding to nearest even). Floating to integer truncates towards zero and
// saturates, NaN gives 0; integers to smaller integers saturate; anything to i1 asks whether it differs from 0.
#include "kernels/scalar/cast.h"

#include <type_traits>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"

namespace mpc::cpu {
namespace {

absl::StatusOr<std::unique_ptr<Kernel>> CreateFloatingCast(const KernelSpec& spec) {
  return MakeKernel([in = spec.inputs[0].dtype, out = spec.outputs[0].dtype,
                     count = spec.outputs[0].num_elements()](const KernelOperands& operands) {
    const Source x{in, operands.inputs[0]};
    ParallelBlocks(count, kBlock, [&](std::int64_t offset, std::int64_t size) {
      if (out == DType::kF32) {
        LoadFloats(in, x.data, offset, size, static_cast<float*>(operands.outputs[0]) + offset);
        return;
      }
      BlockBuffer buffer;
      StoreFloats(out, x.Load(offset, size, buffer.values), operands.outputs[0], offset, size);
    });
  });
}

struct Bool {
  std::uint8_t byte;
};

template <typename To, typename From>
To ConvertElement(From value) {
  if constexpr (std::is_same_v<From, Bool>) {
    return ConvertElement<To>(std::int32_t{value.byte != 0});
  } else if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>) {
    return ConvertElement<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, Bool>) {
    return Bool{static_cast<std::uint8_t>(value != 0)};
  } else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>) {
    if constexpr (std::is_integral_v<From>) {
      return To(scalar::RoundToOdd(value));
    } else {
      return To(value);
    }
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    return scalar::Saturate<To>(value);
  } else if constexpr (std::is_integral_v<To>) {
    return scalar::Saturate<To>(std::int64_t{value});
  } else {
    return static_cast<To>(value);
  }
}

template <typename To, typename From>
absl::StatusOr<std::unique_ptr<Kernel>> CreateElementCast(const KernelSpec& spec) {
  return MakeKernel([count = spec.outputs[0].num_elements()](const KernelOperands& operands) {
    const From* x = static_cast<const From*>(operands.inputs[0]);
    To* y = static_cast<To*>(operands.outputs[0]);
    ParallelBlocks(count, kBlock, [&](std::int64_t offset, std::int64_t size) {
      for (std::int64_t i = offset; i < offset + size; ++i) y[i] = ConvertElement<To>(x[i]);
    });
  });
}

template <typename To>
absl::StatusOr<std::unique_ptr<Kernel>> CreateCastTo(const KernelSpec& spec) {
  switch (spec.inputs[0].dtype) {
    case DType::kF32:
      return CreateElementCast<To, float>(spec);
    case DType::kF16:
      return CreateElementCast<To, Half>(spec);
    case DType::kBF16:
      return CreateElementCast<To, BFloat16>(spec);
    case DType::kI32:
      return CreateElementCast<To, std::int32_t>(spec);
    case DType::kI64:
      return CreateElementCast<To, std::int64_t>(spec);
    case DType::kBool:
      return CreateElementCast<To, Bool>(spec);
    case DType::kI8:
      return CreateElementCast<To, std::int8_t>(spec);
    case DType::kF64:
    case DType::kF8E4M3FN:
    case DType::kF8E5M2:
    case DType::kU8:
      break;
  }
  return UnsupportedTypes(spec);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateCast(const KernelSpec& spec) {
  const DType out = spec.outputs[0].dtype;
  if (spec.inputs[0].dtype == DType::kF64) return CreateElementCast<float, double>(spec);
  if (IsFloating(spec.inputs[0].dtype) && IsFloating(out)) return CreateFloatingCast(spec);
  switch (out) {
    case DType::kF32:
      return CreateCastTo<float>(spec);
    case DType::kF16:
      return CreateCastTo<Half>(spec);
    case DType::kBF16:
      return CreateCastTo<BFloat16>(spec);
    case DType::kI32:
      return CreateCastTo<std::int32_t>(spec);
    case DType::kI64:
      return CreateCastTo<std::int64_t>(spec);
    case DType::kBool:
      return CreateCastTo<Bool>(spec);
    case DType::kI8:
      return CreateCastTo<std::int8_t>(spec);
    case DType::kF64:
    case DType::kF8E4M3FN:
    case DType::kF8E5M2:
    case DType::kU8:
      break;
  }
  return UnsupportedTypes(spec);
}

}  // namespace

void RegisterCast(Registry& registry) { registry.Add("cast", CreateCast, {{0, 0}}); }

}  // namespace mpc::cpu
