// Comparisons, with broadcasting, over floating types and integers. logical_and, logical_or and logical_not. select,
// for any element type, with a scalar condition or one of the operands' shape. where, for any element type, with
// broadcasting.
#include <array>
#include <cstring>
#include <string_view>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/broadcast.h"
#include "kernels/cpu/integers.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"
#include "kernels/scalar/binary.h"
#include "kernels/words.h"

namespace mpc::cpu {
namespace {

// The comparison is exact for every pair of types. Integers are compared as integers, and the rest in f64, whose 53
// bits hold every floating operand.
template <typename Relation>
struct Comparison {
  DType a_type, b_type;
  bool operator()(const void* a, std::int64_t a_index, const void* b, std::int64_t b_index) const {
    if (!IsFloating(a_type) && !IsFloating(b_type)) {
      return Relation::Apply(IntegerAt(a_type, a, a_index), IntegerAt(b_type, b, b_index));
    }
    return Relation::Apply(AsDouble(a_type, a, a_index), AsDouble(b_type, b, b_index));
  }
  static double AsDouble(DType dtype, const void* data, std::int64_t index) {
    return IsFloating(dtype) ? static_cast<double>(Source{dtype, data}.ElementAt(index))
                             : static_cast<double>(IntegerAt(dtype, data, index));
  }
};

template <typename Relation>
absl::StatusOr<std::unique_ptr<Kernel>> CreateComparison(const KernelSpec& spec) {
  const Shape& shape = spec.outputs[0].shape;
  absl::StatusOr<BroadcastMap> a_map = BroadcastMap::Create(spec.inputs[0].shape, shape);
  if (!a_map.ok()) return a_map.status();
  absl::StatusOr<BroadcastMap> b_map = BroadcastMap::Create(spec.inputs[1].shape, shape);
  if (!b_map.ok()) return b_map.status();
  const Comparison<Relation> compare{spec.inputs[0].dtype, spec.inputs[1].dtype};
  if (compare.a_type == DType::kBool || compare.b_type == DType::kBool) return UnsupportedTypes(spec);
  return MakeKernel(
      [compare, a_map = *a_map, b_map = *b_map, count = NumElements(shape)](const KernelOperands& operands) {
        std::uint8_t* y = static_cast<std::uint8_t*>(operands.outputs[0]);
        ParallelBlocks(count, kBlock, [&](std::int64_t offset, std::int64_t size) {
          std::int64_t a_index[kBlock], b_index[kBlock];
          const auto expand = [&](const BroadcastMap& map, std::int64_t* indices) {
            map.ForEachSegment(offset, size,
                               [&](std::int64_t position, std::int64_t from, std::int64_t stride, std::int64_t length) {
                                 for (std::int64_t i = 0; i < length; ++i) indices[position + i] = from + i * stride;
                               });
          };
          expand(a_map, a_index);
          expand(b_map, b_index);
          for (std::int64_t i = 0; i < size; ++i) {
            y[offset + i] = compare(operands.inputs[0], a_index[i], operands.inputs[1], b_index[i]);
          }
        });
      });
}

// Bits of `Word` size are chosen, never interpreted.
template <typename Word>
absl::StatusOr<std::unique_ptr<Kernel>> CreateSelectOf(const KernelSpec& spec) {
  const bool scalar = spec.inputs[0].num_elements() == 1;
  return MakeKernel([scalar, count = spec.outputs[0].num_elements()](const KernelOperands& operands) {
    const std::uint8_t* condition = static_cast<const std::uint8_t*>(operands.inputs[0]);
    const Word* a = static_cast<const Word*>(operands.inputs[1]);
    const Word* b = static_cast<const Word*>(operands.inputs[2]);
    Word* y = static_cast<Word*>(operands.outputs[0]);
    if (scalar) {
      const Word* chosen = *condition != 0 ? a : b;
      if (chosen == y) return;
      ParallelBlocks(count, kBlock, [&](std::int64_t offset, std::int64_t size) {
        std::memcpy(y + offset, chosen + offset, static_cast<std::size_t>(size) * sizeof(Word));
      });
      return;
    }
    ParallelBlocks(count, kBlock, [=](std::int64_t offset, std::int64_t size) {
      const Word* a_block = a + offset;
      const Word* b_block = b + offset;
#pragma omp simd
      for (std::int64_t i = 0; i < size; ++i) y[offset + i] = condition[offset + i] != 0 ? a_block[i] : b_block[i];
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateSelect(const KernelSpec& spec) {
  const DType dtype = spec.outputs[0].dtype;
  if (spec.inputs[1].dtype != dtype || spec.inputs[2].dtype != dtype) return UnsupportedTypes(spec);
  return VisitWord(ElementSize(dtype), [&](auto word) { return CreateSelectOf<decltype(word)>(spec); });
}

using WhereMaps = std::array<BroadcastMap, 3>;

// Bits of `Word` size are chosen, never interpreted.
template <typename Word>
absl::StatusOr<std::unique_ptr<Kernel>> CreateWhereOfWords(const KernelSpec& spec, const WhereMaps& maps) {
  return MakeKernel([maps, count = spec.outputs[0].num_elements()](const KernelOperands& operands) {
    const auto* condition = static_cast<const std::uint8_t*>(operands.inputs[0]);
    const auto* a = static_cast<const Word*>(operands.inputs[1]);
    const auto* b = static_cast<const Word*>(operands.inputs[2]);
    auto* y = static_cast<Word*>(operands.outputs[0]);
    ParallelBlocks(count, kBlock, [&](std::int64_t offset, std::int64_t size) {
      std::uint8_t mask_buffer[kBlock];
      Word a_buffer[kBlock], b_buffer[kBlock];
      const std::uint8_t* mask = LoadWords(maps[0], condition, offset, size, mask_buffer);
      const Word* a_words = LoadWords(maps[1], a, offset, size, a_buffer);
      const Word* b_words = LoadWords(maps[2], b, offset, size, b_buffer);
      Word* target = y + offset;
#pragma omp simd
      for (std::int64_t i = 0; i < size; ++i) target[i] = mask[i] != 0 ? a_words[i] : b_words[i];
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateWhere(const KernelSpec& spec) {
  const Shape& shape = spec.outputs[0].shape;
  WhereMaps maps;
  for (std::size_t i = 0; i < maps.size(); ++i) {
    absl::StatusOr<BroadcastMap> map = BroadcastMap::Create(spec.inputs[i].shape, shape);
    if (!map.ok()) return map.status();
    maps[i] = *map;
  }
  if (const DType dtype = spec.outputs[0].dtype; !IsFloating(dtype)) {
    if (spec.inputs[1].dtype != dtype || spec.inputs[2].dtype != dtype) return UnsupportedTypes(spec);
    return VisitWord(ElementSize(dtype), [&](auto word) { return CreateWhereOfWords<decltype(word)>(spec, maps); });
  }
  return MakeKernel([maps, a_type = spec.inputs[1].dtype, b_type = spec.inputs[2].dtype, y_type = spec.outputs[0].dtype,
                     count = NumElements(shape)](const KernelOperands& operands) {
    const BroadcastSource a{{a_type, operands.inputs[1]}, &maps[1]};
    const BroadcastSource b{{b_type, operands.inputs[2]}, &maps[2]};
    const Sink y{y_type, operands.outputs[0]};
    ParallelBlocks(count, kBlock, [&](std::int64_t offset, std::int64_t size) {
      BlockBuffer a_buffer, b_buffer, y_buffer;
      std::uint8_t mask_buffer[kBlock];
      const std::uint8_t* mask =
          LoadWords(maps[0], static_cast<const std::uint8_t*>(operands.inputs[0]), offset, size, mask_buffer);
      const float* a_values = a.Load(offset, size, a_buffer.values);
      const float* b_values = b.Load(offset, size, b_buffer.values);
      float* target = y.Target(offset, y_buffer.values);
#pragma omp simd
      for (std::int64_t i = 0; i < size; ++i) target[i] = mask[i] != 0 ? a_values[i] : b_values[i];
      y.Commit(offset, size, target);
    });
  });
}

struct NotOfFirst {
  static bool Apply(bool a, bool) { return scalar::LogicalNotOp::Apply(a); }
};

// y = op(a, b) with broadcasting. An operation of one operand has it for both.
template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> CreateLogical(const KernelSpec& spec) {
  const Shape& shape = spec.outputs[0].shape;
  if (spec.inputs.front().dtype != DType::kBool || spec.inputs.back().dtype != DType::kBool) {
    return UnsupportedTypes(spec);
  }
  absl::StatusOr<BroadcastMap> a_map = BroadcastMap::Create(spec.inputs.front().shape, shape);
  if (!a_map.ok()) return a_map.status();
  absl::StatusOr<BroadcastMap> b_map = BroadcastMap::Create(spec.inputs.back().shape, shape);
  if (!b_map.ok()) return b_map.status();
  return MakeKernel([a_map = *a_map, b_map = *b_map, last = spec.inputs.size() - 1,
                     count = NumElements(shape)](const KernelOperands& operands) {
    const auto* a = static_cast<const std::uint8_t*>(operands.inputs[0]);
    const auto* b = static_cast<const std::uint8_t*>(operands.inputs[last]);
    auto* y = static_cast<std::uint8_t*>(operands.outputs[0]);
    ParallelBlocks(count, kBlock, [&](std::int64_t offset, std::int64_t size) {
      std::uint8_t a_buffer[kBlock], b_buffer[kBlock];
      const std::uint8_t* a_values = LoadWords(a_map, a, offset, size, a_buffer);
      const std::uint8_t* b_values = LoadWords(b_map, b, offset, size, b_buffer);
      std::uint8_t* target = y + offset;
#pragma omp simd
      for (std::int64_t i = 0; i < size; ++i) target[i] = Op::Apply(a_values[i] != 0, b_values[i] != 0) ? 1 : 0;
    });
  });
}

}  // namespace

void RegisterCompare(Registry& registry) {
  scalar::ForEachComparison(
      [&registry]<typename Relation>(std::string_view name) { registry.Add(name, CreateComparison<Relation>); });
  registry.Add("logical_and", CreateLogical<scalar::LogicalAndOp>, {{0, 0}, {0, 1}});
  registry.Add("logical_or", CreateLogical<scalar::LogicalOrOp>, {{0, 0}, {0, 1}});
  registry.Add("logical_not", CreateLogical<NotOfFirst>, {{0, 0}});
  registry.Add("where", CreateWhere, {{0, 1}, {0, 2}});
  registry.Add("select", CreateSelect, {{0, 1}, {0, 2}});
}

}  // namespace mpc::cpu
