#include "kernels/cpu/batch_parts.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "kernels/cpu/onednn_api.h"
#include "kernels/cpu/product_parts.h"

namespace mpc::cpu {
namespace {

/// The most bytes of images that are widened at a time, by the parts of all slots. This is about a cache, so that the
/// next pass finds there what one pass widened.
constexpr std::int64_t kWidenedBytes = 3 << 20;
/// So many parts run at a time in any case, however large images are.
constexpr std::int64_t kLeastSlots = 4;
/// Each is as large as the result.
constexpr std::int64_t kMostPartialSums = 8;
/// Weights of so many elements do not stay in a core's cache. Then each part has so many pixels for each time that it
/// reads them.
constexpr std::int64_t kLargeWeight = 128 * 1024, kPixelsOfLargeWeight = 128;

bool IsWidened(DType dtype) { return (dtype == DType::kF16 || dtype == DType::kBF16) && !IsNative(dtype); }

/// Bytes that an image of the tensor has when it is widened; 0 where it is not.
std::int64_t WidenedBytes(const TensorSpec& images) {
  if (!IsWidened(images.dtype)) return 0;
  return images.num_elements() / images.shape[0] * static_cast<std::int64_t>(sizeof(float));
}

bool WidensImages(const KernelSpec& spec, const BatchOperands& operands) {
  const auto end = spec.inputs.begin() + static_cast<std::ptrdiff_t>(operands.images);
  const bool inputs = std::any_of(spec.inputs.begin(), end, [](const auto& images) { return IsWidened(images.dtype); });
  return inputs || (!operands.sums_the_batch && IsWidened(spec.outputs[0].dtype));
}

/// Bytes of an image.
std::size_t ImageBytes(const TensorSpec& images) { return images.bytes() / static_cast<std::size_t>(images.shape[0]); }

/// The most parts that are worth a thread each.
std::int64_t PartsOfWork(const ConvolutionShape& shape) {
  const std::int64_t parts = MostParts(shape.multiply_adds());
  if (shape.weight_elements() <= kLargeWeight) return parts;
  return std::clamp<std::int64_t>(shape.y_pixels() / kPixelsOfLargeWeight, 1, parts);
}

/// Pixels of y, in f32, for each further sum of rows. A sum leaves a core's cache, which takes as long as 25 pixels do
/// in f32, and as long as 50 in bf16.
constexpr std::int64_t kPixelsOfSum = 512;

/// The most sums that rows are worth.
std::int64_t SumsOfRows(const KernelSpec& spec, const ConvolutionShape& shape) {
  const auto faster = static_cast<std::int64_t>(sizeof(float) / ElementSize(spec.inputs[0].dtype));
  return std::min(kMostPartialSums, 1 + shape.y_pixels() / (kPixelsOfSum * faster));
}

/// Channels of y in a part at least: each part transposes all of x.
constexpr std::int64_t kLeastChannels = 128;

/// `images`, or up to half as many where that cuts the batch into equal parts: they need one primitive.
std::int64_t DivisorNear(std::int64_t images, std::int64_t batch) {
  for (std::int64_t fewer = images; 2 * fewer >= images && fewer > 0; --fewer) {
    if (batch % fewer == 0) return fewer;
  }
  return images;
}

}  // namespace

BatchCut CutBatch(const KernelSpec& spec, const BatchOperands& operands, const ConvolutionShape& shape) {
  const std::int64_t batch = spec.inputs[0].shape[0];
  if (operands.sums_the_batch && ChannelsOfPart(shape) < shape.out_channels()) return {1, batch, 0, 1};
  if (RowsOfPart(spec, operands, shape) < RowsOfImage(operands, shape)) return {1, batch, 0, 1};
  std::int64_t widened = operands.sums_the_batch ? 0 : WidenedBytes(spec.outputs[0]);
  for (std::size_t i = 0; i < operands.images; ++i) widened += WidenedBytes(spec.inputs[i]);
  const std::int64_t most = operands.sums_the_batch ? std::min(batch, kMostPartialSums) : batch;
  std::int64_t images = PartsOf(batch, std::min(PartsOfWork(shape), most));
  std::int64_t slots = StagedOperation::kMostParts;
  if (widened > 0) {
    images = std::clamp<std::int64_t>(kWidenedBytes / kLeastSlots / widened, 1, images);
    slots = std::clamp(kWidenedBytes / (images * widened), kLeastSlots, slots);
  }
  images = DivisorNear(images, batch);
  const std::int64_t parts = PartsOf(batch, images);
  return {parts, images, batch % images, std::min(slots, parts)};
}

std::int64_t ChannelsOfPart(const ConvolutionShape& shape) {
  const std::int64_t all = shape.out_channels();
  const std::int64_t parts = std::min(MostParts(shape.multiply_adds()), all / kLeastChannels);
  const bool has_groups = shape.weight.size() != 4;
  // A part of the batch stores a sum as large as the weight, which is read and added. A part of the channels reads x
  // and transposes it.
  const std::int64_t sums = 3 * shape.weight_elements(), reads = shape.in_channels() * shape.y_pixels();
  if (has_groups || parts < 2 || sums <= reads) return all;
  return PartsOf(PartsOf(all, parts), kLeastChannels) * kLeastChannels;
}

std::int64_t RowsOfImage(const BatchOperands& operands, const ConvolutionShape& shape) {
  switch (operands.rows) {
    case CutImages::kX:
      return shape.x[2];
    case CutImages::kY:
      return shape.y[2];
    case CutImages::kNone:
      break;
  }
  return 0;
}

std::int64_t RowsOfPart(const KernelSpec& spec, const BatchOperands& operands, const ConvolutionShape& shape) {
  const std::int64_t rows = RowsOfImage(operands, shape);
  const std::int64_t most = operands.sums_the_batch ? SumsOfRows(spec, shape) : StagedOperation::kMostParts;
  const std::int64_t parts = std::min(PartsOfWork(shape), most) / shape.x[0];
  if (parts < 2 || shape.stored_layout != ConvolutionShape::FormatTag::nhwc || WidensImages(spec, operands))
    return rows;
  // Windows that reach beyond an edge by their whole height would leave a part without pixels.
  if (shape.pad_begin[0] >= shape.window_rows() || shape.pad_end[0] >= shape.window_rows()) return rows;
  if (operands.rows == CutImages::kY) return PartsOf(rows, parts);
  // A part begins where a window does, also where windows do not overlap.
  const std::int64_t stride = shape.strides[0];
  return std::min(rows, PartsOf(PartsOf(rows, parts), stride) * stride);
}

KernelSpec PartOf(const KernelSpec& spec, const BatchOperands& operands, std::int64_t images) {
  KernelSpec part = spec;
  for (std::size_t i = 0; i < operands.images; ++i) part.inputs[i].shape[0] = images;
  if (operands.sums_the_batch) {
    part.outputs[0].dtype = DType::kF32;
  } else {
    part.outputs[0].shape[0] = images;
  }
  return part;
}

void AddUpParts(const TensorSpec& sum, StagedOperation& operation) {
  operation.whole = {sum.num_elements(), DType::kF32, sum.dtype, Activation::kNone,
                     std::min<std::int64_t>(std::ssize(operation.parts), kMostPartialSums)};
  const Port first = operation.primitives.front().output;
  const bool agree = std::ranges::all_of(operation.primitives, [&first](const StagedPrimitive& primitive) {
    return primitive.output.wanted == first.wanted;
  });
  if (!agree || first.stored == first.wanted || !IsBlocked(first.wanted)) return;
  operation.whole->layouts = {first.wanted, first.stored};
  for (StagedPrimitive& primitive : operation.primitives) primitive.output.stored = first.wanted;
}

void PrepareShared(std::size_t images, StagedOperation& operation) {
  operation.prepared.resize(operation.primitives.front().inputs.size());
  for (std::size_t i = images; i < operation.prepared.size(); ++i) {
    const Port first = operation.primitives.front().inputs[i];
    const bool is_wanted = first.stored == first.wanted && first.storage == TypeOf(first.wanted);
    const bool agree = std::ranges::all_of(operation.primitives, [&](const StagedPrimitive& other) {
      return other.inputs[i].stored == first.stored && other.inputs[i].wanted == first.wanted;
    });
    if (is_wanted || !agree) continue;
    operation.prepared[i] = first;
    for (StagedPrimitive& primitive : operation.primitives) {
      primitive.inputs[i].stored = first.wanted;
      primitive.inputs[i].storage = TypeOf(first.wanted);
    }
  }
}

StagedOperation InParts(const KernelSpec& spec, const BatchOperands& operands, const BatchCut& cut,
                        const StagedOperation& part, const std::optional<StagedOperation>& rest) {
  StagedOperation operation{part.primitives, {}};
  if (rest) operation.primitives.push_back(rest->primitives.front());
  operation.slots = cut.slots;
  for (std::int64_t i = 0; i < cut.parts; ++i) {
    const auto image = static_cast<std::size_t>(i * cut.images);
    StagedPart& at = operation.parts.emplace_back();
    at.primitive = rest && i + 1 == cut.parts ? 1 : 0;
    at.input_offsets.resize(spec.inputs.size());
    for (std::size_t k = 0; k < operands.images; ++k) at.input_offsets[k] = image * ImageBytes(spec.inputs[k]);
    if (!operands.sums_the_batch) at.output_offset = image * ImageBytes(spec.outputs[0]);
  }
  if (operands.sums_the_batch) AddUpParts(spec.outputs[0], operation);
  PrepareShared(operands.images, operation);
  return operation;
}

}  // namespace mpc::cpu
