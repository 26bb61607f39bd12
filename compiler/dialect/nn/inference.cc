// Shape inference of convolution, matrix product, pooling, normalisation, softmax and losses.
#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/inference_support.h"
#include "kernels/known_attributes.h"

using namespace mlir;

namespace mpc {

//===-- Matrix work ----------------------------------------------------------------------------------------------===//

InferredTypes MatmulOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<MatmulOp>(operands));
  MPC_RETURN_IF_ERROR(expectRank(mnemonic(), "a", types[0], 2));
  MPC_RETURN_IF_ERROR(expectRank(mnemonic(), "b", types[1], 2));
  MPC_ASSIGN_OR_RETURN(extents, productExtents(mnemonic(), types[0], types[1], toAttributes(dictionary)));
  SmallVector<int64_t> result{extents.first, extents.second};
  if (types.size() == 3)
    MPC_RETURN_IF_ERROR(expectShape(mnemonic(), "a bias", types[2],
                                    types[2].getRank() == 2 ? ArrayRef(result) : ArrayRef(result).drop_front()));
  return SmallVector<RankedTensorType>{RankedTensorType::get(result, promotedType({types[0], types[1]}))};
}

// The window of an operation over an image of shape `input`.
static llvm::Expected<Window> windowOver(StringRef op, ArrayRef<int64_t> input, ImageAxes axes, int64_t kernelHeight,
                                         int64_t kernelWidth, const Attributes &values) {
  return toExpected(op, ResolveWindow(values, {input[axes.height], input[axes.width]}, {kernelHeight, kernelWidth}));
}

// The result shape of a convolution of `input` (in data_format) with a weight of shape OIHW.
static llvm::Expected<SmallVector<int64_t>> convolutionShape(StringRef op, ArrayRef<int64_t> input,
                                                             ArrayRef<int64_t> weight, const Attributes &values) {
  if (input.size() != 4 || weight.size() != 4)
    return inferenceError("{0} takes a rank-4 image and a rank-4 weight, got shapes {1} and {2}", op, shapeText(input),
                          shapeText(weight));
  DataFormat format = values.Get(attribute::kDataFormat);
  ImageAxes axes = AxesOf(format);
  int64_t groups = values.Get(attribute::kGroups), channels = input[axes.channel];
  if (groups < 1 || groups > std::numeric_limits<int32_t>::max() || channels % groups != 0 || weight[0] % groups != 0)
    return inferenceError("{0}: groups = {1} must divide the {2} input and {3} output channels", op, groups, channels,
                          weight[0]);
  if (weight[1] * groups != channels)
    return inferenceError("{0} expects {1} input channels, got {2} (input {3}, {4})", op, weight[1] * groups, channels,
                          shapeText(input), wordOf(format));
  MPC_ASSIGN_OR_RETURN(geometry, windowOver(op, input, axes, weight[2], weight[3], values));
  return imageShape(axes, input[axes.batch], weight[0], geometry.output[0], geometry.output[1]);
}

InferredTypes Conv2dOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<Conv2dOp>(operands));
  MPC_ASSIGN_OR_RETURN(
      result, convolutionShape(mnemonic(), types[0].getShape(), types[1].getShape(), toAttributes(dictionary)));
  return inferConvolution(mnemonic(), types, result, types[1].getDimSize(0));
}

InferredTypes Conv2dStatisticsOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<Conv2dStatisticsOp>(operands));
  MPC_ASSIGN_OR_RETURN(
      result, convolutionShape(mnemonic(), types[0].getShape(), types[1].getShape(), toAttributes(dictionary)));
  RankedTensorType statistic = f32Tensor(types[0].getContext(), {types[1].getDimSize(0)});
  return SmallVector<RankedTensorType>{RankedTensorType::get(result, promotedType({types[0], types[1]})), statistic,
                                       statistic, statistic};
}

InferredTypes Conv2dGradInputOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<Conv2dGradInputOp>(operands));
  Attributes values = toAttributes(dictionary);
  std::vector<int64_t> input = values.GetInts("input_shape");
  MPC_ASSIGN_OR_RETURN(result, convolutionShape(mnemonic(), input, types[1].getShape(), values));
  MPC_RETURN_IF_ERROR(expectShape(mnemonic(), "dy", types[0], result));
  return SmallVector<RankedTensorType>{withShape(types[0], input)};
}

InferredTypes Conv2dGradWeightOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<Conv2dGradWeightOp>(operands));
  Attributes values = toAttributes(dictionary);
  std::vector<int64_t> weight = values.GetInts("weight_shape");
  MPC_ASSIGN_OR_RETURN(result, convolutionShape(mnemonic(), types[0].getShape(), weight, values));
  MPC_RETURN_IF_ERROR(expectShape(mnemonic(), "dy", types[1], result));
  return SmallVector<RankedTensorType>{withShape(types[0], weight)};
}

//===-- Pooling --------------------------------------------------------------------------------------------------===//

static llvm::Expected<SmallVector<int64_t>> poolingShape(StringRef op, ArrayRef<int64_t> input,
                                                         const Attributes &values) {
  std::vector<int64_t> kernel = values.GetInts("kernel_size");
  if (input.size() != 4 || kernel.size() != 2)
    return inferenceError("{0} takes a rank-4 image and kernel_size [height, width], got shape {1} and {2} extents", op,
                          shapeText(input), kernel.size());
  ImageAxes axes = AxesOf(values.Get(attribute::kDataFormat));
  MPC_ASSIGN_OR_RETURN(geometry, windowOver(op, input, axes, kernel[0], kernel[1], values));
  for (int axis : {0, 1})
    if (geometry.pad_begin[axis] >= kernel[axis] || geometry.pad_end[axis] >= kernel[axis])
      return inferenceError("{0}: padding must be smaller than the window of {1}x{2}", op, kernel[0], kernel[1]);
  return imageShape(axes, input[axes.batch], input[axes.channel], geometry.output[0], geometry.output[1]);
}

// Whether i8 tells the elements of a pooling window apart.
static bool windowFitsI8(ArrayRef<int64_t> kernel) { return kernel[0] * kernel[1] <= 128; }

// Verifies the window indices that max_pool2d writes and its gradient reads.
template <typename PoolOp> static LogicalResult verifyWindowIndices(PoolOp op) {
  ArrayRef<int64_t> kernel = op.getKernelSize();
  auto indices = cast<RankedTensorType>(op.getIndices().getType());
  // The verifier of shapes rejects another arity.
  if (kernel.size() != 2 || !indices.getElementType().isInteger(8) || windowFitsI8(kernel))
    return success();
  return op.emitOpError() << "has indices in " << indices << ", which hold a position in a window of at most 128 "
                          << "elements, and a window of " << kernel[0] << "x" << kernel[1] << "; use i32";
}

LogicalResult MaxPool2dOp::verify() { return verifyWindowIndices(*this); }

LogicalResult MaxPool2dGradOp::verify() { return verifyWindowIndices(*this); }

InferredTypes MaxPool2dOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<MaxPool2dOp>(operands));
  MPC_ASSIGN_OR_RETURN(result, poolingShape(mnemonic(), types[0].getShape(), toAttributes(dictionary)));
  unsigned bits = windowFitsI8(toAttributes(dictionary).GetInts("kernel_size")) ? 8 : 32;
  return SmallVector<RankedTensorType>{withShape(types[0], result),
                                       RankedTensorType::get(result, IntegerType::get(types[0].getContext(), bits))};
}

InferredTypes AvgPool2dOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<AvgPool2dOp>(operands));
  MPC_ASSIGN_OR_RETURN(result, poolingShape(mnemonic(), types[0].getShape(), toAttributes(dictionary)));
  return SmallVector<RankedTensorType>{withShape(types[0], result)};
}

static InferredTypes inferPoolingGrad(ArrayRef<RankedTensorType> types, StringRef op, const Attributes &values) {
  std::vector<int64_t> input = values.GetInts("input_shape");
  MPC_ASSIGN_OR_RETURN(result, poolingShape(op, input, values));
  for (RankedTensorType type : types)
    MPC_RETURN_IF_ERROR(expectShape(op, "every operand", type, result));
  return SmallVector<RankedTensorType>{withShape(types[0], input)};
}

InferredTypes MaxPool2dGradOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<MaxPool2dGradOp>(operands));
  return inferPoolingGrad(types, mnemonic(), toAttributes(dictionary));
}

InferredTypes AvgPool2dGradOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<AvgPool2dGradOp>(operands));
  return inferPoolingGrad(types, mnemonic(), toAttributes(dictionary));
}

//===-- Batch normalisation --------------------------------------------------------------------------------------===//

// Checks an image or [N, C] matrix and its per-channel operands; returns the shape of a per-channel tensor.
static llvm::Expected<SmallVector<int64_t>> channelShape(StringRef op, RankedTensorType x, DictionaryAttr dictionary,
                                                         ArrayRef<RankedTensorType> perChannel) {
  if (x.getRank() != 2 && x.getRank() != 4)
    return inferenceError("{0} expects x of rank 2 or 4, got {1}", op, typeText(x));
  int axis = x.getRank() == 2 ? 1 : AxesOf(toAttributes(dictionary).Get(attribute::kDataFormat)).channel;
  SmallVector<int64_t> channels{x.getDimSize(axis)};
  for (RankedTensorType type : perChannel)
    MPC_RETURN_IF_ERROR(expectShape(op, "parameters and statistics", type, channels));
  return channels;
}

// The cotangents of x, gamma and beta, from dy, x, gamma and statistics.
static InferredTypes inferBatchNormGrad(TypeRange operands, DictionaryAttr dictionary, const OperandNames &given) {
  StringRef op = given.op;
  MPC_ASSIGN_OR_RETURN(types, operandTypes(operands, given));
  ArrayRef<RankedTensorType> all(types);
  MPC_ASSIGN_OR_RETURN(channels, channelShape(op, types[1], dictionary, all.drop_front(2)));
  MPC_RETURN_IF_ERROR(expectShape(op, "dy", types[0], types[1].getShape()));
  RankedTensorType parameter = f32Tensor(types[0].getContext(), channels);
  return SmallVector<RankedTensorType>{types[1], parameter, parameter};
}

InferredTypes BatchNormTrainOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<BatchNormTrainOp>(operands));
  ArrayRef<RankedTensorType> all(types);
  MPC_ASSIGN_OR_RETURN(channels, channelShape(mnemonic(), types[0], dictionary, all.drop_front()));
  RankedTensorType statistic = f32Tensor(types[0].getContext(), channels);
  return SmallVector<RankedTensorType>{types[0], statistic, statistic, statistic};
}

InferredTypes BatchNormTrainGradOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  return inferBatchNormGrad(operands, dictionary, operandsOf<BatchNormTrainGradOp>());
}

// The type of x, which is normalised by the other operands.
static InferredTypes inferNormalised(TypeRange operands, DictionaryAttr dictionary, const OperandNames &given) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes(operands, given));
  ArrayRef<RankedTensorType> all(types);
  MPC_ASSIGN_OR_RETURN(channels, channelShape(given.op, types[0], dictionary, all.drop_front()));
  return SmallVector<RankedTensorType>{types[0]};
}

InferredTypes BatchNormApplyOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  return inferNormalised(operands, dictionary, operandsOf<BatchNormApplyOp>());
}

InferredTypes BatchNormInferOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  return inferNormalised(operands, dictionary, operandsOf<BatchNormInferOp>());
}

InferredTypes BatchNormInferGradOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  return inferBatchNormGrad(operands, dictionary, operandsOf<BatchNormInferGradOp>());
}

//===-- Softmax and losses ---------------------------------------------------------------------------------------===//

static InferredTypes inferSoftmax(ArrayRef<RankedTensorType> types, StringRef op, DictionaryAttr dictionary) {
  for (RankedTensorType type : types)
    MPC_RETURN_IF_ERROR(expectShape(op, "every operand", type, types[0].getShape()));
  MPC_ASSIGN_OR_RETURN(axis, normalAxis(op, toAttributes(dictionary).Get(attribute::kLastAxis), types[0].getRank()));
  (void)axis;
  return SmallVector<RankedTensorType>{types[0]};
}

InferredTypes SoftmaxOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<SoftmaxOp>(operands));
  return inferSoftmax(types, mnemonic(), dictionary);
}

InferredTypes LogSoftmaxOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<LogSoftmaxOp>(operands));
  return inferSoftmax(types, mnemonic(), dictionary);
}

InferredTypes SoftmaxGradOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<SoftmaxGradOp>(operands));
  return inferSoftmax(types, mnemonic(), dictionary);
}

InferredTypes LogSoftmaxGradOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<LogSoftmaxGradOp>(operands));
  return inferSoftmax(types, mnemonic(), dictionary);
}

static llvm::Error checkLabels(StringRef op, RankedTensorType logits, RankedTensorType labels) {
  MPC_RETURN_IF_ERROR(expectRank(op, "logits [N, C]", logits, 2));
  ArrayRef<int64_t> expected = logits.getShape();
  bool sparse = !isa<FloatType>(labels.getElementType());
  if (labels.getShape() == (sparse ? expected.take_front(1) : expected))
    return llvm::Error::success();
  return inferenceError("{0}: logits {1} need {2} labels of shape {3}, got {4}{5}", op, typeText(logits),
                        sparse ? "integer" : "floating one-hot", shapeText(sparse ? expected.take_front(1) : expected),
                        typeText(labels), sparse ? "" : " (integer class labels need sparse = true)");
}

static llvm::Error checkClasses(StringRef op, RankedTensorType logits, RankedTensorType labels,
                                DictionaryAttr dictionary) {
  MPC_RETURN_IF_ERROR(checkLabels(op, logits, labels));
  Attributes attributes = toAttributes(dictionary);
  const AttributeValue *given = attributes.Find("classes");
  if (!given)
    return llvm::Error::success();
  int64_t classes = std::get<int64_t>(*given), columns = logits.getDimSize(1);
  if (isa<FloatType>(labels.getElementType()))
    return inferenceError("{0}: classes = {1} is for integer labels, got {2}", op, classes, typeText(labels));
  if (classes < 1 || classes > columns)
    return inferenceError("{0}: classes must be from 1 to {1}, the columns of logits {2}, got {3}", op, columns,
                          typeText(logits), classes);
  return llvm::Error::success();
}

int64_t SoftmaxCrossEntropyOp::countClasses() {
  return getClasses().value_or(cast<RankedTensorType>(getLogits().getType()).getDimSize(1));
}

int64_t SoftmaxCrossEntropyGradOp::countClasses() {
  return getClasses().value_or(cast<RankedTensorType>(getLogits().getType()).getDimSize(1));
}

InferredTypes SoftmaxCrossEntropyOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<SoftmaxCrossEntropyOp>(operands));
  MPC_RETURN_IF_ERROR(checkClasses(mnemonic(), types[0], types[1], dictionary));
  ArrayRef<int64_t> rows = types[0].getShape().take_front(1);
  MLIRContext *context = types[0].getContext();
  return SmallVector<RankedTensorType>{f32Tensor(context, lossShape(dictionary, rows)), f32Tensor(context, rows)};
}

InferredTypes SoftmaxCrossEntropyGradOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<SoftmaxCrossEntropyGradOp>(operands));
  MPC_RETURN_IF_ERROR(checkClasses(mnemonic(), types[1], types[2], dictionary));
  ArrayRef<int64_t> rows = types[1].getShape().take_front(1);
  MPC_RETURN_IF_ERROR(expectShape(mnemonic(), "dloss", types[0], lossShape(dictionary, rows)));
  MPC_RETURN_IF_ERROR(expectShape(mnemonic(), "log_sum_exp", types[3], rows));
  return SmallVector<RankedTensorType>{types[1]};
}

InferredTypes MseOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  return inferElementLoss(operands, dictionary, operandsOf<MseOp>(), "a target");
}

InferredTypes MseGradOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  return inferElementLossGrad(operands, dictionary, operandsOf<MseGradOp>(), "a target");
}

} // namespace mpc
