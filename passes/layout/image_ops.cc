#include "passes/layout/image_ops.h"

using namespace mlir;

namespace mpc {

static int64_t rankOf(Value V) { return cast<RankedTensorType>(V.getType()).getRank(); }

ImageOpInterface channelsFirstImages(Operation *Op) {
  auto Images = dyn_cast<ImageOpInterface>(Op);
  if (!Images || rankOf(Op->getOperand(0)) != 4)
    return nullptr;
  auto Format = Op->getAttrOfType<StringAttr>("data_format");
  return Format && Format != "NCHW" ? nullptr : Images;
}

void makeAxesChannelsLast(Operation *Op) {
  auto MakeList = [&](StringRef Name) {
    auto List = Op->getAttrOfType<DenseI64ArrayAttr>(Name).asArrayRef();
    Op->setAttr(Name, DenseI64ArrayAttr::get(Op->getContext(), permuted(List, ToChannelsLast)));
  };
  if (isa<SliceOp>(Op)) {
    MakeList("starts");
    return MakeList("sizes");
  }
  if (isa<PadOp>(Op)) {
    MakeList("low");
    return MakeList("high");
  }
  auto Axis = Op->getAttrOfType<IntegerAttr>("axis");
  int64_t Original = Axis ? Axis.getInt() : 0;
  int64_t Moved = ToChannelsFirst[Original < 0 ? Original + 4 : Original];
  Op->setAttr("axis", IntegerAttr::get(IntegerType::get(Op->getContext(), 64), Moved));
}

bool reducesChannelsLast(Operation *Op, SmallVectorImpl<int64_t> &Axes) {
  if (!has<Property::Reduction>(Op) || rankOf(Op->getOperand(0)) != 4)
    return false;
  auto Original = Op->getAttrOfType<DenseI64ArrayAttr>("axes").asArrayRef();
  auto KeepDims = Op->getAttrOfType<BoolAttr>("keep_dims");
  Axes.clear();
  for (int64_t Axis : Original)
    Axes.push_back(ToChannelsFirst[Axis]);
  llvm::sort(Axes);
  if (Axes.empty() || (KeepDims && KeepDims.getValue()))
    return true;
  SmallVector<int64_t> Kept;
  for (int64_t Axis = 0; Axis < 4; ++Axis)
    if (!llvm::is_contained(Original, Axis))
      Kept.push_back(ToChannelsFirst[Axis]);
  return llvm::is_sorted(Kept);
}

bool isFreePermutation(ArrayRef<int64_t> Extents, ArrayRef<int64_t> Permutation) {
  SmallVector<int64_t> Moved;
  for (int64_t Axis : Permutation)
    if (Extents[Axis] != 1)
      Moved.push_back(Axis);
  return llvm::is_sorted(Moved);
}

} // namespace mpc
