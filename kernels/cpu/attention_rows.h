// What attention and its gradient share: shapes, masks, the scores of a block of rows, and how work is dealt out.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/attention_geometry.h"
#include "kernels/cpu/blocks.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/own_way.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/row_products.h"
#include "kernels/cpu/tile_products.h"
#include "kernels/scalar/vector_math.h"

namespace mpc::cpu {

/// Rows of scores that a task keeps: two tiles, or what fills registers.
template <typename Number>
inline constexpr std::int64_t kScoreRows = std::is_same_v<Number, TilePair> ? kTileDepth : 24;

/// From row to row of a buffer for `length` numbers or pairs. Lines of a cache that hold a tile are an odd number of
/// lines apart, so that they do not take each other's places.
template <typename Number>
constexpr std::int64_t StrideFor(std::int64_t length) {
  return std::is_same_v<Number, TilePair> ? (length / kTilePairs | 1) * kTilePairs : length;
}

/// The geometry, with the padding and the cut into tasks that the loops use.
struct AttentionShape : AttentionGeometry {
  /// Ranges of `parts` parts of the work that may run at once. Each has its own piece of the workspace, whatever the
  /// number of threads.
  static std::int64_t SlotsOf(std::int64_t parts) { return std::min<std::int64_t>(parts, 32); }

  std::int64_t padded_columns() const { return PaddedToPanel(columns); }
  std::int64_t padded_width() const { return PaddedToPanel(width); }
  std::int64_t padded_value_width() const { return PaddedToPanel(value_width); }
  template <typename Number>
  std::int64_t row_blocks() const {
    return (rows + kScoreRows<Number> - 1) / kScoreRows<Number>;
  }
  std::int64_t work() const { return heads() * rows * columns * (width + value_width); }

  /// Scales the products of one row. Positions that may not be read become -inf. `scores` holds `count` columns, of
  /// which the row may read those below ReadableColumns(row).
  void ScaleAndMask(const std::uint8_t* mask, std::int64_t head, std::int64_t row, std::int64_t count,
                    float* scores) const {
    constexpr float kNone = -std::numeric_limits<float>::infinity();
    const std::int64_t readable = std::min(count, ReadableColumns(row));
#pragma omp simd
    for (std::int64_t s = 0; s < count; ++s) scores[s] *= scale;
    // From the panel on that holds the first of them, so that the loop has no rest.
    const auto end = static_cast<std::int32_t>(count), unread = static_cast<std::int32_t>(readable);
#pragma omp simd
    for (std::int32_t s = unread - unread % int{kPanel}; s < end; ++s) scores[s] = s < unread ? scores[s] : kNone;
    if (!has_mask) return;
    const std::uint8_t* const allowed = mask + MaskRow(head, row);
    if (mask_strides[3] == 0) {
      if (*allowed == 0) std::fill_n(scores, count, kNone);
      return;
    }
#pragma omp simd
    for (std::int64_t s = 0; s < readable; ++s) scores[s] = allowed[s] != 0 ? scores[s] : kNone;
  }
};

/// Rounds to a low storage type and back; f32 stays.
inline void RoundThrough(DType dtype, float* values, std::int64_t count) {
  if (!IsLowPrecision(dtype)) return;
  std::uint16_t stored[kBlock];
  for (std::int64_t start = 0; start < count; start += kBlock) {
    const std::int64_t size = std::min(kBlock, count - start);
    StoreFloats(dtype, values + start, stored, 0, size);
    LoadFloats(dtype, stored, 0, size, values + start);
  }
}

/// Whether every block of `block_rows` rows reads a multiple of `block_rows` columns, or all of them. Otherwise the
/// last pair or tile would have columns that no row of the block may read.
inline bool ReadsWholeBlocks(const AttentionGeometry& geometry, std::int64_t block_rows) {
  return !geometry.causal || (geometry.columns - geometry.rows) % block_rows == 0;
}

/// How products of attention are computed, by their names in choice tables: operands widened to f32, or pairs of bf16.
/// The third way is kOnTiles.
inline constexpr char kInF32[] = "f32 rows", kInPairs[] = "bf16 pairs";

/// The ways that operands of these types can take. make.operator()<Number>() makes their kernels.
template <typename Make>
std::vector<OwnWay> WaysOfAttention(const AttentionGeometry& geometry, std::initializer_list<DType> types,
                                    const Make& make) {
  static_assert(kScoreRows<Bf16Pair> % 2 == 0);
  const bool are_bf16 = std::ranges::all_of(types, [](DType dtype) { return dtype == DType::kBF16; });
  std::vector<OwnWay> ways;
  const auto add = [&]<typename Number>(Number, const char* choice, bool is_faster) {
    ways.push_back(
        {choice, is_faster, [make, choice] { return WithChoice(make.template operator()<Number>(), choice); }});
  };
  if (are_bf16 && MultipliesTiles() && ReadsWholeBlocks(geometry, kTileDepth)) {
    // Rows, columns and heads fill tiles, and scores pay for what tiles need. docs/cpu.md has what was measured.
    const std::int64_t scores = std::min(geometry.rows, geometry.columns);
    const std::int64_t width = std::min(geometry.width, geometry.value_width);
    add(TilePair{}, kOnTiles, std::min(scores, width) >= kTileRows && scores * width >= kTileRows * kTileDepth);
  }
  if (are_bf16 && MultipliesPairs() && ReadsWholeBlocks(geometry, 2)) {
    add(Bf16Pair{}, kInPairs, true);
  } else {
    add(float{}, kInF32, true);
  }
  return ways;
}

/// The kernel of `choice` among `ways`; empty: of the rule's. FAILED_PRECONDITION where there is none of that name.
inline absl::StatusOr<std::unique_ptr<Kernel>> MakeInWay(const KernelSpec& spec, const std::vector<OwnWay>& ways,
                                                         const std::string& choice) {
  if (const OwnWay* way = ChosenWay(ways, choice)) return way->make();
  return absl::FailedPreconditionError(absl::StrCat("mpc.", spec.name, " has no \"", choice,
                                                    "\" for these operands on this processor; it has ",
                                                    absl::StrJoin(WithOwnWays(ways), ", ")));
}

#if defined(__x86_64__)
#define MPC_BESIDE_TILES [[gnu::target("avx512f"), gnu::flatten]]
#else
#define MPC_BESIDE_TILES
#endif

/// Calls loop(r) for each of `rows` rows. Loops beside products on tiles are compiled for AVX-512, which every
/// processor with tiles has.
template <typename Number, typename Loop>
void ForEachRow(std::int64_t rows, const Loop& loop) requires(!std::is_same_v<Number, TilePair>) {
  for (std::int64_t r = 0; r < rows; ++r) loop(r);
}
template <typename Number, typename Loop>
MPC_BESIDE_TILES void ForEachRow(std::int64_t rows, const Loop& loop) requires(std::is_same_v<Number, TilePair>) {
  for (std::int64_t r = 0; r < rows; ++r) loop(r);
}

/// exp(x) for x up to 89, or NaN, of probabilities that products of `Number` read. On tiles subnormal ones are 0.
template <typename Number>
float ProbabilityExp(float x) {
  return std::is_same_v<Number, TilePair> ? scalar::BoundedShareExp(x) : scalar::Exp(x);
}

/// The sum of kCount numbers, which it overwrites, as a tree of additions.
template <std::int64_t kCount>
float SumOfTree(float* terms) {
  if constexpr (kCount == 1) return terms[0];
  for (std::int64_t i = 0; i < kCount / 2; ++i) terms[i] += terms[i + kCount / 2];
  return SumOfTree<std::max<std::int64_t>(kCount / 2, 1)>(terms);
}

/// The columns that loops over a row of `columns` take. On tiles they are those of whole panels, so that loops have no
/// rest: the last ones are masked.
template <typename Number>
constexpr std::int64_t LoopColumns(std::int64_t columns) {
  return std::is_same_v<Number, TilePair> ? PaddedToPanel(columns) : columns;
}

/// The sum of term(0) .. term(count - 1) for LoopColumns, in an order that `Number` and `count` determine.
template <typename Number, typename Term>
float SumOfTerms(std::int64_t count, const Term& term) {
  if constexpr (std::is_same_v<Number, TilePair>) {
    // The compiler would add the lanes of a reduction one after the other.
    float sums[kPanel] = {};
    for (std::int64_t i = 0; i < count; i += kPanel) {
#pragma omp simd
      for (std::int64_t lane = 0; lane < kPanel; ++lane) sums[lane] += term(i + lane);
    }
    return SumOfTree<kPanel>(sums);
  }
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) sum += term(i);
  return sum;
}

/// Buffers of a workspace, one behind the other; without a workspace, their sizes alone.
class Buffers {
 public:
  explicit Buffers(float* workspace) : workspace_(workspace) {}

  /// So many numbers, or pairs.
  template <typename Number>
  Number* Take(std::int64_t count) {
    static_assert(sizeof(Number) == sizeof(float));
    const std::int64_t begin = std::exchange(floats_, floats_ + count);
    return workspace_ == nullptr ? nullptr : reinterpret_cast<Number*>(workspace_ + begin);
  }
  std::int64_t floats() const { return floats_; }

 private:
  float* workspace_;
  std::int64_t floats_ = 0;
};

/// `count` rows of `width` elements from row `first` of `head`, as a left operand. They lie in `buffer` unless they are
/// stored as products read them. It has LengthOf<Number>(width) elements a row.
inline LeftMatrix<float> LoadRows(Source x, const HeadRows& rows, std::int64_t head, std::int64_t first,
                                  std::int64_t count, std::int64_t width, float* buffer) {
  if (x.dtype == DType::kF32) return {static_cast<const float*>(x.data) + rows.At(head, first), rows.row_stride, 1};
  for (std::int64_t r = 0; r < count; ++r) {
    LoadFloats(x.dtype, x.data, rows.At(head, first + r), width, buffer + r * width);
  }
  return {buffer, width, 1};
}
template <typename Pair>
LeftMatrix<Pair> LoadRows(Source x, const HeadRows& rows, std::int64_t head, std::int64_t first, std::int64_t count,
                          std::int64_t width, Pair* buffer) {
  const auto* const elements = static_cast<const std::uint16_t*>(x.data);
  // Tiles are whole: they end with the last row, and with its last element.
  const bool are_whole =
      std::is_same_v<Pair, Bf16Pair> ? width % 2 == 0 : count % kTileRows == 0 && width % kTileDepth == 0;
  const bool are_pairs = are_whole && rows.row_stride % 2 == 0;
  if (are_pairs) return {reinterpret_cast<const Pair*>(elements + rows.At(head, first)), rows.row_stride / 2, 1};
  const std::int64_t length = LengthOf<Pair>(width);
  std::fill_n(buffer, count * length, Pair{});
  for (std::int64_t r = 0; r < count; ++r) {
    std::memcpy(buffer + r * length, elements + rows.At(head, first + r), static_cast<std::size_t>(width) * 2);
  }
  return {buffer, length, 1};
}

/// Rounds `count` numbers to the floating type `dtype` for, or after, products of `Number`. With those of tiles
/// subnormal numbers may become 0.
template <typename Number>
void StoreFor(DType dtype, const float* from, std::int64_t count, void* to) {
  if (std::is_same_v<Number, TilePair>) return StoreRounded(dtype, from, to, count);
  StoreFloats(dtype, from, to, 0, count);
}

/// Rounds a row of `columns` elements to `dtype`, for a left operand. Pairs go to `pairs`, f32 numbers stay.
inline void RoundRow(DType dtype, std::int64_t columns, float* row, float* /*pairs*/) {
  RoundThrough(dtype, row, columns);
}
template <typename Pair>
void RoundRow(DType dtype, std::int64_t columns, const float* row, Pair* pairs) {
  auto* const elements = reinterpret_cast<std::uint16_t*>(pairs);
  StoreFor<Pair>(dtype, row, LoopColumns<Pair>(columns), elements);
  std::fill(elements + columns, elements + 2 * LengthOf<Pair>(columns), std::uint16_t{0});
}

/// From row to row of the left operand that rows of `columns` elements are rounded to.
template <typename Number>
constexpr std::int64_t RoundedStride(std::int64_t columns) {
  return StrideFor<Number>(LengthOf<Number>(columns));
}

/// Rows of which each was rounded: those of f32, which are `stride` apart, or the pairs in `buffer`.
inline LeftMatrix<float> RoundedRows(const float* rows, std::int64_t stride, const float* /*buffer*/,
                                     std::int64_t /*columns*/) {
  return {rows, stride, 1};
}
template <typename Pair>
LeftMatrix<Pair> RoundedRows(const float* /*rows*/, std::int64_t /*stride*/, const Pair* buffer, std::int64_t columns) {
  return {buffer, RoundedStride<Pair>(columns), 1};
}

/// The transpose of `count` rows of `columns` elements as a left operand. That of pairs lies in `buffer`. On tiles its
/// rows are `length` pairs apart.
inline LeftMatrix<float> Transpose(const LeftMatrix<float>& rows, std::int64_t /*count*/, std::int64_t /*columns*/,
                                   float* /*buffer*/, std::int64_t /*length*/) {
  return {rows.data, rows.depth_stride, rows.row_stride};
}
inline LeftMatrix<Bf16Pair> Transpose(const LeftMatrix<Bf16Pair>& rows, std::int64_t count, std::int64_t columns,
                                      Bf16Pair* buffer, std::int64_t /*length*/) {
  PairRows(reinterpret_cast<const std::uint16_t*>(rows.data), count, 2 * rows.row_stride, columns, buffer, columns);
  return {buffer, 1, columns};
}
inline LeftMatrix<TilePair> Transpose(const LeftMatrix<TilePair>& rows, std::int64_t count, std::int64_t columns,
                                      TilePair* buffer, std::int64_t length) {
  TransposeRowsTo(reinterpret_cast<const std::uint16_t*>(rows.data), count, 2 * rows.row_stride, columns, buffer,
                  length);
  return {buffer, length, 1};
}

/// Packs `count` rows of `columns` elements that a product has read as its left operand, as right operand of another.
inline void PackRows(const LeftMatrix<float>& rows, std::int64_t count, std::int64_t columns, float* panels) {
  PackPanels({DType::kF32, rows.data}, 0, rows.row_stride, count, columns, panels);
}
template <typename Pair>
void PackRows(const LeftMatrix<Pair>& rows, std::int64_t count, std::int64_t columns, Pair* panels) {
  PackPanels({DType::kBF16, rows.data}, 0, 2 * rows.row_stride, count, columns, panels);
}

/// Stores `count` rows of `width` elements, which are padded to panels, from row `first` of `head` on.
template <typename Number>
void StoreRows(DType dtype, const float* from, const HeadRows& rows, std::int64_t head, std::int64_t first,
               std::int64_t count, std::int64_t width, void* to) {
  const auto element = [&](std::int64_t r) {
    return static_cast<std::byte*>(to) + rows.At(head, first + r) * static_cast<std::int64_t>(ElementSize(dtype));
  };
  if (rows.row_stride == width && width % kPanel == 0) return StoreFor<Number>(dtype, from, count * width, element(0));
  for (std::int64_t r = 0; r < count; ++r) {
    StoreFor<Number>(dtype, from + r * PaddedToPanel(width), width, element(r));
  }
}

/// The number of ranges that `tasks` tasks are dealt out in. One needs at least four to pay for what it packs first.
inline std::int64_t PartsOf(std::int64_t tasks) {
  return std::max<std::int64_t>(tasks / 4, std::min<std::int64_t>(tasks, 2));
}

/// What a task holds while it computes products of `Number`.
struct NoScope {};
template <typename Number>
using ProductScope = std::conditional_t<std::is_same_v<Number, TilePair>, TileScope, NoScope>;

/// Calls body(slot, begin, end) for contiguous ranges of `tasks` tasks, which are at least those of `parts` parts.
template <typename Body>
void ForEachRange(std::int64_t tasks, std::int64_t parts, std::int64_t work, const Body& body) {
  const auto begin_of = [=](std::int64_t part) { return part * tasks / parts; };
  RunTasksInSlots(
      parts, AttentionShape::SlotsOf(parts), work,
      [&](std::int64_t begin, std::int64_t end, std::int64_t slot) { body(slot, begin_of(begin), begin_of(end)); });
}

}  // namespace mpc::cpu
