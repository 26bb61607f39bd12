// Convolutions in parts of the batch, each for one thread. Where images are of a type that oneDNN lacks, those of a
// part are widened, not all images at once.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/cpu/convolution_shape.h"
#include "kernels/cpu/onednn_common.h"

namespace mpc::cpu {

/// The images whose rows are cut, where images are few. Those of the other side follow.
enum class CutImages { kNone, kX, kY };

/// How the operands of a kernel follow the batch, the first axis of images.
struct BatchOperands {
  std::size_t images;   ///< operands 0 .. images - 1 are images; the others are the same for every part
  bool sums_the_batch;  ///< the result is a sum over all images; else the result is images too
  CutImages rows = CutImages::kNone;
};

/// y from x, dx from dy, dweight from x and dy.
inline constexpr BatchOperands kForward{1, false, CutImages::kY};
inline constexpr BatchOperands kGradInput{1, false, CutImages::kX};
inline constexpr BatchOperands kGradWeight{2, true, CutImages::kY};

/// How a batch is cut: parts of `images` images, and a shorter last one of `rest` where they do not fill it.
struct BatchCut {
  std::int64_t parts = 1;  ///< the last one included
  std::int64_t images = 0, rest = 0;
  std::int64_t slots = 1;  ///< parts that run at a time, at most
};

/// The cut of the batch for a convolution of `shape`. It follows from shapes and types alone.
BatchCut CutBatch(const KernelSpec& spec, const BatchOperands& operands, const ConvolutionShape& shape);

/// The channels of y in each part of the gradient of a weight. All of them: the batch is cut instead. Large weights
/// over few pixels have the former: a sum of each part of the batch would be as large as the weight.
std::int64_t ChannelsOfPart(const ConvolutionShape& shape);

/// The rows of x or y, as `operands` says, in each part of a convolution over few images, each of which is cut. All of
/// them: there are images for as many parts. An image's rows lie together where channels are last.
std::int64_t RowsOfPart(const KernelSpec& spec, const BatchOperands& operands, const ConvolutionShape& shape);

/// The rows of x or y of an image, as `operands` says. 0 where rows are not cut.
std::int64_t RowsOfImage(const BatchOperands& operands, const ConvolutionShape& shape);

/// The spec for a part of `images` images. A sum is left in f32.
KernelSpec PartOf(const KernelSpec& spec, const BatchOperands& operands, std::int64_t images);

/// Makes the result the sum of what the parts compute. Where primitives agree on its layout, sums have that.
void AddUpParts(const TensorSpec& sum, StagedOperation& operation);

/// Prepares operands from `images` on, which are the same for every part, once, where all parts want them alike.
void PrepareShared(std::size_t images, StagedOperation& operation);

/// The operation of `spec` in parts. `part` is that of PartOf(spec, operands, cut.images), of one primitive; `rest`
/// that of the shorter last part. Sums are added in f32 and rounded once.
StagedOperation InParts(const KernelSpec& spec, const BatchOperands& operands, const BatchCut& cut,
                        const StagedOperation& part, const std::optional<StagedOperation>& rest);

}  // namespace mpc::cpu
