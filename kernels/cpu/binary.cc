// Element-wise operations of two operands with broadcasting, for any floating storage type: add, sub, mul, div,
// maximum, and the gradient operations div_grad (dy, y, b) and maximum_grad (dy, a, b). Operands of the result's shape
// are read where they lie; scalars, rows (biases), columns and every other stretching are expanded block by block in
// the cache.
#include <algorithm>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/broadcast.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"

namespace mpc::cpu {
namespace {

struct Add {
  static float Apply(float a, float b) { return a + b; }
};
struct Sub {
  static float Apply(float a, float b) { return a - b; }
};
struct Mul {
  static float Apply(float a, float b) { return a * b; }
};
struct Div {
  static float Apply(float a, float b) { return a / b; }
};
// NaN if either is: a NaN in a makes `a > b` false and `b == b` true, hence the order of the tests.
struct Maximum {
  static float Apply(float a, float b) { return a > b || a != a ? a : b; }
};

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

// One function of three operands, each broadcast to the results, of which there are one or two.
template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> CreateTernaryGrad(const KernelSpec& spec) {
  const Shape& shape = spec.outputs[0].shape;
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

struct DivGrad {
  static float First(float dy, float y, float b) { return -dy * y / b; }
  static float Second(float, float, float) { return 0.0f; }
};

struct MaximumGrad {
  static float First(float dy, float a, float b) { return a > b ? dy : (a == b ? 0.5f * dy : 0.0f); }
  static float Second(float dy, float a, float b) { return First(dy, b, a); }
};

}  // namespace

void RegisterBinary(Registry& registry) {
  registry.Add("add", CreateBinary<Add>, {{0, 0}, {0, 1}});
  registry.Add("sub", CreateBinary<Sub>, {{0, 0}, {0, 1}});
  registry.Add("mul", CreateBinary<Mul>, {{0, 0}, {0, 1}});
  registry.Add("div", CreateBinary<Div>, {{0, 0}, {0, 1}});
  registry.Add("maximum", CreateBinary<Maximum>, {{0, 0}, {0, 1}});
  registry.Add("div_grad", CreateTernaryGrad<DivGrad>, {{0, 0}, {0, 1}, {0, 2}});
  registry.Add("maximum_grad", CreateTernaryGrad<MaximumGrad>, {{0, 0}, {1, 0}});
}

}  // namespace mpc::cpu
