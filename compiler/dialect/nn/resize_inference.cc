// Shape inference of resize.
#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/inference_support.h"
#include "kernels/known_attributes.h"

using namespace mlir;

namespace mpc {

// Products of two extents are computed in 64 bits.
static constexpr int64_t largestExtent = int64_t(1) << 30;

// The shape of an image of shape \p input after it is resized to \p height x \p width.
static llvm::Expected<SmallVector<int64_t>> resizedShape(StringRef op, ArrayRef<int64_t> input, int64_t height,
                                                         int64_t width, const Attributes &values) {
  ImageAxes axes = AxesOf(values.Get(attribute::kDataFormat));
  SmallVector<int64_t> result = imageShape(axes, input[axes.batch], input[axes.channel], height, width);
  for (int axis : {axes.height, axes.width})
    for (int64_t extent : {input[axis], result[axis]})
      if (extent < 1 || extent > largestExtent)
        return inferenceError("{0} takes heights and widths of 1 to 2^30 pixels, got {1} from {2}", op,
                              shapeText(result), shapeText(input));
  if (isTooLarge(input) || isTooLarge(result))
    return inferenceError("{0} takes images of at most 2^47 elements, got {1} from {2}", op, shapeText(result),
                          shapeText(input));
  return result;
}

InferredTypes ResizeOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<ResizeOp>(operands));
  Attributes values = toAttributes(dictionary);
  std::vector<int64_t> size = values.GetInts("size");
  if (types[0].getRank() != 4 || size.size() != 2)
    return inferenceError("{0} takes a rank-4 image and a size [height, width], got shape {1} and {2} extents",
                          mnemonic(), shapeText(types[0].getShape()), size.size());
  MPC_ASSIGN_OR_RETURN(result, resizedShape(mnemonic(), types[0].getShape(), size[0], size[1], values));
  return SmallVector<RankedTensorType>{withShape(types[0], result)};
}

InferredTypes ResizeGradOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<ResizeGradOp>(operands));
  Attributes values = toAttributes(dictionary);
  std::vector<int64_t> input = values.GetInts("input_shape");
  if (types[0].getRank() != 4 || input.size() != 4)
    return inferenceError("{0} takes a rank-4 dy and an input_shape of 4 extents, got shape {1} and {2} extents",
                          mnemonic(), shapeText(types[0].getShape()), input.size());
  ImageAxes axes = AxesOf(values.Get(attribute::kDataFormat));
  int64_t height = types[0].getDimSize(axes.height), width = types[0].getDimSize(axes.width);
  MPC_ASSIGN_OR_RETURN(result, resizedShape(mnemonic(), input, height, width, values));
  MPC_RETURN_IF_ERROR(expectShape(mnemonic(), "dy", types[0], result));
  return SmallVector<RankedTensorType>{withShape(types[0], input)};
}

} // namespace mpc
