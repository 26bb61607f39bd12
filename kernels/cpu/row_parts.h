// Convolutions over few images in parts of their rows, each for one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/cpu/batch_parts.h"
#include "kernels/cpu/convolution_shape.h"
#include "kernels/cpu/onednn_common.h"

namespace mpc::cpu {

/// A part of an image's rows as a convolution of its own, and where its rows begin. Rows are counted over all images.
struct RowPart {
  ConvolutionShape shape;
  std::int64_t x_row = 0, y_row = 0;
};

/// Each image in parts of `rows` rows of x or of y, in their order. A part of all rows is the image. Empty where rows
/// of x are no convolution of their own (ConvolutionShape::RowsOfX).
std::vector<RowPart> CutRows(const ConvolutionShape& shape, CutImages images, std::int64_t rows);

/// The attempt for one primitive, as a convolution of `shape`.
using MakePart = std::function<Attempt(const ConvolutionShape& shape)>;

/// The operation of `spec`, stored channels-last, in these parts. Sums are added in f32 and rounded once; `make` leaves
/// a summand in f32.
Attempt InRows(const KernelSpec& spec, const BatchOperands& operands, const std::vector<RowPart>& parts,
               const MakePart& make);

/// The same in parts of `rows` rows. Each image is a part where a primitive of those is slow, or where they want an
/// operand that they share differently.
Attempt InRowsOrImages(const KernelSpec& spec, const BatchOperands& operands, const ConvolutionShape& shape,
                       std::int64_t rows, const MakePart& make);

}  // namespace mpc::cpu
