// dweight [tap][channel of x][channel of y] is the sum over pixels of y of x's pixel under the tap times dy's pixel.
//
// Images are cut into chunks of rows of y. Threads first pack a chunk: x into blocks of 6 channels, dy into panels of
// 16. They then add its products to the sums of all taps. A tap meets a row of pixels at a distance in x, so that x is
// packed once for all taps. A tap's terms are listed, without those that meet padding: no zero is multiplied by an
// infinity. Tasks have sums of their own, and chunks follow from shapes. So do bits.
#include "kernels/cpu/panel_convolution.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/cpu/flat_windows.h"
#include "kernels/cpu/onednn_calls.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/product_parts.h"
#include "kernels/cpu/term_products.h"

namespace mpc::cpu {
namespace {

/// Floats that are packed of a chunk, and its pixels of y at most.
constexpr std::int64_t kFloatsOfChunk = std::int64_t{1} << 19, kMostPixelsOfChunk = 4096;
/// Pixels of y whose products are added in registers. A panel of them fills half of the first cache.
constexpr std::int64_t kMostPixelsOfStrip = 256;
/// Floats of x that a task reads of a strip again for each tap: from the second cache.
constexpr std::int64_t kFloatsOfTask = 48 * 1024;
constexpr std::int64_t kLeastBlocksOfTask = 4;
constexpr std::int64_t kFloatsOfTerm = sizeof(Term) / sizeof(float);
constexpr std::int64_t kMostTasks = StagedOperation::kMostParts;
/// Loops over tasks are always worth several threads.
constexpr std::int64_t kWork = std::numeric_limits<std::int64_t>::max();

/// Floats of a block or panel of so many pixels. Neighbours begin in different sets of the first cache.
constexpr std::int64_t Apart(std::int64_t floats) { return (floats + 1023) / 1024 * 1024 + kPanel; }

std::size_t FloatBytes(std::int64_t floats) { return static_cast<std::size_t>(floats) * sizeof(float); }

float* FloatsIn(const KernelOperands& operands, std::size_t offset) {
  return reinterpret_cast<float*>(static_cast<std::byte*>(operands.workspace) + offset);
}

/// Part `part` of `extent` in parts of `size`.
PixelRange PartOfExtent(std::int64_t extent, std::int64_t size, std::int64_t part) {
  return {std::min(extent, part * size), std::min(extent, (part + 1) * size)};
}

class WeightInPanels final : public Kernel {
 public:
  WeightInPanels(const KernelSpec& spec, const ConvolutionShape& shape)
      : rows_(AxisOf(shape, 0)),
        columns_(AxisOf(shape, 1)),
        images_(shape.x[0]),
        channels_(shape.in_channels()),
        out_channels_(shape.out_channels()),
        blocks_(PartsOf(channels_, kBlockRows)),
        panels_(PartsOf(out_channels_, kPanel)),
        x_type_(spec.inputs[0].dtype),
        dy_type_(spec.inputs[1].dtype),
        type_(spec.outputs[0].dtype) {
    // Windows that are a stride apart have so many pixels of x for a row of y.
    const std::int64_t sources_of_row = PartsOf(rows_.sources * columns_.sources, rows_.results);
    const std::int64_t floats_of_row =
        columns_.results * (out_channels_ + taps() * kFloatsOfTerm) + sources_of_row * channels_;
    const std::int64_t most_rows = std::min(kMostPixelsOfChunk / columns_.results, images_ * rows_.results);
    rows_of_chunk_ = std::clamp<std::int64_t>(kFloatsOfChunk / floats_of_row, 1, std::max<std::int64_t>(1, most_rows));
    for (std::int64_t chunk = 0; chunk < chunks(); ++chunk) {
      const auto [begin, end] = SourceRows(ChunkOf(chunk));
      lines_of_phase_ = std::max(lines_of_phase_, PartsOf(end, rows_.stride) - begin / rows_.stride);
    }
    block_size_ = Apart(phases(columns_) * lines() * pitch() * kBlockRows);
    panel_size_ = Apart(rows_of_chunk_ * columns_.results * kPanel);
    strips_ = PartsOf(pixels_of_chunk(), kMostPixelsOfStrip);
    pixels_of_strip_ = PartsOf(pixels_of_chunk(), strips_);
    CutTasks();
    for (std::int64_t column = 0; column < columns_.sources; ++column) {
      const std::int64_t place = column % columns_.stride * lines() * pitch() + column / columns_.stride;
      places_.push_back(columns_.IsRead(column) ? static_cast<std::int32_t>(place) : -1);
    }
    x_offset_ = workspace_.Reserve(FloatBytes(blocks_ * block_size_));
    dy_offset_ = workspace_.Reserve(FloatBytes(panels_ * panel_size_));
    terms_offset_ = workspace_.Reserve(FloatBytes(taps() * pixels_of_chunk() * kFloatsOfTerm));
    counts_offset_ = workspace_.Reserve(static_cast<std::size_t>(taps() * strips_) * sizeof(std::int64_t));
    sums_offset_ = workspace_.Reserve(FloatBytes(panels_ * taps() * blocks_ * kBlockSums));
  }

  std::size_t workspace_bytes() const override { return workspace_.size(); }

  void Run(const KernelOperands& operands) override {
    for (std::int64_t chunk = 0; chunk < chunks(); ++chunk) {
      Pack(operands, ChunkOf(chunk));
      const std::int64_t block_tasks = PartsOf(blocks_, blocks_of_task_), tap_tasks = PartsOf(taps(), taps_of_task_);
      ParallelFor(panels_ * tap_tasks * block_tasks, kWork, [&](std::int64_t task) {
        AddChunk(operands, chunk == 0, task / block_tasks / tap_tasks,
                 PartOfExtent(taps(), taps_of_task_, task / block_tasks % tap_tasks),
                 PartOfExtent(blocks_, blocks_of_task_, task % block_tasks));
      });
    }
    const std::int64_t store_tasks = PartsOf(channels_, kChannelsOfStore);
    ParallelFor(panels_ * store_tasks, channels_ * out_channels_ * taps(), [&](std::int64_t task) {
      Store(operands, task / store_tasks, PartOfExtent(channels_, kChannelsOfStore, task % store_tasks));
    });
  }

 private:
  static constexpr std::int64_t kChannelsOfStore = 48;

  std::int64_t taps() const { return rows_.taps * columns_.taps; }
  std::int64_t chunks() const { return PartsOf(images_ * rows_.results, rows_of_chunk_); }
  /// Rows of y, counted through all images.
  PixelRange ChunkOf(std::int64_t chunk) const { return PartOfExtent(images_ * rows_.results, rows_of_chunk_, chunk); }
  /// Rows of an image of x, up to whole strides.
  std::int64_t padded_rows() const { return PartsOf(rows_.sources, rows_.stride) * rows_.stride; }
  /// The rows of x that windows of rows of y may reach, counted through all images of padded_rows().
  PixelRange SourceRows(const PixelRange& results) const {
    const auto source = [&](std::int64_t row, std::int64_t distance) {
      const std::int64_t in_image = row % rows_.results * rows_.stride - rows_.padding + distance;
      return row / rows_.results * padded_rows() + std::clamp<std::int64_t>(in_image, 0, rows_.sources);
    };
    return {source(results.begin, 0), source(results.end - 1, (rows_.taps - 1) * rows_.dilation + 1)};
  }

  // Packed rows and columns of x that are a stride apart follow each other. They are of one phase, as those that a tap
  // reads are.
  static std::int64_t phases(const FlatAxis& axis) { return std::min(axis.stride, axis.sources); }
  std::int64_t lines() const { return phases(rows_) * lines_of_phase_; }
  std::int64_t pitch() const { return PartsOf(columns_.sources, columns_.stride); }
  /// The packed row of row `row` of x, in a chunk whose first one is `first`.
  std::int64_t LineOf(std::int64_t row, std::int64_t first) const {
    return row % rows_.stride * lines_of_phase_ + row / rows_.stride - first / rows_.stride;
  }
  float* SumsOf(const KernelOperands& operands, std::int64_t panel, std::int64_t tap) const {
    return FloatsIn(operands, sums_offset_) + (panel * taps() + tap) * blocks_ * kBlockSums;
  }

  /// As many tasks as there may be threads, of so much of x as stays in a core's cache.
  void CutTasks() {
    const std::int64_t most_blocks = std::max(kLeastBlocksOfTask, kFloatsOfTask / PartsOf(block_size_, strips_));
    blocks_of_task_ = std::clamp(PartsOf(blocks_, PartsOf(kMostTasks, panels_)), kLeastBlocksOfTask, most_blocks);
    // Tasks of about equally many blocks.
    blocks_of_task_ = PartsOf(blocks_, PartsOf(blocks_, blocks_of_task_));
    taps_of_task_ = PartsOf(taps(), PartsOf(kMostTasks, panels_ * PartsOf(blocks_, blocks_of_task_)));
  }

  /// Rows of x and dy of a chunk, and its terms.
  void Pack(const KernelOperands& operands, const PixelRange& results) const {
    const PixelRange sources = SourceRows(results);
    const std::int64_t x_rows = sources.end - sources.begin, dy_rows = results.end - results.begin;
    const std::int64_t pixels = x_rows * columns_.sources + dy_rows * columns_.results;
    ParallelFor(x_rows + dy_rows + taps(), pixels * std::max(channels_, out_channels_), [&](std::int64_t task) {
      if (task < x_rows) {
        PackSources(operands, sources.begin + task, sources.begin);
      } else if (task < x_rows + dy_rows) {
        PackResults(operands, results.begin + task - x_rows, task - x_rows);
      } else {
        ListTerms(operands, results, task - x_rows - dy_rows);
      }
    });
  }

  /// Row `row` of x, in a chunk whose first one is `first`, without pixels that no tap reads.
  void PackSources(const KernelOperands& operands, std::int64_t row, std::int64_t first) const {
    const std::int64_t image = row / padded_rows(), source = row % padded_rows();
    if (!rows_.HasSource(source) || !rows_.IsRead(source)) return;
    const std::int64_t pixel = (image * rows_.sources + source) * columns_.sources;
    float* const blocks = FloatsIn(operands, x_offset_) + LineOf(row, first) * pitch() * kBlockRows;
    for (std::int64_t column = 0; column < columns_.sources; ++column) {
      const std::int32_t place = places_[static_cast<std::size_t>(column)];
      if (place < 0) continue;
      PackPixel<kBlockRows>({x_type_, operands.inputs[0]}, (pixel + column) * channels_, channels_,
                            blocks + place * kBlockRows, block_size_);
    }
  }

  void PackResults(const KernelOperands& operands, std::int64_t row, std::int64_t line) const {
    float* const panels = FloatsIn(operands, dy_offset_) + line * columns_.results * kPanel;
    for (std::int64_t column = 0; column < columns_.results; ++column) {
      PackPixel<kPanel>({dy_type_, operands.inputs[1]}, (row * columns_.results + column) * out_channels_,
                        out_channels_, panels + column * kPanel, panel_size_);
    }
  }

  /// Copies the channels of a pixel, those from element `first` on, into groups of kWidth. Zeros follow the last one.
  template <std::int64_t kWidth>
  static void PackPixel(Source image, std::int64_t first, std::int64_t channels, float* to, std::int64_t group_size) {
    constexpr std::int64_t kChannels = kBlock / kWidth * kWidth;
    BlockBuffer buffer;
    for (std::int64_t channel = 0; channel < channels; channel += kChannels) {
      std::int64_t count = std::min(kChannels, channels - channel);
      const float* values = image.Load(first + channel, count, buffer.values);
      for (; count >= kWidth; count -= kWidth, values += kWidth, to += group_size) {
        std::memcpy(to, values, kWidth * sizeof(float));
      }
      if (count == 0) continue;
      std::fill_n(to, kWidth, 0.0f);
      std::copy_n(values, count, to);
    }
  }

  /// Pixels of a strip, those of each chunk but the last one.
  std::int64_t pixels_of_chunk() const { return rows_of_chunk_ * columns_.results; }
  /// The terms of a tap over a strip: so many places, and how many of them are used.
  Term* TermsOf(const KernelOperands& operands, std::int64_t tap, std::int64_t first) const {
    return reinterpret_cast<Term*>(FloatsIn(operands, terms_offset_)) + tap * pixels_of_chunk() + first;
  }
  std::int64_t* CountOf(const KernelOperands& operands, std::int64_t tap, std::int64_t strip) const {
    return reinterpret_cast<std::int64_t*>(FloatsIn(operands, counts_offset_)) + tap * strips_ + strip;
  }

  /// Lists the terms of a tap over the strips of a chunk.
  void ListTerms(const KernelOperands& operands, const PixelRange& results, std::int64_t tap) const {
    const std::int64_t tap_row = tap / columns_.taps, tap_column = tap % columns_.taps;
    const std::int64_t distance = tap_column * columns_.dilation - columns_.padding;
    const std::int64_t first_source = SourceRows(results).begin;
    const std::int64_t pixels = (results.end - results.begin) * columns_.results;
    const PixelRange valid = columns_.ResultsOf(tap_column);
    for (std::int64_t strip = 0; strip < strips_; ++strip) {
      const PixelRange part = PartOfExtent(pixels, pixels_of_strip_, strip);
      Term* const terms = TermsOf(operands, tap, part.begin);
      Term* next = terms;
      for (std::int64_t r = part.begin / columns_.results; r * columns_.results < part.end; ++r) {
        const std::int64_t row = results.begin + r, source = rows_.SourceUnder(tap_row, row % rows_.results);
        if (!rows_.HasSource(source)) continue;
        const std::int64_t begin = std::max(valid.begin, part.begin - r * columns_.results);
        const std::int64_t end = std::min(valid.end, part.end - r * columns_.results);
        if (begin >= end) continue;
        const std::int64_t line = LineOf(row / rows_.results * padded_rows() + source, first_source);
        // Sources of a tap are of one phase, where neighbours follow each other.
        const std::int64_t left =
            line * pitch() + places_[static_cast<std::size_t>(begin * columns_.stride + distance)];
        const std::int64_t right = r * columns_.results + begin;
        for (std::int64_t i = 0; i < end - begin; ++i) {
          *next++ = {static_cast<std::int32_t>((left + i) * kBlockRows),
                     static_cast<std::int32_t>((right + i) * kPanel)};
        }
      }
      *CountOf(operands, tap, strip) = next - terms;
    }
  }

  /// Adds the products of a chunk to the sums of a panel, for some taps and blocks.
  void AddChunk(const KernelOperands& operands, bool is_first, std::int64_t panel, const PixelRange& taps,
                const PixelRange& blocks) const {
    for (std::int64_t strip = 0; strip < strips_; ++strip) {
      const bool adds = !is_first || strip > 0;
      for (std::int64_t tap = taps.begin; tap < taps.end; ++tap) {
        const std::int64_t count = *CountOf(operands, tap, strip);
        if (count == 0 && adds) continue;
        for (std::int64_t block = blocks.begin; block < blocks.end; ++block) {
          const TermProduct product{
              .block = FloatsIn(operands, x_offset_) + block * block_size_,
              .rows = std::min(kBlockRows, channels_ - block * kBlockRows),
              .panel = FloatsIn(operands, dy_offset_) + panel * panel_size_,
              .terms = {TermsOf(operands, tap, strip * pixels_of_strip_), static_cast<std::size_t>(count)}};
          SumTerms(product, adds, SumsOf(operands, panel, tap) + block * kBlockSums);
        }
      }
    }
  }

  /// Rounds the sums of a panel and of some channels of x, and stores them as [channel of y][channel of x][tap].
  void Store(const KernelOperands& operands, std::int64_t panel, const PixelRange& channels) const {
    constexpr std::int64_t kLength = 128;  // numbers that follow each other in a row of the result
    alignas(64) float lines[kPanel * kLength];
    const std::int64_t total = (channels.end - channels.begin) * taps();
    const float* const sums = SumsOf(operands, panel, 0);
    std::int64_t channel = channels.begin, tap = 0;
    const auto next_row = [&] {
      const float* const row = sums + (tap * blocks_ * kBlockRows + channel) * kPanel;
      // Behind the last one, it is repeated.
      if (tap + 1 < taps()) {
        ++tap;
      } else if (channel + 1 < channels.end) {
        ++channel, tap = 0;
      }
      return row;
    };
    for (std::int64_t first = 0; first < total; first += kLength) {
      const std::int64_t length = std::min(kLength, total - first);
      for (std::int64_t i = 0; i < length; i += 8) {
        const float* rows[8];
        for (const float*& row : rows) row = next_row();
        TransposeEightRows(rows, lines + i, kLength);
      }
      for (std::int64_t j = 0; j < std::min(kPanel, out_channels_ - panel * kPanel); ++j) {
        const std::int64_t at = ((panel * kPanel + j) * channels_ + channels.begin) * taps() + first;
        StoreFloats(type_, lines + j * kLength, operands.outputs[0], at, length);
      }
    }
  }

  FlatAxis rows_, columns_;
  std::int64_t images_, channels_, out_channels_, blocks_, panels_;
  DType x_type_, dy_type_, type_;
  std::int64_t rows_of_chunk_ = 0, block_size_ = 0, lines_of_phase_ = 0, panel_size_ = 0, blocks_of_task_ = 0,
               taps_of_task_ = 0;
  std::int64_t strips_ = 0, pixels_of_strip_ = 0;
  std::vector<std::int32_t> places_;  ///< by column of x: its place in a packed row, -1 where no tap reads it
  WorkspaceLayout workspace_;
  std::size_t x_offset_ = 0, dy_offset_ = 0, terms_offset_ = 0, counts_offset_ = 0, sums_offset_ = 0;
};

}  // namespace

bool MayGradWeightInPanels(const KernelSpec& spec, const ConvolutionShape& shape) {
  const bool is_f32 =
      OperandTypes({spec.inputs[0].dtype, spec.inputs[1].dtype}).front() == ConvolutionShape::DataType::f32;
  const bool has_groups = shape.weight.size() != 4;
  const bool is_channels_last = shape.stored_layout == ConvolutionShape::FormatTag::nhwc;
  // Terms are counted by 32 bits.
  constexpr std::int64_t kMostPixels = std::int64_t{1} << 26;
  const bool are_counted = shape.x[2] * shape.x[3] <= kMostPixels;
  return MultipliesFloats() && are_counted && is_f32 && is_channels_last && !has_groups && spec.weight_layout.empty();
}

bool IsWeightFasterInPanels(const ConvolutionShape& shape) {
  // Packing takes as long for one tap as for all of them. Sums are stored once for all pixels.
  constexpr std::int64_t kManyChannels = 32, kManyPixels = 128;
  const std::int64_t channels = shape.in_channels(), columns = shape.out_channels();
  const bool fill_panels = 8 * columns >= 7 * PaddedToPanel(columns);
  const bool has_taps = shape.weight[2] * shape.weight[3] > 1;
  return has_taps && fill_panels && std::min(channels, columns) >= kManyChannels && shape.y_pixels() >= kManyPixels;
}

std::unique_ptr<Kernel> MakePanelConv2dGradWeight(const KernelSpec& spec, const ConvolutionShape& shape) {
  return std::make_unique<WeightInPanels>(spec, shape);
}

}  // namespace mpc::cpu
