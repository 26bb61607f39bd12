#include "kernels/cpu/tile_matmul.h"

#include <cstdint>

#include "kernels/cpu/matmul_shape.h"
#include "kernels/cpu/product_on_tiles.h"
#include "kernels/cpu/registry.h"

namespace mpc::cpu {
namespace {

RowMajorResult::Addend AddendOf(const MatmulShape& shape) {
  if (shape.adds) return RowMajorResult::Addend::kMatrix;
  return shape.has_bias ? RowMajorResult::Addend::kRow : RowMajorResult::Addend::kNone;
}

class TileMatmul final : public ProductOnTiles {
 public:
  TileMatmul(const KernelSpec& spec, const MatmulShape& shape, std::size_t streamed_bytes)
      : ProductOnTiles({shape.m, shape.k, shape.n}), shape_(shape), result_(spec, AddendOf(shape), streamed_bytes) {}

 private:
  void PackRows(const KernelOperands& operands, const Chunk& chunk, std::int64_t first, std::int64_t count,
                TilePair* to) const override {
    const auto* const a = static_cast<const std::uint16_t*>(operands.inputs[0]);
    if (shape_.transpose_a) {
      TransposeRows(a + chunk.term * shape_.m + first, chunk.terms, shape_.m, count, to);
    } else {
      CopyRows(a + first * shape_.k + chunk.term, count, shape_.k, chunk.terms, to);
    }
  }

  void PackColumns(const KernelOperands& operands, const Chunk& chunk, std::int64_t first, std::int64_t count,
                   TilePair* to) const override {
    const Source b{DType::kBF16, operands.inputs[1]};
    if (shape_.transpose_b) {
      PackTransposedPanels(b, first * shape_.k + chunk.term, shape_.k, chunk.terms, count, to);
    } else {
      PackPanels(b, chunk.term * shape_.n + first, shape_.n, chunk.terms, count, to);
    }
  }

  void Store(const KernelOperands& operands, const Block& block) const override {
    result_.Store(operands, shape_.n, block);
  }
  void FinishTask() const override { result_.FinishTask(); }

  MatmulShape shape_;
  RowMajorResult result_;
};

}  // namespace

bool MayMultiplyOnTiles(const KernelSpec& spec) {
  const bool are_bf16 =
      spec.inputs.size() >= 2 && spec.inputs[0].dtype == DType::kBF16 && spec.inputs[1].dtype == DType::kBF16;
  return are_bf16 && spec.weight_layout.empty() && MultipliesTiles();
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeTileMatmul(const KernelSpec& spec, std::size_t streamed_bytes) {
  const absl::StatusOr<MatmulShape> shape = MatmulShape::Create(spec);
  if (!shape.ok()) return shape.status();
  return WithChoice(std::make_unique<TileMatmul>(spec, *shape, streamed_bytes), kOnTiles);
}

}  // namespace mpc::cpu
