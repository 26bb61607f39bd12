// One operand is packed once, by all threads. The longer one is cut into *strips*. A task packs a strip, which stays in
// a core's cache, and multiplies it with blocks of the other operand. Sums of very many terms are computed in *chunks*
// of terms, which are added in f32 in their order. So bits follow from the shape alone.
#include "kernels/cpu/tile_matmul.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/cpu/matmul_shape.h"
#include "kernels/cpu/onednn_calls.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/product_parts.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/row_products.h"
#include "kernels/cpu/tile_products.h"
#include "kernels/known_attributes.h"

namespace mpc::cpu {
namespace {

/// Rows or columns of a block, of which a product keeps the sums in registers.
constexpr std::int64_t kBlockSide = 2 * kTileRows;
/// A strip takes half a megabyte at most, a part of a core's second cache. So it has fewer rows or columns where sums
/// are long. Blocks of the other operand come from the last cache or memory. For 512 multiply-adds a cycle these are 4
/// bytes a cycle with 256 rows, and 32 with 32.
constexpr std::int64_t kMostOfStrip = 256, kPairsOfStrip = 1 << 17;
/// With so many terms a strip is one block.
constexpr std::int64_t kTermsOfChunk = 8192;
static_assert(kBlockSide * LengthOf<TilePair>(kTermsOfChunk) == kPairsOfStrip);
constexpr std::int64_t kMostStrips = StagedOperation::kMostParts;

std::size_t FloatBytes(std::int64_t numbers) { return static_cast<std::size_t>(numbers) * sizeof(float); }

/// Terms of the longest chunk.
std::int64_t MostTerms(const MatmulShape& shape) { return std::min(shape.k, kTermsOfChunk); }

/// The most rows or columns of a strip.
std::int64_t MostOfStrip(const MatmulShape& shape) {
  const std::int64_t fitting = kPairsOfStrip / LengthOf<TilePair>(MostTerms(shape));
  return std::min(fitting / kBlockSide * kBlockSide, kMostOfStrip);
}

/// Sums that the workspace holds from chunk to chunk.
std::size_t SumsBytes(const MatmulShape& shape) {
  return shape.k > kTermsOfChunk ? FloatBytes(PaddedToTile(shape.m) * PaddedToPanel(shape.n)) : 0;
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

class TileMatmul final : public Kernel {
 public:
  TileMatmul(const KernelSpec& spec, const MatmulShape& shape, std::size_t streamed_bytes)
      : shape_(shape),
        y_type_(spec.outputs[0].dtype),
        addend_type_(spec.inputs.size() == 3 ? spec.inputs[2].dtype : DType::kF32),
        activation_(spec.attributes.Get(attribute::kActivation)),
        cuts_rows_(shape.m > shape.n) {
    const std::int64_t blocks = PartsOf(PartsOf(CutExtent(), kMostStrips), kBlockSide);
    strip_ = std::min(blocks * kBlockSide, MostOfStrip(shape));
    is_streamed_ = spec.outputs[0].bytes() >= streamed_bytes && MayStream();
    const std::int64_t length = LengthOf<TilePair>(MostTerms(shape));
    shared_offset_ = workspace_.Reserve(FloatBytes(PaddedToTile(SharedExtent()) * length));
    if (IsInChunks()) sums_offset_ = workspace_.Reserve(SumsBytes(shape));
    strip_bytes_ = CacheLines(FloatBytes(strip_ * length));
    slot_bytes_ = strip_bytes_ + (is_streamed_ ? CacheLines(FloatBytes(strip_ * kBlockSide)) : 0);
    slots_ = std::min(kMostStrips, strips());
    slots_offset_ = workspace_.Reserve(slot_bytes_ * static_cast<std::size_t>(slots_));
  }

  std::size_t workspace_bytes() const override { return workspace_.size(); }

  void Run(const KernelOperands& operands) override {
    for (std::int64_t term = 0; term < shape_.k; term += kTermsOfChunk) {
      const Chunk chunk{term, std::min(kTermsOfChunk, shape_.k - term)};
      PackShared(operands, chunk);
      const std::int64_t work = shape_.m * shape_.n * chunk.terms / kProductsOfElement;
      RunTasksInSlots(strips(), slots_, work, [&](std::int64_t begin, std::int64_t end, std::int64_t slot) {
        const TileScope scope;
        for (std::int64_t strip = begin; strip < end; ++strip) RunStrip(operands, chunk, strip * strip_, slot);
        if (is_streamed_) FinishStreaming();
      });
    }
  }

 private:
  /// Multiply-adds that take as long as an element of other loops.
  static constexpr std::int64_t kProductsOfElement = 128;

  struct Chunk {
    std::int64_t term, terms;
    std::int64_t length() const { return LengthOf<TilePair>(terms); }
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
  std::int64_t strips() const { return PartsOf(CutExtent(), strip_); }
  bool IsInChunks() const { return shape_.k > kTermsOfChunk; }
  /// Whether rows that are streamed have whole cache lines. Those of a block do where rows of the result begin with
  /// one.
  bool MayStream() const {
    const std::int64_t columns = cuts_rows_ ? kBlockSide : strip_;
    return columns > kBlockSide || ElementBytes(shape_.n) % 64 == 0;
  }
  std::int64_t sums_stride() const { return PaddedToPanel(shape_.n); }
  bool IsLast(const Chunk& chunk) const { return chunk.term + chunk.terms == shape_.k; }
  TilePair* Shared(const KernelOperands& operands) const {
    return reinterpret_cast<TilePair*>(static_cast<std::byte*>(operands.workspace) + shared_offset_);
  }
  float* Sums(const KernelOperands& operands) const {
    return reinterpret_cast<float*>(static_cast<std::byte*>(operands.workspace) + sums_offset_);
  }
  static std::byte* Result(const KernelOperands& operands) { return static_cast<std::byte*>(operands.outputs[0]); }
  std::size_t ElementBytes(std::int64_t elements) const {
    return static_cast<std::size_t>(elements) * ElementSize(y_type_);
  }

  void PackShared(const KernelOperands& operands, const Chunk& chunk) const {
    TilePair* const shared = Shared(operands);
    const std::int64_t extent = SharedExtent();
    ParallelFor(PartsOf(extent, kBlockSide), extent * chunk.terms, [&](std::int64_t block) {
      const std::int64_t first = block * kBlockSide, count = std::min(kBlockSide, extent - first);
      TilePair* const target = shared + first * chunk.length();
      cuts_rows_ ? PackColumns(operands, chunk, first, count, target) : PackRows(operands, chunk, first, count, target);
    });
  }

  /// Rows of op(a) as tiles.
  void PackRows(const KernelOperands& operands, const Chunk& chunk, std::int64_t first, std::int64_t count,
                TilePair* to) const {
    const auto* const a = static_cast<const std::uint16_t*>(operands.inputs[0]);
    if (shape_.transpose_a) {
      PackTilesOfTransposedRows(a + chunk.term * shape_.m + first, chunk.terms, shape_.m, count, to);
    } else {
      PackTilesOfRows(a + first * shape_.k + chunk.term, count, shape_.k, chunk.terms, to);
    }
  }

  /// Columns of op(b) as panels.
  void PackColumns(const KernelOperands& operands, const Chunk& chunk, std::int64_t first, std::int64_t count,
                   TilePair* to) const {
    const Source b{DType::kBF16, operands.inputs[1]};
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
    auto* const packed = reinterpret_cast<TilePair*>(place);
    std::byte* const streamed = place + strip_bytes_;
    const std::int64_t count = std::min(strip_, CutExtent() - first), length = chunk.length();
    cuts_rows_ ? PackRows(operands, chunk, first, count, packed) : PackColumns(operands, chunk, first, count, packed);
    for (std::int64_t other = 0; other < SharedExtent(); other += kBlockSide) {
      const std::int64_t others = std::min(kBlockSide, SharedExtent() - other);
      const TilePair* const shared = Shared(operands) + other * length;
      const Range all = cuts_rows_ ? Range{first, count, other, others} : Range{other, others, first, count};
      const Target target = is_streamed_ ? Target{streamed, all.columns, all} : Target{Result(operands), shape_.n, {}};
      for (std::int64_t own = 0; own < count; own += kBlockSide) {
        const std::int64_t owns = std::min(kBlockSide, count - own);
        const TilePair* const strip = packed + own * length;
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
  void RunBlock(const KernelOperands& operands, const Chunk& chunk, const Range& block, const TilePair* rows,
                const TilePair* panels, const Target& target) const {
    alignas(64) float own_sums[kBlockSide * kBlockSide];
    const std::int64_t stride = IsInChunks() ? sums_stride() : kBlockSide;
    float* const sums = IsInChunks() ? Sums(operands) + block.row * stride + block.column : own_sums;
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
    if (IsLast(chunk)) Finish(operands, block, sums, stride, target);
  }

  /// Adds what is added, activates, rounds and stores.
  void Finish(const KernelOperands& operands, const Range& block, float* sums, std::int64_t stride,
              const Target& target) const {
    alignas(64) float addend[kBlockSide];
    if (shape_.has_bias) LoadFloats(addend_type_, operands.inputs[2], block.column, block.columns, addend);
    std::byte* const y =
        target.data + ElementBytes((block.row - target.range.row) * target.stride + block.column - target.range.column);
    const bool activates = activation_ != Activation::kNone;
    if (shape_.adds) AddRows(operands, block, sums, stride);
    if (activates) Activate(block, sums, stride, shape_.has_bias ? addend : nullptr);
    const bool adds_row = shape_.has_bias && !activates;
    StoreRoundedRows(y_type_, {sums, stride, block.rows, block.columns}, adds_row ? addend : nullptr, y, target.stride);
  }

  /// Adds the matrix that the result is added to.
  void AddRows(const KernelOperands& operands, const Range& block, float* sums, std::int64_t stride) const {
    alignas(64) float addend[kBlockSide];
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
  DType y_type_, addend_type_;
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
  const bool has_tasks = shape.k <= kMostTermsOfResult * longer, keeps_few_sums = SumsBytes(shape) <= kStreamedBytes;
  return has_tasks && keeps_few_sums && shorter >= kFew && (shape.transpose_a || shape.n >= kVocabulary);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeTileMatmul(const KernelSpec& spec, std::size_t streamed_bytes) {
  const absl::StatusOr<MatmulShape> shape = MatmulShape::Create(spec);
  if (!shape.ok()) return shape.status();
  return WithChoice(std::make_unique<TileMatmul>(spec, *shape, streamed_bytes), kOnTiles);
}

}  // namespace mpc::cpu
