#include "kernels/cpu/product_on_tiles.h"

#include <algorithm>
#include <cstring>
#include <limits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/cpu/parallel.h"
#include "kernels/known_attributes.h"

namespace mpc::cpu {
namespace {

/// Rows or columns of a block, of which a product keeps the sums in registers.
constexpr std::int64_t kBlockSide = 2 * kTileRows;
constexpr std::int64_t kMostStrips = StagedOperation::kMostParts;
/// Strips are always worth several threads.
constexpr std::int64_t kWork = std::numeric_limits<std::int64_t>::max();

constexpr std::size_t FloatBytes(std::int64_t numbers) { return static_cast<std::size_t>(numbers) * sizeof(float); }

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

}  // namespace

ProductOnTiles::ProductOnTiles(const ProductExtents& extents) : extents_(extents), cuts_rows_(extents.m > extents.n) {
  const std::int64_t blocks = PartsOf(PartsOf(CutExtent(), kMostStrips), kBlockSide);
  strip_ = std::min(blocks * kBlockSide, kMostOfStrip);
  const std::int64_t length = LengthOf<TilePair>(std::min(extents.k, kTermsOfChunk));
  shared_offset_ = workspace_.Reserve(FloatBytes(PaddedToTile(SharedExtent()) * length));
  if (IsInChunks()) sums_offset_ = workspace_.Reserve(FloatBytes(PaddedToTile(extents.m) * sums_stride()));
  strip_bytes_ = CacheLines(FloatBytes(strip_ * length));
  slot_bytes_ = strip_bytes_ + CacheLines(FloatBytes(strip_ * kBlockSide));
  slots_ = std::min(kMostStrips, strips());
  slots_offset_ = workspace_.Reserve(slot_bytes_ * static_cast<std::size_t>(slots_));
}

void ProductOnTiles::Run(const KernelOperands& operands) {
  for (std::int64_t term = 0; term < extents_.k; term += kTermsOfChunk) {
    const Chunk chunk{term, std::min(kTermsOfChunk, extents_.k - term)};
    PackShared(operands, chunk);
    RunTasksInSlots(strips(), slots_, kWork, [&](std::int64_t begin, std::int64_t end, std::int64_t slot) {
      const TileScope scope;
      for (std::int64_t strip = begin; strip < end; ++strip) RunStrip(operands, chunk, strip * strip_, slot);
      FinishTask();
    });
  }
}

TilePair* ProductOnTiles::Shared(const KernelOperands& operands) const {
  return reinterpret_cast<TilePair*>(static_cast<std::byte*>(operands.workspace) + shared_offset_);
}

void ProductOnTiles::PackShared(const KernelOperands& operands, const Chunk& chunk) const {
  TilePair* const shared = Shared(operands);
  const std::int64_t extent = SharedExtent();
  ParallelFor(PartsOf(extent, kBlockSide), extent * chunk.terms, [&](std::int64_t block) {
    const std::int64_t first = block * kBlockSide, count = std::min(kBlockSide, extent - first);
    TilePair* const target = shared + first * chunk.length();
    cuts_rows_ ? PackColumns(operands, chunk, first, count, target) : PackRows(operands, chunk, first, count, target);
  });
}

void ProductOnTiles::RunStrip(const KernelOperands& operands, const Chunk& chunk, std::int64_t first,
                              std::int64_t slot) const {
  std::byte* const place =
      static_cast<std::byte*>(operands.workspace) + slots_offset_ + static_cast<std::size_t>(slot) * slot_bytes_;
  auto* const packed = reinterpret_cast<TilePair*>(place);
  const std::int64_t count = std::min(strip_, CutExtent() - first), length = chunk.length();
  cuts_rows_ ? PackRows(operands, chunk, first, count, packed) : PackColumns(operands, chunk, first, count, packed);
  const TilePair* const shared = Shared(operands);
  for (std::int64_t other = 0; other < SharedExtent(); other += kBlockSide) {
    const std::int64_t others = std::min(kBlockSide, SharedExtent() - other);
    Block block =
        cuts_rows_ ? Block{first, count, other, others, nullptr, 0} : Block{other, others, first, count, nullptr, 0};
    PlaceSums(operands, place, block);
    if (chunk.term == 0) ClearSums(block);
    const TilePair* const beside = shared + other * length;
    AddProduct({cuts_rows_ ? packed : beside, length, 1}, block.rows, chunk.terms, cuts_rows_ ? beside : packed,
               chunk.terms, block.columns, block.sums, block.stride);
    if (chunk.term + chunk.terms == extents_.k) Store(operands, block);
  }
}

/// Sums of one chunk lie in the slot, others stay for the next chunk.
void ProductOnTiles::PlaceSums(const KernelOperands& operands, std::byte* place, Block& block) const {
  if (IsInChunks()) {
    auto* const sums = reinterpret_cast<float*>(static_cast<std::byte*>(operands.workspace) + sums_offset_);
    block.stride = sums_stride();
    block.sums = sums + block.row * block.stride + block.column;
  } else {
    block.stride = PaddedToPanel(block.columns);
    block.sums = reinterpret_cast<float*>(place + strip_bytes_);
  }
}

void ProductOnTiles::ClearSums(const Block& block) {
  for (std::int64_t r = 0; r < PaddedToTile(block.rows); ++r) {
    std::fill_n(block.sums + r * block.stride, PaddedToPanel(block.columns), 0.0f);
  }
}

RowMajorResult::RowMajorResult(const KernelSpec& spec, Addend addend, std::size_t streamed_bytes)
    : type_(spec.outputs[0].dtype),
      addend_type_(addend == Addend::kNone ? DType::kF32 : spec.inputs[2].dtype),
      addend_(addend),
      activation_(spec.attributes.Get(attribute::kActivation)),
      is_streamed_(spec.outputs[0].bytes() >= streamed_bytes) {}

void RowMajorResult::Store(const KernelOperands& operands, std::int64_t n, const ProductOnTiles::Block& block) const {
  alignas(64) float addend[ProductOnTiles::kMostOfStrip];
  alignas(64) std::byte rounded[ProductOnTiles::kMostOfStrip * sizeof(float)];
  for (std::int64_t r = 0; r < block.rows; ++r) {
    float* const sums = block.sums + r * block.stride;
    const std::int64_t at = (block.row + r) * n + block.column;
    if (addend_ != Addend::kNone) {
      const std::int64_t from = addend_ == Addend::kMatrix ? at : block.column;
      LoadFloats(addend_type_, operands.inputs[2], from, block.columns, addend);
      for (std::int64_t j = 0; j < block.columns; ++j) sums[j] += addend[j];
    }
    const std::size_t size = ElementSize(type_);
    std::byte* const y = static_cast<std::byte*>(operands.outputs[0]) + static_cast<std::size_t>(at) * size;
    const Sink sink{type_, is_streamed_ ? rounded : y};
    ActivateAndRound(activation_, {DType::kF32, sums}, sink, block.columns);
    if (is_streamed_) StreamBytes(rounded, y, static_cast<std::size_t>(block.columns) * size);
  }
}

void RowMajorResult::FinishTask() const {
  if (is_streamed_) FinishStreaming();
}

void CopyRows(const std::uint16_t* rows, std::int64_t count, std::int64_t stride, std::int64_t columns, TilePair* to) {
  const std::int64_t length = LengthOf<TilePair>(columns);
  for (std::int64_t r = 0; r < count; ++r) {
    auto* const row = reinterpret_cast<std::uint16_t*>(to + r * length);
    std::copy_n(rows + r * stride, columns, row);
    std::fill(row + columns, row + 2 * length, std::uint16_t{0});
  }
}

}  // namespace mpc::cpu
