// Comparisons, with broadcasting, over floating types and integers. logical_and, logical_or and logical_not. select,
// for any element type, with a scalar condition or one of the operands' shape. where, for any element type, with
// broadcasting. cast between every pair of f32, f16, bf16, i32, i64 and i1.
#include <array>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "kernels/cuda/broadcast.h"
#include "kernels/cuda/registry.h"
#include "kernels/scalar/binary.h"
#include "kernels/scalar/cast.h"
#include "kernels/words.h"

namespace mpc::cuda {
namespace {

/// A result of truth values, one byte each: what differs from 0 is true.
struct BoolSink {
  std::uint8_t* data;
  __device__ __forceinline__ void Store(std::int64_t index, float value) const { data[index] = value != 0.0f; }
  __device__ __forceinline__ void StoreVector(std::int64_t index, const float (&values)[kVector]) const {
    std::uint64_t packed = 0;
    for (int i = 0; i < kVector; ++i) packed |= static_cast<std::uint64_t>(values[i] != 0.0f) << (8 * i);
    *reinterpret_cast<std::uint64_t*>(data + index) = packed;
  }
};

struct ComparisonOperands {
  static constexpr int kOperands = 2;
  BroadcastSource x[2];
  BoolSink y;
};

template <typename Relation>
struct Compare {
  __device__ float operator()(float a, float b) const { return Relation::Apply(a, b) ? 1.0f : 0.0f; }
};

/// A number of any type but i1.
struct NumberSource {
  const void* data;
  DType dtype;
  BroadcastMap map;

  __device__ __forceinline__ std::int64_t Integer(std::int64_t index) const {
    const std::int64_t at = map.OffsetAt(index);
    return dtype == DType::kI32 ? static_cast<const std::int32_t*>(data)[at]
                                : static_cast<const std::int64_t*>(data)[at];
  }
  __device__ __forceinline__ double Double(std::int64_t index) const {
    return IsFloating(dtype) ? static_cast<double>(Source{data, dtype}.Load(map.OffsetAt(index)))
                             : static_cast<double>(Integer(index));
  }
};

/// The comparison is exact for every pair of types. Integers are compared as integers, and the rest in f64, whose 53
/// bits hold every floating operand.
template <typename Relation>
__global__ void __launch_bounds__(kMapThreads)
    CompareNumbersKernel(NumberSource a, NumberSource b, std::uint8_t* y, std::int64_t count) {
  AwaitEarlierLaunches();
  const bool integers = !IsFloating(a.dtype) && !IsFloating(b.dtype);
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += threads) {
    y[i] = integers ? Relation::Apply(a.Integer(i), b.Integer(i)) : Relation::Apply(a.Double(i), b.Double(i));
  }
}

/// One thread an element.
LaunchShape ElementShape(std::int64_t count) {
  LaunchShape shape;
  shape.threads = kMapThreads;
  shape.blocks_x = BlocksFor(count, kMapThreads);
  return shape;
}

template <typename Relation>
absl::StatusOr<std::unique_ptr<Kernel>> CreateComparison(const KernelSpec& spec, const KernelContext&) {
  const auto maps = BroadcastMaps<2>(spec.inputs, spec.outputs[0].shape);
  if (!maps.ok()) return maps.status();
  const DType a_type = spec.inputs[0].dtype, b_type = spec.inputs[1].dtype;
  if (a_type == DType::kBool || b_type == DType::kBool) return UnsupportedTypes(spec);
  return MakeKernel([maps = *maps, a_type, b_type, count = spec.outputs[0].num_elements()](
                        const KernelOperands& operands, LaunchQueue& queue) {
    std::uint8_t* y = static_cast<std::uint8_t*>(operands.outputs[0]);
    if (IsFloating(a_type) && IsFloating(b_type)) {
      const ComparisonOperands bound{{{{operands.inputs[0], a_type}, maps[0]}, {{operands.inputs[1], b_type}, maps[1]}},
                                     {y}};
      return MapElements(queue, bound, Compare<Relation>(), count);
    }
    return launch(queue, &CompareNumbersKernel<Relation>, ElementShape(count),
                  NumberSource{operands.inputs[0], a_type, maps[0]}, NumberSource{operands.inputs[1], b_type, maps[1]},
                  y, count);
  });
}

/// Eight bytes of truth values.
__device__ __forceinline__ bool IsTrue(std::uint64_t mask, int i) { return (mask >> (8 * i) & 0xff) != 0; }

/// Bits are chosen, never interpreted.
template <typename Word>
__global__ void __launch_bounds__(kMapThreads)
    SelectKernel(const std::uint8_t* condition, const Word* a, const Word* b, Word* y, std::int64_t count) {
  AwaitEarlierLaunches();
  ForEachVector(
      count,
      [&](std::int64_t first) {
        const std::uint64_t mask = *reinterpret_cast<const std::uint64_t*>(condition + first);
        const auto from_a = *reinterpret_cast<const WordVector<Word>*>(a + first);
        const auto from_b = *reinterpret_cast<const WordVector<Word>*>(b + first);
        WordVector<Word> chosen;
        for (int i = 0; i < kVector; ++i) chosen.words[i] = IsTrue(mask, i) ? from_a.words[i] : from_b.words[i];
        *reinterpret_cast<WordVector<Word>*>(y + first) = chosen;
      },
      [&](std::int64_t i) { y[i] = condition[i] != 0 ? a[i] : b[i]; });
}

/// One condition for whole tensors: a copy of one of them, or nothing where the result lies there already.
__global__ void __launch_bounds__(kMapThreads)
    ChooseKernel(const std::uint8_t* condition, const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* y,
                 std::int64_t bytes) {
  AwaitEarlierLaunches();
  const std::uint8_t* chosen = *condition != 0 ? a : b;
  if (chosen == y) return;
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t vectors = bytes / static_cast<std::int64_t>(sizeof(Bits128));
  for (std::int64_t i = thread; i < vectors; i += threads) {
    reinterpret_cast<Bits128*>(y)[i] = reinterpret_cast<const Bits128*>(chosen)[i];
  }
  const std::int64_t moved = vectors * static_cast<std::int64_t>(sizeof(Bits128));
  for (std::int64_t i = moved + thread; i < bytes; i += threads) y[i] = chosen[i];
}

template <typename Word>
absl::StatusOr<std::unique_ptr<Kernel>> CreateSelectOf(const KernelSpec& spec) {
  return MakeKernel([count = spec.outputs[0].num_elements()](const KernelOperands& operands, LaunchQueue& queue) {
    return launch(queue, &SelectKernel<Word>, MapShape(count), static_cast<const std::uint8_t*>(operands.inputs[0]),
                  static_cast<const Word*>(operands.inputs[1]), static_cast<const Word*>(operands.inputs[2]),
                  static_cast<Word*>(operands.outputs[0]), count);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateChoice(const KernelSpec& spec) {
  return MakeKernel(
      [bytes = static_cast<std::int64_t>(spec.outputs[0].bytes())](const KernelOperands& operands, LaunchQueue& queue) {
        return launch(
            queue, &ChooseKernel, ElementShape((bytes + 15) / 16), static_cast<const std::uint8_t*>(operands.inputs[0]),
            static_cast<const std::uint8_t*>(operands.inputs[1]), static_cast<const std::uint8_t*>(operands.inputs[2]),
            static_cast<std::uint8_t*>(operands.outputs[0]), bytes);
      });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateSelect(const KernelSpec& spec, const KernelContext&) {
  const DType dtype = spec.outputs[0].dtype;
  if (spec.inputs[1].dtype != dtype || spec.inputs[2].dtype != dtype) return UnsupportedTypes(spec);
  if (spec.inputs[0].num_elements() == 1) return CreateChoice(spec);
  return VisitWord(ElementSize(dtype), [&](auto word) { return CreateSelectOf<decltype(word)>(spec); });
}

/// A condition as 1 and 0, seen in the shape of the result.
struct ConditionSource {
  const std::uint8_t* data;
  BroadcastMap map;

  __device__ __forceinline__ bool Load(std::int64_t index) const { return data[map.OffsetAt(index)] != 0; }
  __device__ __forceinline__ void LoadVector(std::int64_t index, bool (&values)[kVector]) const {
    map.LoadVector(
        index, values, [&](std::int64_t i) { return data[i] != 0; },
        [&](std::int64_t i, bool(&vector)[kVector]) {
          const std::uint64_t mask = *reinterpret_cast<const std::uint64_t*>(data + i);
          for (int k = 0; k < kVector; ++k) vector[k] = IsTrue(mask, k);
        });
  }
};

__global__ void __launch_bounds__(kMapThreads, 4)
    WhereKernel(ConditionSource condition, BroadcastSource a, BroadcastSource b, Sink y, std::int64_t count) {
  AwaitEarlierLaunches();
  ForEachVector(
      count,
      [&](std::int64_t first) {
        bool mask[kVector];
        float from_a[kVector], from_b[kVector];
        condition.LoadVector(first, mask);
        a.LoadVector(first, from_a);
        b.LoadVector(first, from_b);
        for (int i = 0; i < kVector; ++i) from_a[i] = mask[i] ? from_a[i] : from_b[i];
        y.StoreVector(first, from_a);
      },
      [&](std::int64_t i) { y.Store(i, condition.Load(i) ? a.Load(i) : b.Load(i)); });
}

/// Bits are chosen, never interpreted.
template <typename Word>
__global__ void __launch_bounds__(kMapThreads)
    WhereWordsKernel(ConditionSource condition, WordSource<Word> a, WordSource<Word> b, Word* y, std::int64_t count) {
  AwaitEarlierLaunches();
  ForEachVector(
      count,
      [&](std::int64_t first) {
        bool mask[kVector];
        WordVector<Word> from_a, from_b;
        condition.LoadVector(first, mask);
        a.LoadVector(first, from_a.words);
        b.LoadVector(first, from_b.words);
        for (int i = 0; i < kVector; ++i) from_a.words[i] = mask[i] ? from_a.words[i] : from_b.words[i];
        *reinterpret_cast<WordVector<Word>*>(y + first) = from_a;
      },
      [&](std::int64_t i) { y[i] = condition.Load(i) ? a.Load(i) : b.Load(i); });
}

template <typename Word>
absl::StatusOr<std::unique_ptr<Kernel>> CreateWhereOfWords(const KernelSpec& spec,
                                                           const std::array<BroadcastMap, 3>& maps) {
  return MakeKernel([maps, count = spec.outputs[0].num_elements()](const KernelOperands& operands, LaunchQueue& queue) {
    return launch(queue, &WhereWordsKernel<Word>, MapShape(count),
                  ConditionSource{static_cast<const std::uint8_t*>(operands.inputs[0]), maps[0]},
                  WordSource<Word>{static_cast<const Word*>(operands.inputs[1]), maps[1]},
                  WordSource<Word>{static_cast<const Word*>(operands.inputs[2]), maps[2]},
                  static_cast<Word*>(operands.outputs[0]), count);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateWhere(const KernelSpec& spec, const KernelContext&) {
  const auto maps = BroadcastMaps<3>(spec.inputs, spec.outputs[0].shape);
  if (!maps.ok()) return maps.status();
  if (const DType dtype = spec.outputs[0].dtype; !IsFloating(dtype)) {
    if (spec.inputs[1].dtype != dtype || spec.inputs[2].dtype != dtype) return UnsupportedTypes(spec);
    return VisitWord(ElementSize(dtype), [&](auto word) { return CreateWhereOfWords<decltype(word)>(spec, *maps); });
  }
  return MakeKernel([maps = *maps, a = spec.inputs[1].dtype, b = spec.inputs[2].dtype, y = spec.outputs[0].dtype,
                     count = spec.outputs[0].num_elements()](const KernelOperands& operands, LaunchQueue& queue) {
    return launch(queue, &WhereKernel, MapShape(count),
                  ConditionSource{static_cast<const std::uint8_t*>(operands.inputs[0]), maps[0]},
                  BroadcastSource{{operands.inputs[1], a}, maps[1]}, BroadcastSource{{operands.inputs[2], b}, maps[2]},
                  Sink{operands.outputs[0], y}, count);
  });
}

struct NotOfFirst {
  MPC_HOST_DEVICE static bool Apply(bool a, bool) { return scalar::LogicalNotOp::Apply(a); }
};

template <typename Op>
__global__ void __launch_bounds__(kMapThreads)
    LogicalKernel(ConditionSource a, ConditionSource b, std::uint8_t* y, std::int64_t count) {
  AwaitEarlierLaunches();
  ForEachVector(
      count,
      [&](std::int64_t first) {
        bool from_a[kVector], from_b[kVector];
        a.LoadVector(first, from_a);
        b.LoadVector(first, from_b);
        std::uint64_t packed = 0;
        for (int i = 0; i < kVector; ++i) {
          packed |= static_cast<std::uint64_t>(Op::Apply(from_a[i], from_b[i])) << (8 * i);
        }
        *reinterpret_cast<std::uint64_t*>(y + first) = packed;
      },
      [&](std::int64_t i) { y[i] = Op::Apply(a.Load(i), b.Load(i)); });
}

/// An operation of one operand has it for both.
template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> CreateLogical(const KernelSpec& spec, const KernelContext&) {
  const auto maps = BroadcastMaps<2>({spec.inputs.front(), spec.inputs.back()}, spec.outputs[0].shape);
  if (!maps.ok()) return maps.status();
  if (spec.inputs.front().dtype != DType::kBool || spec.inputs.back().dtype != DType::kBool) {
    return UnsupportedTypes(spec);
  }
  return MakeKernel([maps = *maps, last = spec.inputs.size() - 1, count = spec.outputs[0].num_elements()](
                        const KernelOperands& operands, LaunchQueue& queue) {
    return launch(queue, &LogicalKernel<Op>, MapShape(count),
                  ConditionSource{static_cast<const std::uint8_t*>(operands.inputs[0]), maps[0]},
                  ConditionSource{static_cast<const std::uint8_t*>(operands.inputs[last]), maps[1]},
                  static_cast<std::uint8_t*>(operands.outputs[0]), count);
  });
}

struct Identity {
  __device__ float operator()(float x) const { return x; }
};

/// Writes an integer or a float as an element of any type. Floats to integers truncate towards zero and saturate; NaN
/// gives 0. Integers to smaller integers saturate. The cast to i1 asks whether the value differs from 0.
struct AnySink {
  void* data;
  DType dtype;

  __device__ __forceinline__ void Store(std::int64_t index, std::int64_t value) const {
    if (dtype == DType::kBool) {
      static_cast<std::uint8_t*>(data)[index] = value != 0;
    } else if (dtype == DType::kI32) {
      static_cast<std::int32_t*>(data)[index] = scalar::Saturate<std::int32_t>(value);
    } else if (dtype == DType::kI8) {
      static_cast<std::int8_t*>(data)[index] = scalar::Saturate<std::int8_t>(value);
    } else if (dtype == DType::kI64) {
      static_cast<std::int64_t*>(data)[index] = value;
    } else {
      const Sink sink{data, dtype};
      sink.Store(index, dtype == DType::kF32 ? static_cast<float>(value) : scalar::RoundToOdd(value));
    }
  }
  __device__ __forceinline__ void Store(std::int64_t index, float value) const {
    if (dtype == DType::kBool) {
      static_cast<std::uint8_t*>(data)[index] = value != 0.0f;
    } else if (dtype == DType::kI32) {
      static_cast<std::int32_t*>(data)[index] = scalar::Saturate<std::int32_t>(value);
    } else if (dtype == DType::kI8) {
      static_cast<std::int8_t*>(data)[index] = scalar::Saturate<std::int8_t>(value);
    } else {
      static_cast<std::int64_t*>(data)[index] = scalar::Saturate<std::int64_t>(value);
    }
  }
};

/// Casts that begin or end at an integer.
__global__ void __launch_bounds__(kMapThreads) CastKernel(const void* x, DType type, AnySink y, std::int64_t count) {
  AwaitEarlierLaunches();
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += threads) {
    if (IsFloating(type)) {
      y.Store(i, Source{x, type}.Load(i));
    } else if (type == DType::kBool) {
      y.Store(i, static_cast<std::int64_t>(static_cast<const std::uint8_t*>(x)[i] != 0));
    } else if (type == DType::kI32) {
      y.Store(i, static_cast<std::int64_t>(static_cast<const std::int32_t*>(x)[i]));
    } else if (type == DType::kI8) {
      y.Store(i, static_cast<std::int64_t>(static_cast<const std::int8_t*>(x)[i]));
    } else {
      y.Store(i, static_cast<const std::int64_t*>(x)[i]);
    }
  }
}

/// One thread: an f64 scalar, rounded.
__global__ void NarrowScalarKernel(const double* x, float* y) {
  AwaitEarlierLaunches();
  *y = static_cast<float>(*x);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateCast(const KernelSpec& spec, const KernelContext&) {
  return MakeKernel([in = spec.inputs[0].dtype, out = spec.outputs[0].dtype, count = spec.outputs[0].num_elements()](
                        const KernelOperands& operands, LaunchQueue& queue) {
    if (in == DType::kF64) {
      LaunchShape shape;
      shape.threads = 1;
      return launch(queue, &NarrowScalarKernel, shape, static_cast<const double*>(operands.inputs[0]),
                    static_cast<float*>(operands.outputs[0]));
    }
    if (IsFloating(in) && IsFloating(out)) {
      return Map<1>(queue, {{{operands.inputs[0], in}}, {operands.outputs[0], out}}, Identity(), count);
    }
    return launch(queue, &CastKernel, ElementShape(count), operands.inputs[0], in, AnySink{operands.outputs[0], out},
                  count);
  });
}

}  // namespace

void RegisterSelection(Registry& registry) {
  scalar::ForEachComparison(
      [&registry]<typename Relation>(std::string_view name) { registry.Add(name, CreateComparison<Relation>); });
  registry.Add("logical_and", CreateLogical<scalar::LogicalAndOp>, {{0, 0}, {0, 1}});
  registry.Add("logical_or", CreateLogical<scalar::LogicalOrOp>, {{0, 0}, {0, 1}});
  registry.Add("logical_not", CreateLogical<NotOfFirst>, {{0, 0}});
  registry.Add("where", CreateWhere, {{0, 1}, {0, 2}});
  registry.Add("select", CreateSelect, {{0, 1}, {0, 2}});
  registry.Add("cast", CreateCast, {{0, 0}});
}

}  // namespace mpc::cuda
