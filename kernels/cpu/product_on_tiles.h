// A product of matrices of bf16 by our own loops on tiles (AMX), whatever its operands and its result are stored as.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attribute_enums.h"
#include "kernels/cpu/blocks.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/onednn_calls.h"
#include "kernels/cpu/product_parts.h"
#include "kernels/cpu/row_products.h"

namespace mpc::cpu {

/// y[m, n] = a[m, k] b[k, n]. One operand is packed once, by all threads. The longer one is cut into *strips*. A task
/// packs a strip, which stays in a core's cache, and multiplies it with blocks of the other operand. Long sums are
/// computed in *chunks* of terms, which are added in f32 in their order. So bits follow from the shape alone.
class ProductOnTiles : public Kernel {
 public:
  explicit ProductOnTiles(const ProductExtents& extents);

  std::size_t workspace_bytes() const final { return workspace_.size(); }
  void Run(const KernelOperands& operands) final;

  /// The rows or columns of a strip, and the terms of a chunk, at most. They take half a megabyte, a part of a core's
  /// second cache. Blocks of the other operand come from the last cache or memory, at 4 bytes a cycle for 512
  /// multiply-adds a cycle.
  static constexpr std::int64_t kMostOfStrip = 256, kTermsOfChunk = 1024;

  /// A block of the result, with its sums.
  struct Block {
    std::int64_t row, rows, column, columns;
    float* sums;
    std::int64_t stride;
  };

 protected:
  struct Chunk {
    std::int64_t term, terms;
    std::int64_t length() const { return LengthOf<TilePair>(terms); }
  };

  /// Packs `count` rows of a from row `first` on, as a left operand of chunk.length() pairs a row. `first` is a
  /// multiple of two tiles.
  virtual void PackRows(const KernelOperands& operands, const Chunk& chunk, std::int64_t first, std::int64_t count,
                        TilePair* to) const = 0;
  /// Packs `count` columns of b from column `first` on, as panels. `first` is a multiple of two panels.
  virtual void PackColumns(const KernelOperands& operands, const Chunk& chunk, std::int64_t first, std::int64_t count,
                           TilePair* to) const = 0;
  /// Rounds the sums of a block of at most kMostOfStrip columns and stores them. It may use their place.
  virtual void Store(const KernelOperands& operands, const Block& block) const = 0;
  /// Ends what a task stored.
  virtual void FinishTask() const {}

  const ProductExtents& extents() const { return extents_; }

 private:
  std::int64_t CutExtent() const { return cuts_rows_ ? extents_.m : extents_.n; }
  std::int64_t SharedExtent() const { return cuts_rows_ ? extents_.n : extents_.m; }
  std::int64_t strips() const { return PartsOf(CutExtent(), strip_); }
  bool IsInChunks() const { return extents_.k > kTermsOfChunk; }
  std::int64_t sums_stride() const { return PaddedToPanel(extents_.n); }
  TilePair* Shared(const KernelOperands& operands) const;

  void PackShared(const KernelOperands& operands, const Chunk& chunk) const;
  void RunStrip(const KernelOperands& operands, const Chunk& chunk, std::int64_t first, std::int64_t slot) const;
  void PlaceSums(const KernelOperands& operands, std::byte* place, Block& block) const;
  static void ClearSums(const Block& block);

  ProductExtents extents_;
  bool cuts_rows_;  ///< strips are rows of a; else columns of b
  std::int64_t strip_ = 0, slots_ = 0;
  WorkspaceLayout workspace_;
  std::size_t shared_offset_ = 0, sums_offset_ = 0, slots_offset_ = 0, strip_bytes_ = 0, slot_bytes_ = 0;
};

/// A result whose rows lie one behind the other. What is added to it, the activation and the rounding are done there.
class RowMajorResult {
 public:
  /// What is added to the product.
  enum class Addend { kNone, kRow, kMatrix };

  /// `spec` has the result, and its inputs[2] is what is added. A result of `streamed_bytes` or more passes the caches,
  /// with the same bits.
  RowMajorResult(const KernelSpec& spec, Addend addend, std::size_t streamed_bytes = kStreamedBytes);

  /// Stores a block of the result, which has `n` columns.
  void Store(const KernelOperands& operands, std::int64_t n, const ProductOnTiles::Block& block) const;
  /// Ends what a task stored.
  void FinishTask() const;

 private:
  DType type_, addend_type_;
  Addend addend_;
  Activation activation_;
  bool is_streamed_;
};

/// Packs `count` rows of `columns` numbers, `stride` apart, as a left operand. Zeros follow up to a whole tile.
void CopyRows(const std::uint16_t* rows, std::int64_t count, std::int64_t stride, std::int64_t columns, TilePair* to);

}  // namespace mpc::cpu
