// How operations that move elements along axes take other axes.
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/tensor_values.h"

using namespace mlir;

namespace mpc {

// The place of \p axis, which may count from the end, in the permutation.
static int64_t placeOf(int64_t axis, ArrayRef<int64_t> permutation) {
  int64_t fromFront = axis < 0 ? axis + int64_t(permutation.size()) : axis;
  return llvm::find(permutation, fromFront) - permutation.begin();
}

void ConcatOp::permuteAxes(ArrayRef<int64_t> permutation) { setAxis(placeOf(int64_t(getAxis()), permutation)); }

void SplitOp::permuteAxes(ArrayRef<int64_t> permutation) { setAxis(placeOf(int64_t(getAxis()), permutation)); }

void SliceOp::permuteAxes(ArrayRef<int64_t> permutation) {
  setStarts(permuted(getStarts(), permutation));
  setSizes(permuted(getSizes(), permutation));
}

void PadOp::permuteAxes(ArrayRef<int64_t> permutation) {
  setLow(permuted(getLow(), permutation));
  setHigh(permuted(getHigh(), permutation));
}

} // namespace mpc
