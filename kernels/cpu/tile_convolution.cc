// A convolution is a product of matrices, one of which has the pixels under each tap of each window. That matrix exists
// in packed blocks alone.
//
//   y [pixels of y, O]        = x under the taps [pixels of y, taps x C]  weight [taps x C, O]
//   dx [pixels of x, C]       = dy under the taps [pixels of x, taps x O] weight [taps x O, C]
//   dweight [O, C / 16 x taps x 16] = dy^T [O, pixels of y]               x under the taps
//
// Columns of dweight go by sixteen channels, then by taps. So what a strip stores lies together, in [O, C, taps].
#include "kernels/cpu/tile_convolution.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "kernels/cpu/product_on_tiles.h"
#include "kernels/cpu/registry.h"

namespace mpc::cpu {
namespace {

/// Numbers of bf16.
using Bits = std::uint16_t;

/// For pixels of one image ("result") and taps of a window: the pixels of another image ("source") that meet there.
class TapMap {
 public:
  /// Along one axis.
  struct Axis {
    std::int64_t results, taps, sources;
    std::int64_t stride, dilation, padding;
  };

  /// Pixels of y, and the pixels of x under their windows.
  static TapMap OfY(const ConvolutionShape& shape) {
    const auto source = [](const Axis& axis, std::int64_t pixel, std::int64_t tap) {
      return pixel * axis.stride + tap * axis.dilation - axis.padding;
    };
    return TapMap(shape, shape.y, shape.x, source);
  }
  /// Pixels of x, and the pixels of y whose windows have them under a tap.
  static TapMap OfX(const ConvolutionShape& shape) {
    const auto source = [](const Axis& axis, std::int64_t pixel, std::int64_t tap) {
      const std::int64_t distance = pixel + axis.padding - tap * axis.dilation;
      return distance % axis.stride == 0 ? distance / axis.stride : kNone;
    };
    return TapMap(shape, shape.x, shape.y, source);
  }

  std::int64_t taps() const { return rows_.taps * columns_.taps; }
  /// Channels of the source.
  std::int64_t channels() const { return channels_; }
  /// Pixels of all results.
  std::int64_t pixels() const { return images_ * rows_.results * columns_.results; }

  /// Calls visit(source) for `count` pixels from `first` on, with the channels under `tap`; null: padding.
  template <typename Visit>
  void ForEachPixel(const Bits* source, std::int64_t first, std::int64_t count, std::int64_t tap,
                    const Visit& visit) const {
    const std::int64_t row_tap = tap / columns_.taps, column_tap = tap % columns_.taps;
    std::int64_t column = first % columns_.results, row = first / columns_.results % rows_.results;
    std::int64_t image = first / columns_.results / rows_.results;
    for (std::int64_t left = count; left > 0;) {
      const std::int64_t source_row = row_sources_[row * rows_.taps + row_tap];
      const Bits* const line = source_row == kNone ? nullptr : LineOf(source, image, source_row);
      const std::int64_t end = std::min(columns_.results, column + left);
      left -= end - column;
      for (; column < end; ++column) {
        const std::int64_t source_column = column_sources_[column * columns_.taps + column_tap];
        const bool is_padding = line == nullptr || source_column == kNone;
        visit(is_padding ? nullptr : line + source_column * channels_);
      }
      column = 0;
      if (++row == rows_.results) row = 0, ++image;
    }
  }

 private:
  static constexpr std::int64_t kNone = -1;

  template <typename SourceOf>
  TapMap(const ConvolutionShape& shape, const dnnl::memory::dims& results, const dnnl::memory::dims& sources,
         const SourceOf& source_of)
      : images_(results[0]), channels_(sources[1]) {
    const auto axis = [&](std::size_t i) {
      return Axis{.results = results[2 + i],
                  .taps = shape.weight[2 + i],
                  .sources = sources[2 + i],
                  .stride = shape.strides[i],
                  .dilation = shape.dilations[i] + 1,
                  .padding = shape.pad_begin[i]};
    };
    rows_ = axis(0);
    columns_ = axis(1);
    row_sources_ = Sources(rows_, source_of);
    column_sources_ = Sources(columns_, source_of);
  }

  const Bits* LineOf(const Bits* source, std::int64_t image, std::int64_t row) const {
    return source + (image * rows_.sources + row) * columns_.sources * channels_;
  }

  template <typename SourceOf>
  static std::vector<std::int64_t> Sources(const Axis& axis, const SourceOf& source_of) {
    std::vector<std::int64_t> sources;
    for (std::int64_t pixel = 0; pixel < axis.results; ++pixel) {
      for (std::int64_t tap = 0; tap < axis.taps; ++tap) {
        const std::int64_t source = source_of(axis, pixel, tap);
        sources.push_back(source >= 0 && source < axis.sources ? source : kNone);
      }
    }
    return sources;
  }

  std::int64_t images_, channels_;
  Axis rows_, columns_;
  std::vector<std::int64_t> row_sources_, column_sources_;  ///< [results, taps]
};

/// Calls visit(tap, channel, count, offset) for the taps and channels that `terms` terms from `term` on are of. Terms
/// go by taps, then by channels. `offset` is the number of terms before.
template <typename Visit>
void ForEachTap(std::int64_t term, std::int64_t terms, std::int64_t channels, const Visit& visit) {
  for (std::int64_t offset = 0; offset < terms;) {
    const std::int64_t tap = (term + offset) / channels, channel = (term + offset) % channels;
    const std::int64_t count = std::min(channels - channel, terms - offset);
    visit(tap, channel, count, offset);
    offset += count;
  }
}

/// Packs the pixels under the taps of `count` pixels from `first` on: rows of `terms` terms from `term` on.
void PackPixels(const TapMap& map, const Bits* source, std::int64_t first, std::int64_t count, std::int64_t term,
                std::int64_t terms, TilePair* to) {
  const std::int64_t length = 2 * LengthOf<TilePair>(terms);
  auto* const rows = reinterpret_cast<Bits*>(to);
  ForEachTap(term, terms, map.channels(),
             [&](std::int64_t tap, std::int64_t channel, std::int64_t channels, std::int64_t offset) {
               Bits* row = rows + offset;
               map.ForEachPixel(source, first, count, tap, [&](const Bits* pixel) {
                 if (pixel == nullptr) {
                   std::fill_n(row, channels, Bits{0});
                 } else {
                   std::copy_n(pixel + channel, channels, row);
                 }
                 row += length;
               });
             });
  for (std::int64_t r = 0; r < count; ++r) std::fill(rows + r * length + terms, rows + (r + 1) * length, Bits{0});
}

/// The weight [O, C, taps] as a right operand.
struct WeightMatrix {
  std::int64_t taps;
  std::int64_t channels, channel_stride;  ///< those of the terms
  std::int64_t column_stride;             ///< from one channel of the result to the next

  /// Packs `count` columns from `first` on. Sixteen columns of weights become rows of terms first.
  void Pack(const Bits* weight, std::int64_t first, std::int64_t count, std::int64_t term, std::int64_t terms,
            TilePair* to) const {
    alignas(64) Bits rows[kPanel * ProductOnTiles::kTermsOfChunk];
    for (std::int64_t column = 0; column < count; column += kPanel) {
      const std::int64_t columns = std::min(kPanel, count - column);
      for (std::int64_t j = 0; j < columns; ++j) {
        const Bits* const weights = weight + (first + column + j) * column_stride;
        ForEachTap(term, terms, channels,
                   [&](std::int64_t tap, std::int64_t channel, std::int64_t size, std::int64_t offset) {
                     const Bits* const from = weights + channel * channel_stride + tap;
                     Bits* const row = rows + j * terms + offset;
                     for (std::int64_t i = 0; i < size; ++i) row[i] = from[i * channel_stride];
                   });
      }
      PackTransposedPanels({DType::kBF16, rows}, 0, terms, terms, columns, to + column * LengthOf<TilePair>(terms));
    }
  }
};

/// y or dx: an image whose every pixel is a row of a product with the weight.
class ImageOnTiles final : public ProductOnTiles {
 public:
  ImageOnTiles(TapMap map, const WeightMatrix& weight, std::int64_t result_channels, const RowMajorResult& result)
      : ProductOnTiles({map.pixels(), map.taps() * map.channels(), result_channels}),
        map_(std::move(map)),
        weight_(weight),
        result_(result) {}

 private:
  void PackRows(const KernelOperands& operands, const Chunk& chunk, std::int64_t first, std::int64_t count,
                TilePair* to) const override {
    PackPixels(map_, static_cast<const Bits*>(operands.inputs[0]), first, count, chunk.term, chunk.terms, to);
  }
  void PackColumns(const KernelOperands& operands, const Chunk& chunk, std::int64_t first, std::int64_t count,
                   TilePair* to) const override {
    weight_.Pack(static_cast<const Bits*>(operands.inputs[1]), first, count, chunk.term, chunk.terms, to);
  }
  void Store(const KernelOperands& operands, const Block& block) const override {
    result_.Store(operands, extents().n, block);
  }
  void FinishTask() const override { result_.FinishTask(); }

  TapMap map_;
  WeightMatrix weight_;
  RowMajorResult result_;
};

class WeightOnTiles final : public ProductOnTiles {
 public:
  WeightOnTiles(TapMap map, std::int64_t out_channels, DType type)
      : ProductOnTiles({out_channels, map.pixels(), map.taps() * map.channels()}), map_(std::move(map)), type_(type) {}

 private:
  void PackRows(const KernelOperands& operands, const Chunk& chunk, std::int64_t first, std::int64_t count,
                TilePair* to) const override {
    const std::int64_t channels = extents().m;
    const auto* const dy = static_cast<const Bits*>(operands.inputs[1]);
    TransposeRows(dy + chunk.term * channels + first, chunk.terms, channels, count, to);
  }

  void PackColumns(const KernelOperands& operands, const Chunk& chunk, std::int64_t first, std::int64_t count,
                   TilePair* to) const override {
    const auto* const x = static_cast<const Bits*>(operands.inputs[0]);
    const std::int64_t begin = first / kPanel, end = (first + count) / kPanel, panel_pairs = kPanel * chunk.length();
    std::array<const Bits*, kTermsOfChunk> rows;
    // Panels of the same tap have the same pixels.
    for (std::int64_t panel = begin; panel < std::min(begin + map_.taps(), end); ++panel) {
      std::int64_t row = 0;
      map_.ForEachPixel(x, chunk.term, chunk.terms, panel % map_.taps(), [&](const Bits* pixel) { rows[row++] = pixel; });
      for (std::int64_t other = panel; other < end; other += map_.taps()) {
        PackPanelOfRows(rows.data(), chunk.terms, other / map_.taps() * kPanel, to + (other - begin) * panel_pairs);
      }
    }
  }

  void Store(const KernelOperands& operands, const Block& block) const override {
    alignas(64) std::byte rounded[kMostOfStrip * sizeof(float)];
    auto* const dweight = static_cast<std::byte*>(operands.outputs[0]);
    for (std::int64_t r = 0; r < block.rows; ++r) {
      StoreFloats(type_, block.sums + r * block.stride, rounded, 0, block.columns);
      const std::int64_t row = (block.row + r) * extents().n;
      if (ElementSize(type_) == sizeof(float)) {
        StoreRow(reinterpret_cast<const float*>(rounded), block, reinterpret_cast<float*>(dweight) + row);
      } else {
        StoreRow(reinterpret_cast<const Bits*>(rounded), block, reinterpret_cast<Bits*>(dweight) + row);
      }
    }
  }

  /// Column (channels, tap, channel) of a block goes to (channels, channel, tap).
  template <typename Element>
  void StoreRow(const Element* from, const Block& block, Element* row) const {
    const std::int64_t taps = map_.taps();
    for (std::int64_t column = 0; column < block.columns; column += kPanel) {
      const std::int64_t panel = (block.column + column) / kPanel;
      Element* const to = row + panel / taps * kPanel * taps + panel % taps;
      for (std::int64_t j = 0; j < kPanel; ++j) to[j * taps] = from[column + j];
    }
  }

  TapMap map_;
  DType type_;
};

}  // namespace

bool MayConvolveOnTiles(const KernelSpec& spec, const ConvolutionShape& shape) {
  const bool are_bf16 = spec.inputs[0].dtype == DType::kBF16 && spec.inputs[1].dtype == DType::kBF16;
  const bool has_groups = shape.weight.size() != 4;
  const bool is_channels_last = shape.stored_layout == ConvolutionShape::FormatTag::nhwc;
  return are_bf16 && is_channels_last && !has_groups && spec.weight_layout.empty() && MultipliesTiles();
}

bool MayGradWeightOnTiles(const KernelSpec& spec, const ConvolutionShape& shape) {
  return shape.in_channels() % kPanel == 0 && MayConvolveOnTiles(spec, shape);
}

std::unique_ptr<Kernel> MakeTileConv2d(const KernelSpec& spec, const ConvolutionShape& shape) {
  TapMap map = TapMap::OfY(shape);
  const std::int64_t taps = map.taps();
  const WeightMatrix weight{taps, shape.in_channels(), taps, shape.in_channels() * taps};
  const auto addend = spec.inputs.size() == 3 ? RowMajorResult::Addend::kRow : RowMajorResult::Addend::kNone;
  return std::make_unique<ImageOnTiles>(std::move(map), weight, shape.out_channels(), RowMajorResult(spec, addend));
}

std::unique_ptr<Kernel> MakeTileConv2dGradInput(const KernelSpec& spec, const ConvolutionShape& shape) {
  TapMap map = TapMap::OfX(shape);
  const std::int64_t taps = map.taps();
  const WeightMatrix weight{taps, shape.out_channels(), shape.in_channels() * taps, taps};
  return std::make_unique<ImageOnTiles>(std::move(map), weight, shape.in_channels(),
                                        RowMajorResult(spec, RowMajorResult::Addend::kNone));
}

std::unique_ptr<Kernel> MakeTileConv2dGradWeight(const KernelSpec& spec, const ConvolutionShape& shape) {
  return std::make_unique<WeightOnTiles>(TapMap::OfY(shape), shape.out_channels(), spec.outputs[0].dtype);
}

}  // namespace mpc::cpu
