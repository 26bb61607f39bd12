#include "kernels/cpu/row_parts.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

namespace mpc::cpu {
namespace {

/// The rows of the first image from `row` on, as a part. Nothing where they are none.
std::optional<RowPart> PartAt(const ConvolutionShape& shape, CutImages images, std::int64_t row, std::int64_t count) {
  if (images == CutImages::kY) return RowPart{shape.Rows(row, count), shape.FirstRowOf(row), row};
  std::optional<ConvolutionShape> part = shape.RowsOfX(row, count);
  if (!part) return std::nullopt;
  return RowPart{*std::move(part), row, shape.FirstRowOfYFor(row)};
}

bool NeedOnePrimitive(const ConvolutionShape& a, const ConvolutionShape& b) {
  return a.x == b.x && a.y == b.y && a.pad_begin == b.pad_begin && a.pad_end == b.pad_end;
}

/// Where `row` of images [N, H, W, C] begins, in bytes.
std::size_t OffsetOfRow(const TensorSpec& images, std::int64_t row) {
  const std::size_t row_bytes = images.bytes() / static_cast<std::size_t>(images.shape[0] * images.shape[1]);
  return row_bytes * static_cast<std::size_t>(row);
}

StagedPart PlacesOf(const KernelSpec& spec, const BatchOperands& operands, const RowPart& part) {
  StagedPart places;
  const bool is_grad_input = operands.rows == CutImages::kX;
  places.input_offsets.resize(spec.inputs.size());
  for (std::size_t i = 0; i < operands.images; ++i) {
    const bool is_x = i == 0 && !is_grad_input;
    places.input_offsets[i] = OffsetOfRow(spec.inputs[i], is_x ? part.x_row : part.y_row);
  }
  if (!operands.sums_the_batch) {
    places.output_offset = OffsetOfRow(spec.outputs[0], is_grad_input ? part.x_row : part.y_row);
  }
  return places;
}

/// Whether every primitive takes operands from `images` on as they are stored or prepared.
bool TakesShared(std::size_t images, const StagedOperation& operation) {
  return std::ranges::all_of(operation.primitives, [images](const StagedPrimitive& primitive) {
    return std::all_of(primitive.inputs.begin() + static_cast<std::ptrdiff_t>(images), primitive.inputs.end(),
                       [](const Port& port) { return port.stored == port.wanted; });
  });
}

}  // namespace

std::vector<RowPart> CutRows(const ConvolutionShape& shape, CutImages images, std::int64_t rows) {
  const std::int64_t all = images == CutImages::kX ? shape.x[2] : shape.y[2];
  std::vector<RowPart> parts;
  for (std::int64_t image = 0; image < shape.x[0]; ++image) {
    for (std::int64_t row = 0; row < all; row += rows) {
      std::optional<RowPart> part = RowPart{shape};
      part->shape.x[0] = part->shape.y[0] = 1;
      if (rows < all) part = PartAt(shape, images, row, std::min(rows, all - row));
      if (!part) return {};
      part->x_row += image * shape.x[2];
      part->y_row += image * shape.y[2];
      parts.push_back(*std::move(part));
    }
  }
  return parts;
}

Attempt InRows(const KernelSpec& spec, const BatchOperands& operands, const std::vector<RowPart>& parts,
               const MakePart& make) {
  Attempt attempt;
  StagedOperation& operation = attempt.operation;
  std::vector<ConvolutionShape> primitives;
  for (const RowPart& part : parts) {
    const auto known = std::ranges::find_if(
        primitives, [&part](const ConvolutionShape& other) { return NeedOnePrimitive(other, part.shape); });
    operation.parts.push_back(PlacesOf(spec, operands, part));
    operation.parts.back().primitive = static_cast<std::size_t>(known - primitives.begin());
    if (known != primitives.end()) continue;
    attempt.Add(make(part.shape));
    primitives.push_back(part.shape);
  }
  if (operands.sums_the_batch) AddUpParts(spec.outputs[0], operation);
  PrepareShared(operands.images, operation);
  return attempt;
}

Attempt InRowsOrImages(const KernelSpec& spec, const BatchOperands& operands, const ConvolutionShape& shape,
                       std::int64_t rows, const MakePart& make) {
  const std::vector<RowPart> parts = CutRows(shape, operands.rows, rows);
  try {
    if (!parts.empty()) {
      Attempt attempt = InRows(spec, operands, parts, make);
      if (IsFast(attempt) && TakesShared(operands.images, attempt.operation)) return attempt;
    }
  } catch (const dnnl::error&) {
    // The library may have a primitive for images where it has none for their rows.
  }
  return InRows(spec, operands, CutRows(shape, operands.rows, RowsOfImage(operands, shape)), make);
}

}  // namespace mpc::cpu
