#include "compiler/dialect/fusible_space.h"

#include "compiler/dialect/inference_support.h"

using namespace mlir;

namespace mpc {

llvm::Error unfit(Operation *op, const llvm::Twine &why) {
  return llvm::createStringError(op->getName().getStringRef() + ": " + why);
}

static bool isLastAxis(ArrayRef<int64_t> shape, int64_t axis) {
  return llvm::all_of(shape.drop_front(axis + 1), [](int64_t extent) { return extent == 1; });
}

llvm::Expected<int64_t> lastAxisLength(Operation *op, Value x, int64_t axis) {
  ArrayRef<int64_t> shape = tensorType(x).getShape();
  int64_t normal = axis < 0 ? axis + int64_t(shape.size()) : axis;
  if (!isLastAxis(shape, normal))
    return unfit(
        op, llvm::formatv("its axis {0} is not the last of {1}; rows are contiguous", normal, typeText(x.getType())));
  return shape[normal];
}

llvm::Expected<int64_t> lastAxisChannels(Operation *op, Value x, DataFormat dataFormat) {
  ArrayRef<int64_t> shape = tensorType(x).getShape();
  int64_t axis = shape.size() == 4 && dataFormat == DataFormat::kNHWC ? 3 : 1;
  if (!isLastAxis(shape, axis))
    return unfit(op, llvm::formatv("the channels of {0} are axis {1}; they must be the last, as in NHWC",
                                   typeText(x.getType()), axis));
  return shape[axis];
}

float lossDivisor(LossReduction reduction, int64_t count) {
  return reduction == LossReduction::kMean ? static_cast<float>(count) : 1.0f;
}

} // namespace mpc
