#include "compiler/dialect/fusible_space.h"

#include "compiler/dialect/inference_support.h"

using namespace mlir;

namespace mpc {

llvm::Error unfit(Operation *Op, const llvm::Twine &Why) {
  return llvm::createStringError(Op->getName().getStringRef() + ": " + Why);
}

static bool isLastAxis(ArrayRef<int64_t> Shape, int64_t Axis) {
  return llvm::all_of(Shape.drop_front(Axis + 1), [](int64_t Extent) { return Extent == 1; });
}

llvm::Expected<int64_t> lastAxisLength(Operation *Op, Value X, int64_t Axis) {
  ArrayRef<int64_t> Shape = tensorType(X).getShape();
  int64_t Normal = Axis < 0 ? Axis + int64_t(Shape.size()) : Axis;
  if (!isLastAxis(Shape, Normal))
    return unfit(
        Op, llvm::formatv("its axis {0} is not the last of {1}; rows are contiguous", Normal, typeText(X.getType())));
  return Shape[Normal];
}

llvm::Expected<int64_t> lastAxisChannels(Operation *Op, Value X, StringRef DataFormat) {
  ArrayRef<int64_t> Shape = tensorType(X).getShape();
  int64_t Axis = Shape.size() == 4 && DataFormat == "NHWC" ? 3 : 1;
  if (!isLastAxis(Shape, Axis))
    return unfit(Op, llvm::formatv("the channels of {0} are axis {1}; they must be the last, as in NHWC",
                                   typeText(X.getType()), Axis));
  return Shape[Axis];
}

float lossDivisor(StringRef Reduction, int64_t Count) { return Reduction == "mean" ? static_cast<float>(Count) : 1.0f; }

} // namespace mpc
