// Images lie flat (flat_windows.h), so that no pixel is copied for each tap that reads it. Sums go over taps, then over
// channels; those of the weight's gradient go over places in their order. Where there is no pixel, terms are products
// with zeros. Bits follow from shapes.
#include "kernels/cpu/tile_convolution.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/cpu/flat_windows.h"
#include "kernels/cpu/onednn_calls.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/product_parts.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/tile_products.h"
#include "kernels/known_attributes.h"

namespace mpc::cpu {
namespace {

using Bits = std::uint16_t;  ///< a number of bf16

/// Rows or columns of a block, of which a product keeps the sums in registers.
constexpr std::int64_t kBlockSide = 2 * kTileRows;
constexpr std::int64_t kMostTasks = StagedOperation::kMostParts;
/// Loops over tasks are always worth several threads.
constexpr std::int64_t kWork = std::numeric_limits<std::int64_t>::max();

std::int64_t UpTo(std::int64_t extent, std::int64_t multiple) { return PartsOf(extent, multiple) * multiple; }
std::size_t PairBytes(std::int64_t pairs) { return static_cast<std::size_t>(pairs) * sizeof(TilePair); }
std::size_t FloatBytes(std::int64_t numbers) { return static_cast<std::size_t>(numbers) * sizeof(float); }

template <typename Number>
Number* PlaceIn(const KernelOperands& operands, std::size_t offset) {
  return reinterpret_cast<Number*>(static_cast<std::byte*>(operands.workspace) + offset);
}

/// Of stride 1: pixels of x, and the pixels of y that they reach. Taps are in reverse.
FlatAxis ReverseAxisOf(const ConvolutionShape& shape, std::size_t axis) {
  const FlatAxis forward = AxisOf(shape, axis);
  return {.results = forward.sources,
          .taps = forward.taps,
          .sources = forward.results,
          .stride = 1,
          .dilation = forward.dilation,
          .padding = forward.LastDistance() - forward.padding};
}

/// The phases that taps read.
std::vector<bool> PhasesOf(const FlatWindows& windows) {
  std::vector<bool> is_read(static_cast<std::size_t>(windows.phases()));
  for (std::int64_t tap = 0; tap < windows.taps(); ++tap)
    is_read[static_cast<std::size_t>(windows.PhaseOf(tap))] = true;
  return is_read;
}

/// Pixels that follow each other, or so many places without one.
struct PixelRun {
  std::int64_t first = -1, count = 0;

  /// Whether `pixel` continues the run, and then it does.
  bool Takes(std::int64_t pixel) {
    const bool continues = first < 0 ? pixel < 0 : pixel == first + count;
    count += continues ? 1 : 0;
    return continues;
  }
};

/// y or dx: flat images of `weight.channels` channels times the weight.
class ImagesOnTiles final : public Kernel {
 public:
  ImagesOnTiles(const KernelSpec& spec, FlatWindows windows, const TapMatrix& weight)
      : windows_(std::move(windows)),
        weight_(weight),
        type_(spec.outputs[0].dtype),
        bias_type_(spec.inputs.size() == 3 ? spec.inputs[2].dtype : DType::kF32),
        has_bias_(spec.inputs.size() == 3),
        activation_(spec.attributes.Get(attribute::kActivation)),
        blocks_(PartsOf(windows_.places(), kBlockSide)),
        length_(blocks_ * kBlockSide + windows_.last_distance()) {
    std::vector<std::int64_t> line_of_phase;
    for (const bool is_read : PhasesOf(windows_)) {
      line_of_phase.push_back(static_cast<std::int64_t>(phases_.size()));
      if (is_read) phases_.push_back(static_cast<std::int64_t>(line_of_phase.size()) - 1);
    }
    for (std::int64_t tap = 0; tap < weight.taps; ++tap) {
      const std::int64_t line = line_of_phase[static_cast<std::size_t>(windows_.PhaseOf(tap))];
      const std::int64_t place = line * length_ + windows_.DistanceOf(tap);
      for (std::int64_t channel = 0; channel < weight.channels; channel += kTileDepth) {
        offsets_.push_back((place * weight.channels + channel) / 2);
      }
    }
    lines_offset_ = workspace_.Reserve(PairBytes(lines() * length_ * pixel_pairs()));
    panels_offset_ = workspace_.Reserve(PairBytes(weight.columns / kPanel * weight.panel_pairs()));
  }

  std::size_t workspace_bytes() const override { return workspace_.size(); }

  void Run(const KernelOperands& operands) override {
    PackLines(operands);
    ParallelFor(weight_.columns / kPanel, weight_.columns * weight_.channels * weight_.taps, [&](std::int64_t panel) {
      PackPanelOfTaps(weight_, static_cast<const Bits*>(operands.inputs[1]), panel * kPanel,
                      PlaceIn<TilePair>(operands, panels_offset_) + panel * weight_.panel_pairs());
    });
    // A task keeps the shorter operand in a core's cache, or its part of the longer one.
    const std::int64_t column_blocks = PartsOf(weight_.columns, kBlockSide);
    if (length_ <= weight_.taps * weight_.columns) {
      RunTasks(column_blocks, kWork,
               [&](std::int64_t begin, std::int64_t end) { Multiply(operands, 0, blocks_, begin, end); });
      return;
    }
    const std::int64_t blocks_of_strip = std::clamp<std::int64_t>(blocks_ / kMostTasks, 1, 8);
    ParallelFor(PartsOf(blocks_, blocks_of_strip), kWork, [&](std::int64_t strip) {
      const std::int64_t begin = strip * blocks_of_strip;
      Multiply(operands, begin, std::min(begin + blocks_of_strip, blocks_), 0, column_blocks);
    });
  }

 private:
  std::int64_t lines() const { return static_cast<std::int64_t>(phases_.size()); }
  std::int64_t pixel_pairs() const { return weight_.channels / 2; }

  void PackLines(const KernelOperands& operands) const {
    constexpr std::int64_t kPlaces = 256;
    const std::int64_t tasks = PartsOf(length_, kPlaces), channels = weight_.channels;
    ParallelFor(lines() * tasks, lines() * length_ * channels, [&](std::int64_t task) {
      const std::int64_t line = task / tasks, first = task % tasks * kPlaces;
      const auto* const source = static_cast<const Bits*>(operands.inputs[0]);
      Bits* place = PlaceIn<Bits>(operands, lines_offset_) + (line * length_ + first) * channels;
      const std::int64_t phase = phases_[static_cast<std::size_t>(line)];
      PixelRun run;
      const auto copy = [&] {
        if (run.first < 0) {
          std::fill_n(place, run.count * channels, Bits{0});
        } else {
          std::copy_n(source + run.first * channels, run.count * channels, place);
        }
        place += run.count * channels;
      };
      windows_.ForEachSource(phase, first, std::min(kPlaces, length_ - first), [&](std::int64_t pixel) {
        if (run.Takes(pixel)) return;
        copy();
        run = {pixel, 1};
      });
      copy();
    });
  }

  void Multiply(const KernelOperands& operands, std::int64_t begin, std::int64_t end, std::int64_t column_begin,
                std::int64_t column_end) const {
    alignas(64) float sums[kBlockSide * kBlockSide];
    const TileScope scope;
    for (std::int64_t column_block = column_begin; column_block < column_end; ++column_block) {
      const std::int64_t column = column_block * kBlockSide;
      const std::int64_t columns = std::min(kBlockSide, weight_.columns - column);
      const TilePair* const panels =
          PlaceIn<TilePair>(operands, panels_offset_) + column / kPanel * weight_.panel_pairs();
      for (std::int64_t block = begin; block < end; ++block) {
        AddTileBlock({.a = PlaceIn<TilePair>(operands, lines_offset_) + block * kBlockSide * pixel_pairs(),
                      .a_stride = pixel_pairs(),
                      .a_below = kTileRows * pixel_pairs(),
                      .a_behind = 0,
                      .panels = panels,
                      .panel_size = weight_.panel_pairs(),
                      .c = sums,
                      .c_stride = columns,
                      .two_rows = true,
                      .two_columns = columns > kPanel,
                      .adds = false},
                     offsets_.data(), static_cast<std::int64_t>(offsets_.size()));
        Store(operands, block * kBlockSide, column, columns, sums);
      }
    }
  }

  /// Rows of a block are places of the result, some of which are no pixels.
  void Store(const KernelOperands& operands, std::int64_t place, std::int64_t column, std::int64_t columns,
             float* sums) const {
    alignas(64) float bias[kBlockSide];
    alignas(64) std::byte rounded[kBlockSide * kBlockSide * sizeof(float)];
    if (has_bias_) LoadFloats(bias_type_, operands.inputs[2], column, columns, bias);
    const bool activates = activation_ != Activation::kNone;
    if (activates) {
      for (std::int64_t r = 0; has_bias_ && r < kBlockSide; ++r) {
        for (std::int64_t j = 0; j < columns; ++j) sums[r * columns + j] += bias[j];
      }
      ActivateAndRound(activation_, {DType::kF32, sums}, {DType::kF32, sums}, kBlockSide * columns);
    }
    const FloatRows rows{sums, columns, kBlockSide, columns};
    StoreRoundedRows(type_, rows, has_bias_ && !activates ? bias : nullptr, rounded, columns);
    const std::size_t size = ElementSize(type_), row_bytes = static_cast<std::size_t>(columns) * size;
    auto* const result = static_cast<std::byte*>(operands.outputs[0]);
    const std::byte* row = rounded;
    windows_.ForEachResult(place, kBlockSide, [&](std::int64_t pixel) {
      const std::int64_t at = pixel * weight_.columns + column;
      if (pixel >= 0) std::memcpy(result + static_cast<std::size_t>(at) * size, row, row_bytes);
      row += row_bytes;
    });
  }

  FlatWindows windows_;
  TapMatrix weight_;
  DType type_, bias_type_;
  bool has_bias_;
  Activation activation_;
  std::int64_t blocks_, length_;       ///< length: places of a line, with those that the last block reads
  std::vector<std::int64_t> phases_;   ///< that lines are of
  std::vector<std::int64_t> offsets_;  ///< pairs from a row's first one to tiles of terms
  WorkspaceLayout workspace_;
  std::size_t lines_offset_ = 0, panels_offset_ = 0;
};

/// dweight [O, C, taps]: dy^T [O, places] times flat images, whose pairs are places that follow each other. Pairs begin
/// at even places for taps at even distances, and at odd ones for the others.
class WeightOnTiles final : public Kernel {
 public:
  WeightOnTiles(const KernelSpec& spec, FlatWindows windows, std::int64_t in_channels, std::int64_t out_channels)
      : windows_(std::move(windows)),
        in_channels_(in_channels),
        out_channels_(out_channels),
        type_(spec.outputs[0].dtype),
        places_(UpTo(windows_.places(), kTileDepth)),
        // Rows of dy^T begin in different sets of the first cache.
        row_pairs_(places_ / 2 + kTilePairs),
        panel_pairs_((places_ + windows_.last_distance()) / 2 + 1),
        images_(static_cast<std::size_t>(windows_.phases())) {
    for (std::int64_t tap = 0; tap < windows_.taps(); ++tap) {
      Images& images = images_[static_cast<std::size_t>(windows_.PhaseOf(tap))];
      images.is_read[static_cast<std::size_t>(windows_.DistanceOf(tap) % 2)] = true;
    }
    for (Images& images : images_) {
      for (std::size_t parity = 0; parity < 2; ++parity) {
        if (!images.is_read[parity]) continue;
        images.offset[parity] = workspace_.Reserve(PairBytes(in_channels_ * panel_pairs_));
      }
    }
    dy_offset_ = workspace_.Reserve(PairBytes(out_channels_ * row_pairs_));
    column_tasks_ = PartsOf(in_channels_, kBlockSide);
    rows_of_task_ = kMostRows;
    while (rows_of_task_ > kBlockSide && column_tasks_ * PartsOf(out_channels_, rows_of_task_) < kMostTasks) {
      rows_of_task_ /= 2;
    }
    // The sums of a row's taps lie in different sets of the first cache.
    sums_of_tap_ = rows_of_task_ * kBlockSide + kPanel;
    sums_bytes_ = CacheLines(FloatBytes(windows_.taps() * sums_of_tap_));
    slot_bytes_ = std::max(sums_bytes_ + CacheLines(FloatBytes(windows_.taps() * kBlockSide)),
                           CacheLines(static_cast<std::size_t>(kPlacesOfDy * out_channels_) * sizeof(Bits)));
    slots_ = std::min(kMostTasks, std::max(tasks(), PartsOf(places_, kPlacesOfDy)));
    slots_offset_ = workspace_.Reserve(slot_bytes_ * static_cast<std::size_t>(slots_));
  }

  std::size_t workspace_bytes() const override { return workspace_.size(); }

  void Run(const KernelOperands& operands) override {
    PackDy(operands);
    for (std::size_t phase = 0; phase < images_.size(); ++phase) PackImages(operands, phase);
    RunTasksInSlots(tasks(), slots_, kWork, [&](std::int64_t begin, std::int64_t end, std::int64_t slot) {
      const TileScope scope;
      for (std::int64_t task = begin; task < end; ++task) {
        const std::int64_t row_tasks = PartsOf(out_channels_, rows_of_task_);
        Multiply(operands, task % row_tasks * rows_of_task_, task / row_tasks * kBlockSide, Slot(operands, slot));
      }
    });
  }

 private:
  /// The most rows of dweight whose sums a task keeps in a core's second cache, for all taps.
  static constexpr std::int64_t kMostRows = 128;
  /// Places whose products a task adds before it goes to another tap.
  static constexpr std::int64_t kPlacesOfChunk = 512;
  static constexpr std::int64_t kPlacesOfDy = 2 * kTileDepth;

  /// Flat images of a phase, by where their pairs begin.
  struct Images {
    std::array<bool, 2> is_read{};
    std::array<std::size_t, 2> offset{};
  };

  std::int64_t tasks() const { return column_tasks_ * PartsOf(out_channels_, rows_of_task_); }
  std::byte* Slot(const KernelOperands& operands, std::int64_t slot) const {
    return PlaceIn<std::byte>(operands, slots_offset_ + slot_bytes_ * static_cast<std::size_t>(slot));
  }

  void PackDy(const KernelOperands& operands) const {
    const auto* const dy = static_cast<const Bits*>(operands.inputs[1]);
    RunTasksInSlots(PartsOf(places_, kPlacesOfDy), slots_, places_ * out_channels_,
                    [&](std::int64_t begin, std::int64_t end, std::int64_t slot) {
                      for (std::int64_t task = begin; task < end; ++task) {
                        PackPlacesOfDy(operands, dy, task * kPlacesOfDy, Slot(operands, slot));
                      }
                    });
  }

  void PackPlacesOfDy(const KernelOperands& operands, const Bits* dy, std::int64_t first, std::byte* slot) const {
    auto* const rows = reinterpret_cast<Bits*>(slot);
    const std::int64_t count = std::min(kPlacesOfDy, places_ - first);
    Bits* row = rows;
    windows_.ForEachResult(first, count, [&](std::int64_t pixel) {
      if (pixel < 0) {
        std::fill_n(row, out_channels_, Bits{0});
      } else {
        std::copy_n(dy + pixel * out_channels_, out_channels_, row);
      }
      row += out_channels_;
    });
    TransposeRowsTo(rows, count, out_channels_, out_channels_, PlaceIn<TilePair>(operands, dy_offset_) + first / 2,
                    row_pairs_);
  }

  void PackImages(const KernelOperands& operands, std::size_t phase) const {
    constexpr std::int64_t kPairs = 128;
    const Images& images = images_[phase];
    const auto* const x = static_cast<const Bits*>(operands.inputs[0]);
    ParallelFor(PartsOf(panel_pairs_, kPairs), panel_pairs_ * in_channels_, [&](std::int64_t task) {
      const std::int64_t first = task * kPairs, pairs = std::min(kPairs, panel_pairs_ - first);
      std::array<const Bits*, 2 * kPairs + 1> rows;
      auto row = rows.begin();
      windows_.ForEachSource(static_cast<std::int64_t>(phase), 2 * first, 2 * pairs + 1,
                             [&](std::int64_t pixel) { *row++ = pixel < 0 ? nullptr : x + pixel * in_channels_; });
      for (std::size_t parity = 0; parity < 2; ++parity) {
        if (!images.is_read[parity]) continue;
        TilePair* const panels = PlaceIn<TilePair>(operands, images.offset[parity]) + first * kPanel;
        for (std::int64_t channel = 0; channel < in_channels_; channel += kPanel) {
          PackPairsOfRows(rows.data() + parity, pairs, channel, panels + channel * panel_pairs_);
        }
      }
    });
  }

  /// A block of dweight with all taps, from row and column on.
  void Multiply(const KernelOperands& operands, std::int64_t row, std::int64_t column, std::byte* slot) const {
    auto* const sums = reinterpret_cast<float*>(slot);
    const std::int64_t rows = std::min(rows_of_task_, out_channels_ - row);
    const std::int64_t columns = std::min(kBlockSide, in_channels_ - column);
    for (std::int64_t place = 0; place < places_; place += kPlacesOfChunk) {
      const std::int64_t tiles = std::min(kPlacesOfChunk, places_ - place) / kTileDepth;
      for (std::int64_t tap = 0; tap < windows_.taps(); ++tap) {
        const Images& images = images_[static_cast<std::size_t>(windows_.PhaseOf(tap))];
        const std::int64_t distance = windows_.DistanceOf(tap);
        const TilePair* const panels =
            PlaceIn<TilePair>(operands, images.offset[static_cast<std::size_t>(distance % 2)]) + column * panel_pairs_ +
            (place / 2 + distance / 2) * kPanel;
        for (std::int64_t r = 0; r < rows; r += kBlockSide) {
          AddTileBlock({.a = PlaceIn<TilePair>(operands, dy_offset_) + (row + r) * row_pairs_ + place / 2,
                        .a_stride = row_pairs_,
                        .a_below = kTileRows * row_pairs_,
                        .a_behind = kTilePairs,
                        .panels = panels,
                        .panel_size = panel_pairs_ * kPanel,
                        .c = sums + tap * sums_of_tap_ + r * kBlockSide,
                        .c_stride = kBlockSide,
                        .two_rows = rows - r > kTileRows,
                        .two_columns = columns > kPanel,
                        .adds = place > 0},
                       nullptr, tiles);
        }
      }
    }
    Store(operands, row, rows, column, columns, slot);
  }

  void Store(const KernelOperands& operands, std::int64_t row, std::int64_t rows, std::int64_t column,
             std::int64_t columns, std::byte* slot) const {
    const auto* const sums = reinterpret_cast<const float*>(slot);
    auto* const line = reinterpret_cast<float*>(slot + sums_bytes_);
    auto* const result = static_cast<std::byte*>(operands.outputs[0]);
    const std::int64_t taps = windows_.taps();
    for (std::int64_t r = 0; r < rows; ++r) {
      TransposeFloats(sums + r * kBlockSide, taps, sums_of_tap_, columns, line);
      const std::int64_t at = ((row + r) * in_channels_ + column) * taps;
      StoreRounded(type_, line, result + static_cast<std::size_t>(at) * ElementSize(type_), columns * taps);
    }
  }

  FlatWindows windows_;
  std::int64_t in_channels_, out_channels_;
  DType type_;
  std::int64_t places_, row_pairs_, panel_pairs_;  ///< places: whole tiles; pairs of a row of dy^T and of a panel
  std::vector<Images> images_;                     ///< by phase
  std::int64_t column_tasks_ = 0, rows_of_task_ = 0, sums_of_tap_ = 0, slots_ = 0;
  WorkspaceLayout workspace_;
  std::size_t dy_offset_ = 0, slots_offset_ = 0, sums_bytes_ = 0, slot_bytes_ = 0;
};

bool AreOnTiles(const KernelSpec& spec, const ConvolutionShape& shape) {
  const bool are_bf16 = spec.inputs[0].dtype == DType::kBF16 && spec.inputs[1].dtype == DType::kBF16;
  const bool has_groups = shape.weight.size() != 4;
  const bool is_channels_last = shape.stored_layout == ConvolutionShape::FormatTag::nhwc;
  const bool fill_panels = shape.in_channels() % kPanel == 0 && shape.out_channels() % kPanel == 0;
  return are_bf16 && is_channels_last && !has_groups && fill_panels && spec.weight_layout.empty() && MultipliesTiles();
}

FlatWindows WindowsOf(const ConvolutionShape& shape) {
  return FlatWindows(shape.x[0], AxisOf(shape, 0), AxisOf(shape, 1));
}

}  // namespace

bool MayConvolveOnTiles(const KernelSpec& spec, const ConvolutionShape& shape) {
  return AreOnTiles(spec, shape) && shape.in_channels() % kTileDepth == 0;
}

bool MayGradInputOnTiles(const KernelSpec& spec, const ConvolutionShape& shape) {
  const auto is_reversible = [&](std::size_t axis) {
    return shape.strides[axis] == 1 && ReverseAxisOf(shape, axis).padding >= 0;
  };
  return AreOnTiles(spec, shape) && shape.out_channels() % kTileDepth == 0 && is_reversible(0) && is_reversible(1);
}

bool MayGradWeightOnTiles(const KernelSpec& spec, const ConvolutionShape& shape) { return AreOnTiles(spec, shape); }

bool AreImagesFasterOnTiles(const ConvolutionShape& shape) {
  constexpr std::int64_t kManyWeights = 1 << 20, kLeastPixels = 256, kMostPixels = 512;
  const std::int64_t pixels = shape.y_pixels();
  return shape.weight_elements() >= kManyWeights && pixels >= kLeastPixels && pixels <= kMostPixels;
}

bool IsWeightFasterOnTiles(const ConvolutionShape& shape) {
  // Images are copied up to twice and dy once.
  constexpr std::int64_t kMostPixels = 1 << 14, kManyChannels = 128, kManyChannelsOfProduct = 256;
  const bool is_product = shape.weight[2] * shape.weight[3] == 1;
  const std::int64_t channels = std::min(shape.in_channels(), shape.out_channels());
  return channels >= (is_product ? kManyChannelsOfProduct : kManyChannels) && shape.y_pixels() <= kMostPixels;
}

std::unique_ptr<Kernel> MakeTileConv2d(const KernelSpec& spec, const ConvolutionShape& shape) {
  const std::int64_t taps = shape.weight[2] * shape.weight[3];
  const TapMatrix weight{.taps = taps,
                         .channels = shape.in_channels(),
                         .columns = shape.out_channels(),
                         .channel_stride = taps,
                         .column_stride = shape.in_channels() * taps,
                         .reverses_taps = false};
  return std::make_unique<ImagesOnTiles>(spec, WindowsOf(shape), weight);
}

std::unique_ptr<Kernel> MakeTileConv2dGradInput(const KernelSpec& spec, const ConvolutionShape& shape) {
  const std::int64_t taps = shape.weight[2] * shape.weight[3];
  const TapMatrix weight{.taps = taps,
                         .channels = shape.out_channels(),
                         .columns = shape.in_channels(),
                         .channel_stride = shape.in_channels() * taps,
                         .column_stride = taps,
                         .reverses_taps = true};
  const FlatWindows windows(shape.x[0], ReverseAxisOf(shape, 0), ReverseAxisOf(shape, 1));
  return std::make_unique<ImagesOnTiles>(spec, windows, weight);
}

std::unique_ptr<Kernel> MakeTileConv2dGradWeight(const KernelSpec& spec, const ConvolutionShape& shape) {
  return std::make_unique<WeightOnTiles>(spec, WindowsOf(shape), shape.in_channels(), shape.out_channels());
}

}  // namespace mpc::cpu
