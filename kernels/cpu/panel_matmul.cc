// One operand is packed once, by all threads. The longer one is cut into *strips*. A task packs a strip, which stays in
// a core's cache, and multiplies it with blocks of the other operand. Sums of very many terms are computed in *chunks*
// of terms, which are added in f32 in their order. So bits follow from the shape alone.
#include "kernels/cpu/panel_matmul.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/cpu/float_rows.h"
#include "kernels/cpu/matmul_shape.h"
#include "kernels/cpu/onednn_calls.h"
#include "kernels/cpu/onednn_common.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/product_parts.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/row_products.h"
#include "kernels/cpu/tile_products.h"
#include "kernels/known_attributes.h"

namespace mpc::cpu {
namespace {

/// Columns of a block of the result.
constexpr std::int64_t kBlockColumns = 2 * kPanel;
constexpr std::int64_t kMostStrips = StagedOperation::kMostParts;

/// How a product is cut, in numbers of f32 or pairs of bf16. A strip takes a part of a core's second cache, so it has
/// fewer rows or columns where sums are long. With the terms of a chunk it is one block.
template <typename Number>
struct Cut;

/// Blocks of the other operand come from the last cache or memory. For 512 multiply-adds a cycle these are 4 bytes a
/// cycle with 256 rows, and 32 with 32.
template <>
struct Cut<TilePair> {
  static constexpr std::int64_t kBlockRows = 2 * kTileRows, kMostOfStrip = 256, kSizeOfStrip = 1 << 17;
  static constexpr std::int64_t kTermsOfChunk = 8192;
};

/// A block is four times the rows whose sums registers keep.
template <>
struct Cut<float> {
  static constexpr std::int64_t kBlockRows = 24, kMostOfStrip = 192, kSizeOfStrip = 1 << 16;
  static constexpr std::int64_t kTermsOfChunk = 2048;
  /// Terms for which a panel and the rows of a block fit the first cache.
  static constexpr std::int64_t kTermsAtOnce = 256;
};

static_assert(Cut<TilePair>::kBlockRows * LengthOf<TilePair>(Cut<TilePair>::kTermsOfChunk) ==
              Cut<TilePair>::kSizeOfStrip);
static_assert(kBlockColumns * Cut<float>::kTermsOfChunk == Cut<float>::kSizeOfStrip);

std::size_t FloatBytes(std::int64_t numbers) { return static_cast<std::size_t>(numbers) * sizeof(float); }

/// Terms of the longest chunk.
template <typename Number>
std::int64_t MostTerms(const MatmulShape& shape) {
  return std::min(shape.k, Cut<Number>::kTermsOfChunk);
}

/// The most rows or columns of a strip whose blocks have `side` of them.
template <typename Number>
std::int64_t MostOfStrip(const MatmulShape& shape, std::int64_t side) {
  const std::int64_t fitting = Cut<Number>::kSizeOfStrip / LengthOf<Number>(MostTerms<Number>(shape));
  return std::min(fitting, Cut<Number>::kMostOfStrip) / side * side;
}

/// Rows or columns up to whole blocks of `side`.
constexpr std::int64_t PaddedTo(std::int64_t side, std::int64_t extent) { return (extent + side - 1) / side * side; }

/// Sums that the workspace holds from chunk to chunk.
template <typename Number>
std::size_t SumsBytes(const MatmulShape& shape) {
  const bool is_in_chunks = shape.k > Cut<Number>::kTermsOfChunk;
  return is_in_chunks ? FloatBytes(PaddedTo(Cut<Number>::kBlockRows, shape.m) * PaddedToPanel(shape.n)) : 0;
}

#if defined(__x86_64__)

/// Stores whole cache lines past the caches.
void StreamBytes(const std::byte* from, std::byte* to, std::size_t bytes) {
  const std::size_t head = std::min(bytes, (64 - reinterpret_cast<std::uintptr_t>(to) % 64) % 64);
  std::memcpy(to, from, head);
  std::size_t i = head;
  for (; i + 64 <= bytes; i += 64) {
    const auto* const line = reinterpret_cast<const __m256i*>(from + i);
    auto* const target = reinterpret_cast<__m256i*>(to + i);
    _mm256_stream_si256(target, _mm256_loadu_si256(line));
    _mm256_stream_si256(target + 1, _mm256_loadu_si256(line + 1));
  }
  std::memcpy(to + i, from + i, bytes - i);
}
void FinishStreaming() { _mm_sfence(); }

#else

void StreamBytes(const std::byte* from, std::byte* to, std::size_t bytes) { std::memcpy(to, from, bytes); }
void FinishStreaming() {}

#endif

/// A product of pairs on tiles, or of numbers in f32, to which operands of 16 bits are widened.
template <typename Number>
class PanelMatmul final : public Kernel {
 public:
  PanelMatmul(const KernelSpec& spec, const MatmulShape& shape, std::size_t streamed_bytes)
      : shape_(shape),
        a_type_(spec.inputs[0].dtype),
        b_type_(spec.inputs[1].dtype),
        y_type_(spec.outputs[0].dtype),
        addend_type_(spec.inputs.size() == 3 ? spec.inputs[2].dtype : DType::kF32),
        activation_(spec.attributes.Get(attribute::kActivation)),
        cuts_rows_(shape.m > shape.n) {
    const std::int64_t blocks = PartsOf(PartsOf(CutExtent(), kMostStrips), own_side());
    strip_ = std::min(blocks * own_side(), MostOfStrip<Number>(shape, own_side()));
    is_streamed_ = spec.outputs[0].bytes() >= streamed_bytes && MayStream();
    const std::int64_t length = LengthOf<Number>(MostTerms<Number>(shape));
    const auto packed_bytes = [&](bool are_rows, std::int64_t extent) {
      return are_rows && ReadsRows() ? 0 : CacheLines(FloatBytes(extent * length));
    };
    shared_offset_ = workspace_.Reserve(packed_bytes(!cuts_rows_, PaddedTo(other_side(), SharedExtent())));
    if (IsInChunks()) sums_offset_ = workspace_.Reserve(SumsBytes<Number>(shape));
    strip_bytes_ = packed_bytes(cuts_rows_, strip_);
    slot_bytes_ = strip_bytes_ + (is_streamed_ ? CacheLines(FloatBytes(strip_ * other_side())) : 0);
    slots_ = std::min(kMostStrips, strips());
    slots_offset_ = workspace_.Reserve(slot_bytes_ * static_cast<std::size_t>(slots_));
  }

  std::size_t workspace_bytes() const override { return workspace_.size(); }

  void Run(const KernelOperands& operands) override {
    for (std::int64_t term = 0; term < shape_.k; term += Cut<Number>::kTermsOfChunk) {
      const Chunk chunk{term, std::min(Cut<Number>::kTermsOfChunk, shape_.k - term)};
      PackShared(operands, chunk);
      const std::int64_t work = shape_.m * shape_.n * chunk.terms / kProductsOfElement;
      RunTasksInSlots(strips(), slots_, work, [&](std::int64_t begin, std::int64_t end, std::int64_t slot) {
        [[maybe_unused]] const std::conditional_t<kIsOnTiles, TileScope, NoScope> scope;
        for (std::int64_t strip = begin; strip < end; ++strip) RunStrip(operands, chunk, strip * strip_, slot);
        if (is_streamed_) FinishStreaming();
      });
    }
  }

 private:
  static constexpr bool kIsOnTiles = std::is_same_v<Number, TilePair>;
  static constexpr std::int64_t kBlockRows = Cut<Number>::kBlockRows;
  /// Multiply-adds that take as long as an element of other loops.
  static constexpr std::int64_t kProductsOfElement = kIsOnTiles ? 128 : 8;

  struct NoScope {};
  struct Chunk {
    std::int64_t term, terms;
    std::int64_t length() const { return LengthOf<Number>(terms); }
  };
  /// Rows and columns of the result.
  struct Range {
    std::int64_t row, rows, column, columns;
  };
  /// Where rounded results go: the result itself, or the range of it that is streamed next.
  struct Target {
    std::byte* data;
    std::int64_t stride;
    Range range;
  };

  std::int64_t CutExtent() const { return cuts_rows_ ? shape_.m : shape_.n; }
  std::int64_t SharedExtent() const { return cuts_rows_ ? shape_.n : shape_.m; }
  /// Rows or columns of a block, of those that are cut into strips and of the other ones.
  std::int64_t own_side() const { return cuts_rows_ ? kBlockRows : kBlockColumns; }
  std::int64_t other_side() const { return cuts_rows_ ? kBlockColumns : kBlockRows; }
  std::int64_t strips() const { return PartsOf(CutExtent(), strip_); }
  bool IsInChunks() const { return shape_.k > Cut<Number>::kTermsOfChunk; }
  /// Whether rows of op(a) are read where they lie.
  bool ReadsRows() const { return !kIsOnTiles && a_type_ == DType::kF32 && !shape_.transpose_a; }
  /// Whether rows that are streamed have whole cache lines. Those of a block do where rows of the result begin with
  /// one.
  bool MayStream() const {
    const std::int64_t columns = cuts_rows_ ? kBlockColumns : strip_;
    return columns > kBlockColumns || ElementBytes(shape_.n) % 64 == 0;
  }
  std::int64_t sums_stride() const { return PaddedToPanel(shape_.n); }
  bool IsLast(const Chunk& chunk) const { return chunk.term + chunk.terms == shape_.k; }
  Number* Shared(const KernelOperands& operands) const {
    return reinterpret_cast<Number*>(static_cast<std::byte*>(operands.workspace) + shared_offset_);
  }
  float* Sums(const KernelOperands& operands) const {
    return reinterpret_cast<float*>(static_cast<std::byte*>(operands.workspace) + sums_offset_);
  }
  static std::byte* Result(const KernelOperands& operands) { return static_cast<std::byte*>(operands.outputs[0]); }
  std::size_t ElementBytes(std::int64_t elements) const {
    return static_cast<std::size_t>(elements) * ElementSize(y_type_);
  }

  void PackShared(const KernelOperands& operands, const Chunk& chunk) const {
    if (!cuts_rows_ && ReadsRows()) return;
    Number* const shared = Shared(operands);
    const std::int64_t extent = SharedExtent(), side = other_side();
    ParallelFor(PartsOf(extent, side), extent * chunk.terms, [&](std::int64_t block) {
      const std::int64_t first = block * side, count = std::min(side, extent - first);
      Number* const target = shared + first * chunk.length();
      cuts_rows_ ? PackColumns(operands, chunk, first, count, target) : PackRows(operands, chunk, first, count, target);
    });
  }

  /// Rows of op(a) in blocks: as tiles, or as a left operand in f32.
  void PackRows(const KernelOperands& operands, const Chunk& chunk, std::int64_t first, std::int64_t count,
                Number* to) const {
    const std::int64_t at = shape_.transpose_a ? chunk.term * shape_.m + first : first * shape_.k + chunk.term;
    if constexpr (kIsOnTiles) {
      const auto* const a = static_cast<const std::uint16_t*>(operands.inputs[0]) + at;
      shape_.transpose_a ? PackTilesOfTransposedRows(a, chunk.terms, shape_.m, count, to)
                         : PackTilesOfRows(a, count, shape_.k, chunk.terms, to);
    } else {
      const Source a{a_type_, operands.inputs[0]};
      for (std::int64_t r = 0; r < count && !shape_.transpose_a; ++r) {
        LoadFloats(a.dtype, a.data, at + r * shape_.k, chunk.terms, to + r * chunk.terms);
      }
      for (std::int64_t k = 0; k < chunk.terms && shape_.transpose_a; ++k) {
        float buffer[Cut<float>::kMostOfStrip];
        const float* const row = a.Load(at + k * shape_.m, count, buffer);
        for (std::int64_t r = 0; r < count; r += kBlockRows) {
          std::copy_n(row + r, std::min(kBlockRows, count - r), to + r * chunk.terms + k * kBlockRows);
        }
      }
    }
  }

  /// Columns of op(b) as panels.
  void PackColumns(const KernelOperands& operands, const Chunk& chunk, std::int64_t first, std::int64_t count,
                   Number* to) const {
    const Source b{b_type_, operands.inputs[1]};
    if (shape_.transpose_b) {
      PackTransposedPanels(b, first * shape_.k + chunk.term, shape_.k, chunk.terms, count, to);
    } else {
      PackPanels(b, chunk.term * shape_.n + first, shape_.n, chunk.terms, count, to);
    }
  }

  /// The other operand's blocks follow each other. Each stays in a core's caches for the whole strip.
  void RunStrip(const KernelOperands& operands, const Chunk& chunk, std::int64_t first, std::int64_t slot) const {
    std::byte* const place =
        static_cast<std::byte*>(operands.workspace) + slots_offset_ + static_cast<std::size_t>(slot) * slot_bytes_;
    auto* const packed = reinterpret_cast<Number*>(place);
    std::byte* const streamed = place + strip_bytes_;
    const std::int64_t count = std::min(strip_, CutExtent() - first), length = chunk.length();
    if (!cuts_rows_) {
      PackColumns(operands, chunk, first, count, packed);
    } else if (!ReadsRows()) {
      PackRows(operands, chunk, first, count, packed);
    }
    for (std::int64_t other = 0; other < SharedExtent(); other += other_side()) {
      const std::int64_t others = std::min(other_side(), SharedExtent() - other);
      const Number* const shared = Shared(operands) + other * length;
      const Range all = cuts_rows_ ? Range{first, count, other, others} : Range{other, others, first, count};
      const Target target = is_streamed_ ? Target{streamed, all.columns, all} : Target{Result(operands), shape_.n, {}};
      for (std::int64_t own = 0; own < count; own += own_side()) {
        const std::int64_t owns = std::min(own_side(), count - own);
        const Number* const strip = packed + own * length;
        if (cuts_rows_) {
          RunBlock(operands, chunk, {first + own, owns, other, others}, strip, shared, target);
        } else {
          RunBlock(operands, chunk, {other, others, first + own, owns}, shared, strip, target);
        }
      }
      if (is_streamed_ && IsLast(chunk)) Stream(streamed, all, Result(operands));
    }
  }

  /// Sums of one chunk stay in the first cache. Others lie in the workspace for the next chunk.
  void RunBlock(const KernelOperands& operands, const Chunk& chunk, const Range& block, const Number* rows,
                const Number* panels, const Target& target) const {
    alignas(64) float own_sums[kBlockRows * kBlockColumns];
    const std::int64_t stride = IsInChunks() ? sums_stride() : kBlockColumns;
    float* const sums = IsInChunks() ? Sums(operands) + block.row * stride + block.column : own_sums;
    if constexpr (kIsOnTiles) {
      AddTileBlock({.a = rows,
                    .a_stride = kTilePairs,
                    .a_below = kTileRows * chunk.length(),
                    .a_behind = kTileRows * kTilePairs,
                    .panels = panels,
                    .panel_size = kPanel * chunk.length(),
                    .c = sums,
                    .c_stride = stride,
                    .two_rows = block.rows > kTileRows,
                    .two_columns = block.columns > kPanel,
                    .adds = chunk.term > 0},
                   nullptr, chunk.length() / kTilePairs);
    } else {
      AddFloats(RowsOf(operands, chunk, block, rows), chunk, block, panels, sums, stride);
    }
    if (IsLast(chunk)) Finish(operands, block, sums, stride, target);
  }

  /// Rows of a block, which are read where they lie or packed.
  LeftMatrix<float> RowsOf(const KernelOperands& operands, const Chunk& chunk, const Range& block,
                           const float* packed) const {
    if (shape_.transpose_a) return {packed, 1, kBlockRows};
    if (!ReadsRows()) return {packed, chunk.terms, 1};
    return {static_cast<const float*>(operands.inputs[0]) + block.row * shape_.k + chunk.term, shape_.k, 1};
  }

  void AddFloats(const LeftMatrix<float>& rows, const Chunk& chunk, const Range& block, const float* panels,
                 float* sums, std::int64_t stride) const {
    for (std::int64_t r = 0; r < block.rows && chunk.term == 0; ++r) {
      std::fill_n(sums + r * stride, PaddedToPanel(block.columns), 0.0f);
    }
    constexpr std::int64_t kAtOnce = Cut<float>::kTermsAtOnce;
    for (std::int64_t term = 0; term < chunk.terms; term += kAtOnce) {
      AddProduct({rows.data + term * rows.depth_stride, rows.row_stride, rows.depth_stride}, block.rows,
                 std::min(kAtOnce, chunk.terms - term), panels + term * kPanel, chunk.terms, block.columns, sums,
                 stride);
    }
  }

  /// Adds what is added, activates, rounds and stores.
  void Finish(const KernelOperands& operands, const Range& block, float* sums, std::int64_t stride,
              const Target& target) const {
    alignas(64) float addend[kBlockColumns];
    if (shape_.has_bias) LoadFloats(addend_type_, operands.inputs[2], block.column, block.columns, addend);
    std::byte* const y =
        target.data + ElementBytes((block.row - target.range.row) * target.stride + block.column - target.range.column);
    const bool activates = activation_ != Activation::kNone;
    if (shape_.adds) AddRows(operands, block, sums, stride);
    if (activates) Activate(block, sums, stride, shape_.has_bias ? addend : nullptr);
    const bool adds_row = shape_.has_bias && !activates;
    const FloatRows rows{sums, stride, block.rows, block.columns};
    const float* const added = adds_row ? addend : nullptr;
    kIsOnTiles ? StoreRoundedRows(y_type_, rows, added, y, target.stride)
               : StoreRows(y_type_, rows, added, y, target.stride);
  }

  /// Adds the matrix that the result is added to.
  void AddRows(const KernelOperands& operands, const Range& block, float* sums, std::int64_t stride) const {
    alignas(64) float addend[kBlockColumns];
    for (std::int64_t r = 0; r < block.rows; ++r) {
      const std::int64_t at = (block.row + r) * shape_.n + block.column;
      LoadFloats(addend_type_, operands.inputs[2], at, block.columns, addend);
      for (std::int64_t j = 0; j < block.columns; ++j) sums[r * stride + j] += addend[j];
    }
  }

  /// Adds a row, or null, to all rows and applies the activation to them.
  void Activate(const Range& block, float* sums, std::int64_t stride, const float* addend) const {
    const std::int64_t columns = PaddedToPanel(block.columns);
    for (std::int64_t r = 0; r < block.rows; ++r) {
      float* const row = sums + r * stride;
      for (std::int64_t j = 0; addend != nullptr && j < block.columns; ++j) row[j] += addend[j];
      if (columns < stride) ActivateAndRound(activation_, {DType::kF32, row}, {DType::kF32, row}, columns);
    }
    if (columns < stride) return;
    ActivateAndRound(activation_, {DType::kF32, sums}, {DType::kF32, sums}, block.rows * stride);
  }

  /// Whole rows of a strip, so that most of their cache lines are.
  void Stream(const std::byte* from, const Range& range, std::byte* result) const {
    for (std::int64_t r = 0; r < range.rows; ++r) {
      StreamBytes(from + ElementBytes(r * range.columns),
                  result + ElementBytes((range.row + r) * shape_.n + range.column), ElementBytes(range.columns));
    }
  }

  MatmulShape shape_;
  DType a_type_, b_type_, y_type_, addend_type_;
  Activation activation_;
  bool cuts_rows_;            ///< strips are rows of a; else columns of b
  bool is_streamed_ = false;  ///< the result passes the caches
  std::int64_t strip_ = 0, slots_ = 0;
  WorkspaceLayout workspace_;
  std::size_t shared_offset_ = 0, sums_offset_ = 0, slots_offset_ = 0, strip_bytes_ = 0, slot_bytes_ = 0;
};

}  // namespace

bool MayMultiplyOnTiles(const KernelSpec& spec) {
  const bool are_bf16 =
      spec.inputs.size() >= 2 && spec.inputs[0].dtype == DType::kBF16 && spec.inputs[1].dtype == DType::kBF16;
  return are_bf16 && spec.weight_layout.empty() && MultipliesTiles();
}

bool IsFasterOnTiles(const MatmulShape& shape) {
  // Rows of a^T are gathered by the library. Few rows or columns do not pay for their packing, and long sums of few
  // results are few tasks. Sums that chunks share pass through memory.
  constexpr std::int64_t kFew = 64, kMostTermsOfResult = 8, kVocabulary = 16384;
  const std::int64_t shorter = std::min(shape.m, shape.n), longer = std::max(shape.m, shape.n);
  const bool has_tasks = shape.k <= kMostTermsOfResult * longer,
             keeps_few_sums = SumsBytes<TilePair>(shape) <= kStreamedBytes;
  return has_tasks && keeps_few_sums && shorter >= kFew && (shape.transpose_a || shape.n >= kVocabulary);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeTileMatmul(const KernelSpec& spec, std::size_t streamed_bytes) {
  const absl::StatusOr<MatmulShape> shape = MatmulShape::Create(spec);
  if (!shape.ok()) return shape.status();
  return WithChoice(std::make_unique<PanelMatmul<TilePair>>(spec, *shape, streamed_bytes), kOnTiles);
}

bool MayMultiplyInPanels(const KernelSpec& spec) {
  if (spec.inputs.size() < 2 || !spec.weight_layout.empty() || !MultipliesFloats()) return false;
  const auto may = [](DType dtype) { return dtype == DType::kF32 || (IsLowPrecision(dtype) && !IsNative(dtype)); };
  return may(spec.inputs[0].dtype) && may(spec.inputs[1].dtype);
}

bool IsFasterInPanels(const MatmulShape& shape) {
  // The library does not pack. Rows of b, y or a^T that begin at multiples of so many bytes take each other's places
  // in a core's first cache. Few products do not pay for packing, nor for its memory.
  constexpr std::int64_t kCongruent = 2048 / sizeof(float), kLeastTerms = 64, kFew = 32, kManyProducts = 1 << 25;
  const bool is_congruent = shape.n % kCongruent == 0 || (shape.transpose_a && shape.m % kCongruent == 0);
  const bool are_many = shape.k >= kLeastTerms && std::min(shape.m, shape.n) >= kFew;
  return is_congruent && are_many && shape.m * shape.n * shape.k >= kManyProducts;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakePanelMatmul(const KernelSpec& spec) {
  const absl::StatusOr<MatmulShape> shape = MatmulShape::Create(spec);
  if (!shape.ok()) return shape.status();
  return WithChoice(std::make_unique<PanelMatmul<float>>(spec, *shape, kStreamedBytes), kInPanels);
}

}  // namespace mpc::cpu
