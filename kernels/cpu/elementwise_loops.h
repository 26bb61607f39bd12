// The loops of element-wise kernels, written once. An operation is a struct with the formula of one element, `Apply`.
// It is constructed from the attributes where it has any. Operands and results have any floating storage type.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/broadcast.h"
#include "kernels/cpu/parallel.h"

namespace mpc::cpu {

/// Operations whose `Apply` holds only for |x| <= kFastLimit, where x is the last operand, have a slower form for every
/// x.
template <typename Op>
concept HasFastRange = requires {
  Op::kFastLimit;
};

template <typename Op>
Op FromAttributes(const Attributes& attributes) {
  if constexpr (std::is_constructible_v<Op, const Attributes&>) {
    return Op(attributes);
  } else {
    return Op{};
  }
}

inline bool AllWithin(const float* x, std::int64_t size, float limit) {
  int beyond = 0;
#pragma omp simd reduction(+ : beyond)
  for (std::int64_t i = 0; i < size; ++i) beyond += std::fabs(x[i]) > limit ? 1 : 0;
  return beyond == 0;
}

/// y[i] = op(first[i], ..., x[i]).
template <typename Op, typename... First>
void ApplyToBlock(const Op& shared, std::int64_t size, float* y, const float* x, const First*... first) {
  const Op op = shared;  // a copy that y cannot overlap: its parameters stay in registers
  if constexpr (HasFastRange<Op>) {
    if (!AllWithin(x, size, Op::kFastLimit)) {
      for (std::int64_t i = 0; i < size; ++i) y[i] = op.Slow(first[i]..., x[i]);
      return;
    }
  }
#pragma omp simd
  for (std::int64_t i = 0; i < size; ++i) y[i] = op.Apply(first[i]..., x[i]);
}

/// y = op(x).
template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> CreateUnary(const KernelSpec& spec) {
  return MakeKernel([op = FromAttributes<Op>(spec.attributes), in = spec.inputs[0].dtype, out = spec.outputs[0].dtype,
                     count = spec.outputs[0].num_elements()](const KernelOperands& operands) {
    const Source x{in, operands.inputs[0]};
    const Sink y{out, operands.outputs[0]};
    ParallelBlocks(count, kBlock, [&](std::int64_t offset, std::int64_t size) {
      BlockBuffer x_buffer, y_buffer;
      const float* values = x.Load(offset, size, x_buffer.values);
      float* target = y.Target(offset, y_buffer.values);
      ApplyToBlock(op, size, target, values);
      y.Commit(offset, size, target);
    });
  });
}

/// dx = op(dy, v) where v is the forward operation's operand or result, of the shape of dy.
template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> CreateUnaryGrad(const KernelSpec& spec) {
  return MakeKernel([op = FromAttributes<Op>(spec.attributes), dy_type = spec.inputs[0].dtype,
                     v_type = spec.inputs[1].dtype, out = spec.outputs[0].dtype,
                     count = spec.outputs[0].num_elements()](const KernelOperands& operands) {
    const Source dy{dy_type, operands.inputs[0]};
    const Source v{v_type, operands.inputs[1]};
    const Sink dx{out, operands.outputs[0]};
    ParallelBlocks(count, kBlock, [&](std::int64_t offset, std::int64_t size) {
      BlockBuffer dy_buffer, v_buffer, dx_buffer;
      const float* dy_values = dy.Load(offset, size, dy_buffer.values);
      const float* v_values = v.Load(offset, size, v_buffer.values);
      float* target = dx.Target(offset, dx_buffer.values);
      ApplyToBlock(op, size, target, v_values, dy_values);
      dx.Commit(offset, size, target);
    });
  });
}

/// y = op(a, b) with broadcasting.
template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> CreateBinary(const KernelSpec& spec) {
  const Shape& shape = spec.outputs[0].shape;
  absl::StatusOr<BroadcastMap> a_map = BroadcastMap::Create(spec.inputs[0].shape, shape);
  if (!a_map.ok()) return a_map.status();
  absl::StatusOr<BroadcastMap> b_map = BroadcastMap::Create(spec.inputs[1].shape, shape);
  if (!b_map.ok()) return b_map.status();
  return MakeKernel([a_map = *a_map, b_map = *b_map, a_type = spec.inputs[0].dtype, b_type = spec.inputs[1].dtype,
                     y_type = spec.outputs[0].dtype, count = NumElements(shape)](const KernelOperands& operands) {
    const BroadcastSource a{{a_type, operands.inputs[0]}, &a_map};
    const BroadcastSource b{{b_type, operands.inputs[1]}, &b_map};
    const Sink y{y_type, operands.outputs[0]};
    ParallelBlocks(count, kBlock, [&](std::int64_t offset, std::int64_t size) {
      BlockBuffer a_buffer, b_buffer, y_buffer;
      const float* a_values = a.Load(offset, size, a_buffer.values);
      const float* b_values = b.Load(offset, size, b_buffer.values);
      float* target = y.Target(offset, y_buffer.values);
#pragma omp simd
      for (std::int64_t i = 0; i < size; ++i) target[i] = Op::Apply(a_values[i], b_values[i]);
      y.Commit(offset, size, target);
    });
  });
}

/// One or two results of three operands, each broadcast to the first, dy: Op::First and Op::Second.
template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> CreateTernaryGrad(const KernelSpec& spec) {
  const Shape& shape = spec.inputs[0].shape;
  std::array<BroadcastMap, 3> maps;
  std::array<DType, 3> types;
  for (std::size_t i = 0; i < 3; ++i) {
    absl::StatusOr<BroadcastMap> map = BroadcastMap::Create(spec.inputs[i].shape, shape);
    if (!map.ok()) return map.status();
    maps[i] = *map;
    types[i] = spec.inputs[i].dtype;
  }
  std::array<DType, 2> results{spec.outputs[0].dtype, spec.outputs.back().dtype};
  std::array<bool, 2> used{spec.uses(0), spec.outputs.size() > 1 && spec.uses(1)};
  return MakeKernel([maps, types, results, used, count = NumElements(shape)](const KernelOperands& operands) {
    ParallelBlocks(count, kBlock, [&](std::int64_t offset, std::int64_t size) {
      std::array<BlockBuffer, 3> buffers;
      std::array<const float*, 3> x;
      for (std::size_t i = 0; i < 3; ++i) {
        x[i] = BroadcastSource{{types[i], operands.inputs[i]}, &maps[i]}.Load(offset, size, buffers[i].values);
      }
      BlockBuffer first, second;
      const float* x0 = x[0];
      const float* x1 = x[1];
      const float* x2 = x[2];
#pragma omp simd
      for (std::int64_t i = 0; i < size; ++i) {
        first.values[i] = Op::First(x0[i], x1[i], x2[i]);
        second.values[i] = Op::Second(x0[i], x1[i], x2[i]);
      }
      if (used[0]) StoreFloats(results[0], first.values, operands.outputs[0], offset, size);
      if (used[1]) StoreFloats(results[1], second.values, operands.outputs[1], offset, size);
    });
  });
}

}  // namespace mpc::cpu
