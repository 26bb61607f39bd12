// Shape inference of convolution, matrix product, pooling, normalisation, softmax and losses.
#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/inference_support.h"

using namespace mlir;

namespace mpc {

//===-- Matrix work ----------------------------------------------------------------------------------------------===//

InferredTypes MatmulOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "matmul", {"a", "b", "bias?"}));
  MPC_RETURN_IF_ERROR(expectRank("matmul", "a", Types[0], 2));
  MPC_RETURN_IF_ERROR(expectRank("matmul", "b", Types[1], 2));
  MPC_ASSIGN_OR_RETURN(Extents, productExtents("matmul", Types[0], Types[1], toAttributes(Dictionary)));
  SmallVector<int64_t> Result{Extents.first, Extents.second};
  if (Types.size() == 3)
    MPC_RETURN_IF_ERROR(expectShape("matmul", "a bias", Types[2],
                                    Types[2].getRank() == 2 ? ArrayRef(Result) : ArrayRef(Result).drop_front()));
  return SmallVector<RankedTensorType>{RankedTensorType::get(Result, promotedType({Types[0], Types[1]}))};
}

// The window of an operation over an image of shape `Input`.
static llvm::Expected<Window> windowOver(StringRef Op, ArrayRef<int64_t> Input, ImageAxes Axes, int64_t KernelHeight,
                                         int64_t KernelWidth, const Attributes &Values) {
  return toExpected(Op, ResolveWindow(Values, {Input[Axes.height], Input[Axes.width]}, {KernelHeight, KernelWidth}));
}

// The result shape of a convolution of `input` (in data_format) with a weight of shape OIHW.
static llvm::Expected<SmallVector<int64_t>> convolutionShape(StringRef Op, ArrayRef<int64_t> Input,
                                                             ArrayRef<int64_t> Weight, const Attributes &Values) {
  if (Input.size() != 4 || Weight.size() != 4)
    return inferenceError("{0} takes a rank-4 image and a rank-4 weight, got shapes {1} and {2}", Op, shapeText(Input),
                          shapeText(Weight));
  std::string Format = Values.GetString("data_format", "NCHW");
  ImageAxes Axes = AxesOf(Format);
  int64_t Groups = Values.GetInt("groups", 1), Channels = Input[Axes.channel];
  if (Groups < 1 || Groups > std::numeric_limits<int32_t>::max() || Channels % Groups != 0 || Weight[0] % Groups != 0)
    return inferenceError("{0}: groups = {1} must divide the {2} input and {3} output channels", Op, Groups, Channels,
                          Weight[0]);
  if (Weight[1] * Groups != Channels)
    return inferenceError("{0} expects {1} input channels, got {2} (input {3}, {4})", Op, Weight[1] * Groups, Channels,
                          shapeText(Input), Format);
  MPC_ASSIGN_OR_RETURN(Geometry, windowOver(Op, Input, Axes, Weight[2], Weight[3], Values));
  return imageShape(Axes, Input[Axes.batch], Weight[0], Geometry.output[0], Geometry.output[1]);
}

InferredTypes Conv2dOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "conv2d", {"x", "weight", "bias?"}));
  MPC_ASSIGN_OR_RETURN(Result,
                       convolutionShape("conv2d", Types[0].getShape(), Types[1].getShape(), toAttributes(Dictionary)));
  return inferConvolution("conv2d", Types, Result, Types[1].getDimSize(0));
}

InferredTypes Conv2dStatisticsOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "conv2d_statistics", {"x", "weight"}));
  MPC_ASSIGN_OR_RETURN(Result, convolutionShape("conv2d_statistics", Types[0].getShape(), Types[1].getShape(),
                                                toAttributes(Dictionary)));
  RankedTensorType Statistic = f32Tensor(Types[0].getContext(), {Types[1].getDimSize(0)});
  return SmallVector<RankedTensorType>{RankedTensorType::get(Result, promotedType({Types[0], Types[1]})), Statistic,
                                       Statistic, Statistic};
}

InferredTypes Conv2dGradInputOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "conv2d_grad_input", {"dy", "weight"}));
  Attributes Values = toAttributes(Dictionary);
  std::vector<int64_t> Input = Values.GetInts("input_shape");
  MPC_ASSIGN_OR_RETURN(Result, convolutionShape("conv2d_grad_input", Input, Types[1].getShape(), Values));
  MPC_RETURN_IF_ERROR(expectShape("conv2d_grad_input", "dy", Types[0], Result));
  return SmallVector<RankedTensorType>{withShape(Types[0], Input)};
}

InferredTypes Conv2dGradWeightOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "conv2d_grad_weight", {"x", "dy"}));
  Attributes Values = toAttributes(Dictionary);
  std::vector<int64_t> Weight = Values.GetInts("weight_shape");
  MPC_ASSIGN_OR_RETURN(Result, convolutionShape("conv2d_grad_weight", Types[0].getShape(), Weight, Values));
  MPC_RETURN_IF_ERROR(expectShape("conv2d_grad_weight", "dy", Types[1], Result));
  return SmallVector<RankedTensorType>{withShape(Types[0], Weight)};
}

//===-- Pooling --------------------------------------------------------------------------------------------------===//

static llvm::Expected<SmallVector<int64_t>> poolingShape(StringRef Op, ArrayRef<int64_t> Input,
                                                         const Attributes &Values) {
  std::vector<int64_t> Kernel = Values.GetInts("kernel_size");
  if (Input.size() != 4 || Kernel.size() != 2)
    return inferenceError("{0} takes a rank-4 image and kernel_size [height, width], got shape {1} and {2} extents", Op,
                          shapeText(Input), Kernel.size());
  ImageAxes Axes = AxesOf(Values.GetString("data_format", "NCHW"));
  MPC_ASSIGN_OR_RETURN(Geometry, windowOver(Op, Input, Axes, Kernel[0], Kernel[1], Values));
  for (int Axis : {0, 1})
    if (Geometry.pad_begin[Axis] >= Kernel[Axis] || Geometry.pad_end[Axis] >= Kernel[Axis])
      return inferenceError("{0}: padding must be smaller than the window of {1}x{2}", Op, Kernel[0], Kernel[1]);
  return imageShape(Axes, Input[Axes.batch], Input[Axes.channel], Geometry.output[0], Geometry.output[1]);
}

// Whether i8 tells the elements of a pooling window apart.
static bool windowFitsI8(ArrayRef<int64_t> Kernel) { return Kernel[0] * Kernel[1] <= 128; }

// Verifies the window indices that max_pool2d writes and its gradient reads.
template <typename PoolOp> static LogicalResult verifyWindowIndices(PoolOp Op) {
  ArrayRef<int64_t> Kernel = Op.getKernelSize();
  auto Indices = cast<RankedTensorType>(Op.getIndices().getType());
  // The verifier of shapes rejects another arity.
  if (Kernel.size() != 2 || !Indices.getElementType().isInteger(8) || windowFitsI8(Kernel))
    return success();
  return Op.emitOpError() << "has indices in " << Indices << ", which hold a position in a window of at most 128 "
                          << "elements, and a window of " << Kernel[0] << "x" << Kernel[1] << "; use i32";
}

LogicalResult MaxPool2dOp::verify() { return verifyWindowIndices(*this); }

LogicalResult MaxPool2dGradOp::verify() { return verifyWindowIndices(*this); }

InferredTypes MaxPool2dOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "max_pool2d", {"x"}));
  MPC_ASSIGN_OR_RETURN(Result, poolingShape("max_pool2d", Types[0].getShape(), toAttributes(Dictionary)));
  unsigned Bits = windowFitsI8(toAttributes(Dictionary).GetInts("kernel_size")) ? 8 : 32;
  return SmallVector<RankedTensorType>{withShape(Types[0], Result),
                                       RankedTensorType::get(Result, IntegerType::get(Types[0].getContext(), Bits))};
}

InferredTypes AvgPool2dOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "avg_pool2d", {"x"}));
  MPC_ASSIGN_OR_RETURN(Result, poolingShape("avg_pool2d", Types[0].getShape(), toAttributes(Dictionary)));
  return SmallVector<RankedTensorType>{withShape(Types[0], Result)};
}

static InferredTypes inferPoolingGrad(ArrayRef<RankedTensorType> Types, StringRef Op, const Attributes &Values) {
  std::vector<int64_t> Input = Values.GetInts("input_shape");
  MPC_ASSIGN_OR_RETURN(Result, poolingShape(Op, Input, Values));
  for (RankedTensorType Type : Types)
    MPC_RETURN_IF_ERROR(expectShape(Op, "every operand", Type, Result));
  return SmallVector<RankedTensorType>{withShape(Types[0], Input)};
}

InferredTypes MaxPool2dGradOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "max_pool2d_grad", {"dy", "indices"}));
  return inferPoolingGrad(Types, "max_pool2d_grad", toAttributes(Dictionary));
}

InferredTypes AvgPool2dGradOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "avg_pool2d_grad", {"dy"}));
  return inferPoolingGrad(Types, "avg_pool2d_grad", toAttributes(Dictionary));
}

//===-- Batch normalisation --------------------------------------------------------------------------------------===//

// Checks an image or [N, C] matrix and its per-channel operands; returns the shape of a per-channel tensor.
static llvm::Expected<SmallVector<int64_t>> channelShape(StringRef Op, RankedTensorType X, DictionaryAttr Dictionary,
                                                         ArrayRef<RankedTensorType> PerChannel) {
  if (X.getRank() != 2 && X.getRank() != 4)
    return inferenceError("{0} expects x of rank 2 or 4, got {1}", Op, typeText(X));
  int Axis = X.getRank() == 2 ? 1 : AxesOf(toAttributes(Dictionary).GetString("data_format", "NCHW")).channel;
  SmallVector<int64_t> Channels{X.getDimSize(Axis)};
  for (RankedTensorType Type : PerChannel)
    MPC_RETURN_IF_ERROR(expectShape(Op, "parameters and statistics", Type, Channels));
  return Channels;
}

// The cotangents of x, gamma and beta, from dy, x, gamma and statistics.
static InferredTypes inferBatchNormGrad(TypeRange Operands, DictionaryAttr Dictionary, StringRef Op,
                                        ArrayRef<StringRef> Names) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, Op, Names));
  ArrayRef<RankedTensorType> All(Types);
  MPC_ASSIGN_OR_RETURN(Channels, channelShape(Op, Types[1], Dictionary, All.drop_front(2)));
  MPC_RETURN_IF_ERROR(expectShape(Op, "dy", Types[0], Types[1].getShape()));
  RankedTensorType Parameter = f32Tensor(Types[0].getContext(), Channels);
  return SmallVector<RankedTensorType>{Types[1], Parameter, Parameter};
}

InferredTypes BatchNormTrainOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "batch_norm_train", {"x", "gamma", "beta"}));
  ArrayRef<RankedTensorType> All(Types);
  MPC_ASSIGN_OR_RETURN(Channels, channelShape("batch_norm_train", Types[0], Dictionary, All.drop_front()));
  RankedTensorType Statistic = f32Tensor(Types[0].getContext(), Channels);
  return SmallVector<RankedTensorType>{Types[0], Statistic, Statistic, Statistic};
}

InferredTypes BatchNormTrainGradOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  return inferBatchNormGrad(Operands, Dictionary, "batch_norm_train_grad", {"dy", "x", "gamma", "mean", "inv_std"});
}

InferredTypes BatchNormInferOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "batch_norm_infer", {"x", "gamma", "beta", "mean", "variance"}));
  ArrayRef<RankedTensorType> All(Types);
  MPC_ASSIGN_OR_RETURN(Channels, channelShape("batch_norm_infer", Types[0], Dictionary, All.drop_front()));
  return SmallVector<RankedTensorType>{Types[0]};
}

InferredTypes BatchNormInferGradOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  return inferBatchNormGrad(Operands, Dictionary, "batch_norm_infer_grad", {"dy", "x", "gamma", "mean", "variance"});
}

//===-- Softmax and losses ---------------------------------------------------------------------------------------===//

static InferredTypes inferSoftmax(ArrayRef<RankedTensorType> Types, StringRef Op, DictionaryAttr Dictionary) {
  for (RankedTensorType Type : Types)
    MPC_RETURN_IF_ERROR(expectShape(Op, "every operand", Type, Types[0].getShape()));
  MPC_ASSIGN_OR_RETURN(Axis, normalAxis(Op, toAttributes(Dictionary).GetInt("axis", -1), Types[0].getRank()));
  (void)Axis;
  return SmallVector<RankedTensorType>{Types[0]};
}

InferredTypes SoftmaxOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "softmax", {"x"}));
  return inferSoftmax(Types, "softmax", Dictionary);
}

InferredTypes LogSoftmaxOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "log_softmax", {"x"}));
  return inferSoftmax(Types, "log_softmax", Dictionary);
}

InferredTypes SoftmaxGradOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "softmax_grad", {"dy", "y"}));
  return inferSoftmax(Types, "softmax_grad", Dictionary);
}

InferredTypes LogSoftmaxGradOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "log_softmax_grad", {"dy", "y"}));
  return inferSoftmax(Types, "log_softmax_grad", Dictionary);
}

static llvm::Error checkLabels(StringRef Op, RankedTensorType Logits, RankedTensorType Labels) {
  MPC_RETURN_IF_ERROR(expectRank(Op, "logits [N, C]", Logits, 2));
  ArrayRef<int64_t> Expected = Logits.getShape();
  bool Sparse = !isa<FloatType>(Labels.getElementType());
  if (Labels.getShape() == (Sparse ? Expected.take_front(1) : Expected))
    return llvm::Error::success();
  return inferenceError("{0}: logits {1} need {2} labels of shape {3}, got {4}{5}", Op, typeText(Logits),
                        Sparse ? "integer" : "floating one-hot", shapeText(Sparse ? Expected.take_front(1) : Expected),
                        typeText(Labels), Sparse ? "" : " (integer class labels need sparse = true)");
}

InferredTypes SoftmaxCrossEntropyOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "softmax_cross_entropy", {"logits", "labels"}));
  MPC_RETURN_IF_ERROR(checkLabels("softmax_cross_entropy", Types[0], Types[1]));
  ArrayRef<int64_t> Rows = Types[0].getShape().take_front(1);
  MLIRContext *Context = Types[0].getContext();
  return SmallVector<RankedTensorType>{f32Tensor(Context, lossShape(Dictionary, Rows)), f32Tensor(Context, Rows)};
}

InferredTypes SoftmaxCrossEntropyGradOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  StringRef Name = "softmax_cross_entropy_grad";
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, Name, {"dloss", "logits", "labels", "log_sum_exp"}));
  MPC_RETURN_IF_ERROR(checkLabels(Name, Types[1], Types[2]));
  ArrayRef<int64_t> Rows = Types[1].getShape().take_front(1);
  MPC_RETURN_IF_ERROR(expectShape(Name, "dloss", Types[0], lossShape(Dictionary, Rows)));
  MPC_RETURN_IF_ERROR(expectShape(Name, "log_sum_exp", Types[3], Rows));
  return SmallVector<RankedTensorType>{Types[1]};
}

InferredTypes MseOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  return inferElementLoss(Operands, Dictionary, "mse", {"prediction", "target"}, "a target");
}

InferredTypes MseGradOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  return inferElementLossGrad(Operands, Dictionary, "mse_grad", {"dloss", "prediction", "target"}, "a target");
}

} // namespace mpc
