// A convolution in oneDNN's terms.
#pragma once

#include <cstdint>
#include <dnnl.hpp>
#include <optional>

#include "absl/status/statusor.h"
#include "kernels/kernel_spec.h"

namespace mpc::cpu {

/// Logical dimensions are always NCHW, layouts are strides.
struct ConvolutionShape {
  using FormatTag = dnnl::memory::format_tag;
  using DataType = dnnl::memory::data_type;
  using Layout = dnnl::memory::desc;

  dnnl::memory::dims x, weight, bias, y;
  dnnl::memory::dims strides, dilations, pad_begin, pad_end;
  FormatTag stored_layout;  ///< layout in which x and y are stored
  FormatTag weight_layout;

  /// Resolves the geometry of x, weight [O, C / groups, kh, kw] and y. Errors (INVALID_ARGUMENT): what does not fit.
  static absl::StatusOr<ConvolutionShape> Create(const KernelSpec& spec, const Shape& x, const Shape& weight,
                                                 const Shape& y);

  Layout X(DataType type, FormatTag layout) const { return {x, type, layout}; }
  Layout Y(DataType type, FormatTag layout) const { return {y, type, layout}; }
  Layout Weight(DataType type) const { return {weight, type, weight_layout}; }
  Layout AnyWeight(DataType type) const { return {weight, type, FormatTag::any}; }
  Layout Bias(DataType type) const { return {bias, type, FormatTag::x}; }

  /// True for 3x3 windows of stride 1 with so many channels that transforming tiles costs less than it saves. See Lavin
  /// and Gray 2016, "Fast algorithms for convolutional neural networks". docs/tuning.md says how much more it rounds.
  bool SuitsWinograd() const;
  /// True for 1x1 windows over channels-last storage, where y [pixels, O] = x [pixels, C] weight^T.
  bool IsProduct() const;
  /// True for many channels of few pixels, where weights are most of what is read.
  bool IsDeep() const;

  /// Extents of the matrices, where the convolution is a product.
  std::int64_t pixels() const { return x[0] * x[2] * x[3]; }
  std::int64_t in_channels() const { return x[1]; }
  std::int64_t out_channels() const { return y[1]; }

  std::int64_t window_rows() const { return (weight[weight.size() - 2] - 1) * (dilations[0] + 1) + 1; }
  /// The part of an image that `count` rows of y from `row` on are computed from, as a convolution of its own.
  ConvolutionShape Rows(std::int64_t row, std::int64_t count) const;
  /// The first row of x that it reads.
  std::int64_t FirstRowOf(std::int64_t row) const;
  /// `count` rows of x from `row` on, with all rows of y whose windows reach them, as a convolution of its own. Nothing
  /// where there are no such rows of y, or where the first of them lies below the first row of x.
  std::optional<ConvolutionShape> RowsOfX(std::int64_t row, std::int64_t count) const;
  /// The first row of y whose window reaches `row` of x.
  std::int64_t FirstRowOfYFor(std::int64_t row) const;

  std::int64_t weight_elements() const;
  std::int64_t y_pixels() const { return y[0] * y[2] * y[3]; }  ///< pixels of all images
  /// Padding counts as pixels do.
  std::int64_t multiply_adds() const { return weight_elements() * y_pixels(); }
};

}  // namespace mpc::cpu
