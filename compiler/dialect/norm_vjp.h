// Shared by the derivative rules of normalisations by statistics of x, which are results of theirs.
#pragma once

#include "compiler/dialect/gradient_vjp.h"

namespace mpc {

/// How a normalisation sees x: in lines whose elements share a mean. Other tensors are stretched over it.
struct NormLayout {
  /// Each line is what lies in the axes of \p gamma, the last ones.
  static NormLayout ofTrailingAxes(mlir::Value x, mlir::Value gamma);
  /// Each line is a group of channels of an image.
  static NormLayout ofGroups(mlir::Value x, int64_t groups, DataFormat format);
  /// Each line is a channel of a batch.
  static NormLayout ofChannels(mlir::Value x, DataFormat format);

  llvm::SmallVector<int64_t> shape;      ///< that of x, with an axis of groups where there are groups
  llvm::SmallVector<int64_t> lineAxes;   ///< axes of `shape` along which elements share a mean
  llvm::SmallVector<int64_t> parameters; ///< the shape in which gamma and beta broadcast to `shape`
  llvm::SmallVector<int64_t> statistics; ///< the shape in which the mean and inv_std broadcast to `shape`
  int64_t count = 1;                     ///< elements of a line
};

/// A normalisation's x, gamma and statistics in the shapes of a layout, and arithmetic on them in the accumulator's
/// type.
class NormArithmetic : public WideArithmetic {
public:
  NormArithmetic(mlir::OpBuilder &builder, mlir::Location loc, const NormLayout &layout, mlir::Value x)
      : WideArithmetic(builder, loc, reshapeTo(builder, loc, x, layout.shape)), builder(builder), loc(loc),
        layout(layout) {}

  mlir::Value inFull(mlir::Value v) { return v ? reshapeTo(builder, loc, v, layout.shape) : v; }
  mlir::Value inLines(mlir::Value v) { return v ? reshapeTo(builder, loc, v, layout.statistics) : v; }
  mlir::Value inParameters(mlir::Value v) { return v ? reshapeTo(builder, loc, v, layout.parameters) : v; }
  /// The mean of each line, which broadcasts.
  mlir::Value lineMean(mlir::Value full);
  /// A cotangent of the type of \p like: \p full itself, or its sum over what shares an element of \p like.
  mlir::Value cotangentOf(mlir::Value like, mlir::Value full, llvm::ArrayRef<int64_t> shape);

private:
  mlir::OpBuilder &builder;
  mlir::Location loc;
  const NormLayout &layout;
};

/// The cotangent of x by those of its statistics, of which one at least is there. n elements share a mean:
/// dx = (dmean - (x - mean) inv_std^3 dinv_std) / n.
template <typename NormOp>
mlir::Value statisticsCotangent(NormOp norm, const NormLayout &layout, mlir::OpBuilder &builder, mlir::Value dMean,
                                mlir::Value dInvStd) {
  NormArithmetic wide(builder, norm.getLoc(), layout, norm.getX());
  mlir::Value total = wide.inLines(dMean);
  if (dInvStd) {
    mlir::Value inverse = wide.inLines(norm.getInvStd()), mean = wide.inLines(norm.getMean());
    mlir::Value deviation = wide.minus(wide.inFull(norm.getX()), mean);
    mlir::Value cubed = wide.times(wide.times(wide.times(deviation, inverse), inverse), inverse);
    mlir::Value byDeviation = wide.times(cubed, wide.inLines(dInvStd));
    total = total ? wide.minus(total, byDeviation) : wide.negated(byDeviation);
  }
  return wide.cotangentOf(norm.getX(), wide.overCount(total, layout.count), layout.shape);
}

/// The operands of the derivative of a normalisation, and the cotangents of its results. Null ones are zero.
struct NormGradValues {
  mlir::Value dy, x, gamma, mean, inverse;
  mlir::Value ofDx, ofDgamma, ofDbeta;
};

/// The cotangents of the five operands. The statistics count as constants beside x; they have their own.
Cotangents normGradCotangents(const NormGradValues &values, const NormLayout &layout, mlir::OpBuilder &builder,
                              mlir::Location loc, llvm::ArrayRef<bool> needed);

template <typename GradientOp>
Cotangents normGradCotangents(GradientOp op, const NormLayout &layout, mlir::OpBuilder &builder, mlir::ValueRange c,
                              llvm::ArrayRef<bool> needed) {
  return normGradCotangents({op.getDy(), op.getX(), op.getGamma(), op.getMean(), op.getInvStd(), c[0], c[1], c[2]},
                            layout, builder, op.getLoc(), needed);
}

} // namespace mpc
