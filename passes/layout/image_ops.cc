#include "passes/layout/image_ops.h"

using namespace mlir;

namespace mpc {

static int64_t rankOf(Value v) { return cast<RankedTensorType>(v.getType()).getRank(); }

ImageOpInterface channelsFirstImages(Operation *op) {
  auto images = dyn_cast<ImageOpInterface>(op);
  if (!images || rankOf(op->getOperand(0)) != 4)
    return nullptr;
  return images.getDataFormat() == DataFormat::kNCHW ? images : nullptr;
}

bool reducesChannelsLast(ReductionOpInterface op, SmallVectorImpl<int64_t> &axes) {
  if (rankOf(op->getOperand(0)) != 4)
    return false;
  ArrayRef<int64_t> original = op.getAxes();
  axes.clear();
  for (int64_t axis : original)
    axes.push_back(toChannelsFirst[axis]);
  llvm::sort(axes);
  if (axes.empty() || op.getKeepDims())
    return true;
  SmallVector<int64_t> kept;
  for (int64_t axis = 0; axis < 4; ++axis)
    if (!llvm::is_contained(original, axis))
      kept.push_back(toChannelsFirst[axis]);
  return llvm::is_sorted(kept);
}

bool isFreePermutation(ArrayRef<int64_t> extents, ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> moved;
  for (int64_t axis : permutation)
    if (extents[axis] != 1)
      moved.push_back(axis);
  return llvm::is_sorted(moved);
}

} // namespace mpc
