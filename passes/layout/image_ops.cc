#include "passes/layout/image_ops.h"

using namespace mlir;

namespace mpc {

static int64_t rankOf(Value v) { return cast<RankedTensorType>(v.getType()).getRank(); }

ImageOpInterface channelsFirstImages(Operation *op) {
  auto images = dyn_cast<ImageOpInterface>(op);
  if (!images || rankOf(op->getOperand(0)) != 4)
    return nullptr;
  auto format = op->getAttrOfType<DataFormatAttr>("data_format");
  return format && format.getValue() != DataFormat::kNCHW ? nullptr : images;
}

void makeAxesChannelsLast(Operation *op) {
  auto makeList = [&](StringRef name) {
    auto list = op->getAttrOfType<DenseI64ArrayAttr>(name).asArrayRef();
    op->setAttr(name, DenseI64ArrayAttr::get(op->getContext(), permuted(list, toChannelsLast)));
  };
  if (isa<SliceOp>(op)) {
    makeList("starts");
    return makeList("sizes");
  }
  if (isa<PadOp>(op)) {
    makeList("low");
    return makeList("high");
  }
  auto axis = op->getAttrOfType<IntegerAttr>("axis");
  int64_t original = axis ? axis.getInt() : 0;
  int64_t moved = toChannelsFirst[original < 0 ? original + 4 : original];
  op->setAttr("axis", IntegerAttr::get(IntegerType::get(op->getContext(), 64), moved));
}

bool reducesChannelsLast(Operation *op, SmallVectorImpl<int64_t> &axes) {
  if (!has<Property::Reduction>(op) || rankOf(op->getOperand(0)) != 4)
    return false;
  auto original = op->getAttrOfType<DenseI64ArrayAttr>("axes").asArrayRef();
  auto keepDims = op->getAttrOfType<BoolAttr>("keep_dims");
  axes.clear();
  for (int64_t axis : original)
    axes.push_back(toChannelsFirst[axis]);
  llvm::sort(axes);
  if (axes.empty() || (keepDims && keepDims.getValue()))
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
