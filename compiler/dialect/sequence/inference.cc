// Shape inference of batched matrix work, attention, recurrent cells, transposed convolution, layer and group
// normalisation, binary cross-entropy.
#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/inference_support.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace mpc {

static int64_t elementsOf(ArrayRef<int64_t> Extents) {
  int64_t Count = 1;
  for (int64_t Extent : Extents)
    Count *= Extent;
  return Count;
}

//===-- Matrix work ----------------------------------------------------------------------------------------------===//

InferredTypes BatchMatmulOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "batch_matmul", {"a", "b"}));
  RankedTensorType A = Types[0], B = Types[1];
  int64_t Rank = A.getRank();
  if (Rank < 3 || B.getRank() != Rank)
    return inferenceError("batch_matmul expects a and b of one rank, at least 3, got {0} and {1}; matmul takes "
                          "matrices",
                          typeText(A), typeText(B));
  ArrayRef<int64_t> Leading = A.getShape().drop_back(2);
  if (Leading != B.getShape().drop_back(2))
    return inferenceError("batch_matmul of {0} and {1}: the leading extents {2} and {3} differ; broadcast_to makes "
                          "them equal",
                          typeText(A), typeText(B), shapeText(Leading), shapeText(B.getShape().drop_back(2)));
  MPC_ASSIGN_OR_RETURN(Extents, productExtents("batch_matmul", A, B, toAttributes(Dictionary)));
  SmallVector<int64_t> Result(Leading);
  Result.append({Extents.first, Extents.second});
  return SmallVector<RankedTensorType>{RankedTensorType::get(Result, promotedType({A, B}))};
}

//===-- Attention ------------------------------------------------------------------------------------------------===//

// Checks query [B, H, T, D], key [B, H, S, D], value [B, H, S, E] and a mask that may be null.
static llvm::Error checkAttention(StringRef Op, RankedTensorType Query, RankedTensorType Key, RankedTensorType Value,
                                  RankedTensorType Mask, DictionaryAttr Dictionary) {
  MPC_RETURN_IF_ERROR(expectRank(Op, "a query [B, H, T, D]", Query, 4));
  MPC_RETURN_IF_ERROR(expectRank(Op, "a key [B, H, S, D]", Key, 4));
  MPC_RETURN_IF_ERROR(expectRank(Op, "a value [B, H, S, E]", Value, 4));
  ArrayRef<int64_t> Q = Query.getShape(), K = Key.getShape(), V = Value.getShape();
  if (Q.take_front(2) != K.take_front(2) || Q.take_front(2) != V.take_front(2))
    return inferenceError("{0}: query, key and value need one batch size and one number of heads, got {1}, {2} and {3}",
                          Op, typeText(Query), typeText(Key), typeText(Value));
  if (Q[3] != K[3])
    return inferenceError("{0}: query and key need one width D, got {1} and {2} ({3}, {4})", Op, Q[3], K[3],
                          typeText(Query), typeText(Key));
  if (K[2] != V[2])
    return inferenceError("{0}: key and value need one length S, got {1} and {2} ({3}, {4})", Op, K[2], V[2],
                          typeText(Key), typeText(Value));
  double Scale = toAttributes(Dictionary).GetDouble("scale", 1);
  if (!std::isfinite(Scale))
    return inferenceError("{0} needs a finite scale, got {1}", Op, Scale);
  if (!Mask)
    return llvm::Error::success();
  SmallVector<int64_t> Scores{Q[0], Q[1], Q[2], K[2]};
  ArrayRef<int64_t> Given = Mask.getShape();
  bool Fits = Given.size() <= 4;
  for (size_t Axis = 0; Fits && Axis < Given.size(); ++Axis) {
    int64_t Full = Scores[4 - Given.size() + Axis];
    Fits = Given[Axis] == 1 || Given[Axis] == Full;
  }
  if (Fits)
    return llvm::Error::success();
  return inferenceError("{0}: mask {1} does not broadcast to [B, H, T, S] = {2}", Op, typeText(Mask),
                        shapeText(Scores));
}

InferredTypes AttentionOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "attention", {"query", "key", "value", "mask?"}));
  RankedTensorType Mask = Types.size() == 4 ? Types[3] : RankedTensorType();
  MPC_RETURN_IF_ERROR(checkAttention("attention", Types[0], Types[1], Types[2], Mask, Dictionary));
  ArrayRef<int64_t> Query = Types[0].getShape();
  SmallVector<int64_t> Result{Query[0], Query[1], Query[2], Types[2].getDimSize(3)};
  return SmallVector<RankedTensorType>{
      RankedTensorType::get(Result, promotedType(ArrayRef<RankedTensorType>(Types).take_front(3))),
      f32Tensor(Types[0].getContext(), Query.take_front(3))};
}

InferredTypes AttentionGradOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  StringRef Name = "attention_grad";
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, Name, {"dy", "query", "key", "value", "log_sum_exp", "mask?"}));
  RankedTensorType Mask = Types.size() == 6 ? Types[5] : RankedTensorType();
  MPC_RETURN_IF_ERROR(checkAttention(Name, Types[1], Types[2], Types[3], Mask, Dictionary));
  ArrayRef<int64_t> Query = Types[1].getShape();
  MPC_RETURN_IF_ERROR(expectShape(Name, "dy", Types[0], {Query[0], Query[1], Query[2], Types[3].getDimSize(3)}));
  MPC_RETURN_IF_ERROR(expectShape(Name, "log_sum_exp", Types[4], Query.take_front(3)));
  return SmallVector<RankedTensorType>{Types[1], Types[2], Types[3]};
}

//===-- Recurrent cells ------------------------------------------------------------------------------------------===//

static llvm::Error checkLstm(StringRef Op, StringRef Name, RankedTensorType Gates, RankedTensorType CellState) {
  MPC_RETURN_IF_ERROR(expectRank(Op, "a cell state [N, H]", CellState, 2));
  if (Gates.getShape() == ArrayRef<int64_t>({CellState.getDimSize(0), 4 * CellState.getDimSize(1)}))
    return llvm::Error::success();
  return inferenceError("{0} expects {1} of shape [N, 4 H] = {2}x{3} for cell state {4}, got {5}", Op, Name,
                        CellState.getDimSize(0), 4 * CellState.getDimSize(1), typeText(CellState), typeText(Gates));
}

InferredTypes LstmCellOp::inferTypes(TypeRange Operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "lstm_cell", {"gates", "cell_state"}));
  MPC_RETURN_IF_ERROR(checkLstm("lstm_cell", "gates", Types[0], Types[1]));
  MLIRContext *Context = Types[0].getContext();
  return SmallVector<RankedTensorType>{withShape(Types[0], Types[1].getShape()),
                                       f32Tensor(Context, Types[1].getShape()),
                                       f32Tensor(Context, Types[0].getShape())};
}

InferredTypes LstmCellGradOp::inferTypes(TypeRange Operands, DictionaryAttr) {
  StringRef Name = "lstm_cell_grad";
  MPC_ASSIGN_OR_RETURN(
      Types,
      operandTypes(Operands, Name, {"dhidden", "dnew_cell_state", "activations", "cell_state", "new_cell_state"}));
  MPC_RETURN_IF_ERROR(checkLstm(Name, "activations", Types[2], Types[3]));
  for (unsigned Index : {0u, 1u, 4u})
    MPC_RETURN_IF_ERROR(expectShape(Name, "states and their cotangents", Types[Index], Types[3].getShape()));
  return SmallVector<RankedTensorType>{withShape(Types[0], Types[2].getShape()), Types[3]};
}

//===-- Transposed convolution -----------------------------------------------------------------------------------===//

// One extent of the result, by the formula of the operation's description.
static llvm::Expected<int64_t> transposedExtent(StringRef Op, const Attributes &Values, int Axis, int64_t Input,
                                                int64_t Kernel) {
  const char *AxisName = Axis == 0 ? "height" : "width";
  int64_t Stride = Values.GetInts("strides", {1, 1})[Axis], Dilation = Values.GetInts("dilations", {1, 1})[Axis];
  int64_t Extra = Values.GetInts("output_padding", {0, 0})[Axis];
  std::string Mode = Values.GetString("pad_mode", "valid");
  constexpr int64_t Largest = std::numeric_limits<int32_t>::max();
  for (int64_t Extent : {Input, Kernel, Stride, Dilation})
    if (Extent < 1 || Extent > Largest)
      return inferenceError("{0}: input, kernel, stride and dilation must be in [1, {1}]; got input {2}, kernel {3}, "
                            "stride {4}, dilation {5} along {6}",
                            Op, Largest, Input, Kernel, Stride, Dilation, AxisName);
  if (Extra < 0 || Extra >= Stride)
    return inferenceError("{0}: output_padding must be in [0, stride), got {1} with stride {2} along {3}", Op, Extra,
                          Stride, AxisName);
  if (Mode == "same") {
    if (Extra != 0)
      return inferenceError("{0}: pad_mode \"same\" fixes the result's extent; output_padding {1} along {2} needs "
                            "\"pad\" or \"valid\"",
                            Op, Extra, AxisName);
    return Input * Stride;
  }
  std::vector<int64_t> Padding = Values.GetInts("padding", {0, 0, 0, 0});
  int64_t Removed = Mode == "pad" ? Padding[2 * Axis] + Padding[2 * Axis + 1] : 0;
  int64_t Extent = (Input - 1) * Stride - Removed + Dilation * (Kernel - 1) + 1 + Extra;
  if (Extent < 1)
    return inferenceError("{0}: an input {1} of {2}, a kernel of {3} and padding {4} in all leave no result", Op,
                          AxisName, Input, Kernel, Removed);
  return Extent;
}

InferredTypes ConvTranspose2dOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  StringRef Name = "conv_transpose2d";
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, Name, {"x", "weight", "bias?"}));
  MPC_RETURN_IF_ERROR(expectRank(Name, "an image", Types[0], 4));
  MPC_RETURN_IF_ERROR(expectRank(Name, "a weight [C, O / groups, kh, kw]", Types[1], 4));
  ArrayRef<int64_t> Input = Types[0].getShape(), Weight = Types[1].getShape();
  Attributes Values = toAttributes(Dictionary);
  std::string Format = Values.GetString("data_format", "NCHW");
  ImageAxes Axes = AxesOf(Format);
  if (Values.GetInts("strides", {1, 1}).size() != 2 || Values.GetInts("dilations", {1, 1}).size() != 2 ||
      Values.GetInts("output_padding", {0, 0}).size() != 2 || Values.GetInts("padding", {0, 0, 0, 0}).size() != 4)
    return inferenceError("{0}: strides, dilations and output_padding take [height, width], padding takes [top, "
                          "bottom, left, right]",
                          Name);
  int64_t Groups = Values.GetInt("groups", 1), Channels = Input[Axes.channel];
  if (Weight[0] != Channels)
    return inferenceError("{0} expects {1} input channels, got {2} (input {3}, {4})", Name, Weight[0], Channels,
                          typeText(Types[0]), Format);
  if (Groups < 1 || Channels % Groups != 0)
    return inferenceError("{0}: groups = {1} must divide the {2} input channels", Name, Groups, Channels);
  MPC_ASSIGN_OR_RETURN(Height, transposedExtent(Name, Values, 0, Input[Axes.height], Weight[2]));
  MPC_ASSIGN_OR_RETURN(Width, transposedExtent(Name, Values, 1, Input[Axes.width], Weight[3]));
  // The convolution whose derivative this is must exist: it checks the mode and the padding.
  MPC_ASSIGN_OR_RETURN(Geometry, toExpected(Name, ResolveWindow(Values, {Height, Width}, {Weight[2], Weight[3]})));
  if (Geometry.output[0] != Input[Axes.height] || Geometry.output[1] != Input[Axes.width])
    return inferenceError("{0}: no convolution maps {1}x{2} to the input's {3}x{4}", Name, Height, Width,
                          Input[Axes.height], Input[Axes.width]);
  int64_t Outputs = Weight[1] * Groups;
  return inferConvolution(Name, Types, imageShape(Axes, Input[Axes.batch], Outputs, Height, Width), Outputs);
}

//===-- Normalisation --------------------------------------------------------------------------------------------===//

// The leading extents of x, those that gamma does not cover.
static llvm::Expected<SmallVector<int64_t>> layerNormRows(StringRef Op, RankedTensorType X, RankedTensorType Gamma) {
  int64_t Trailing = Gamma.getRank();
  if (Trailing < 1 || Trailing > X.getRank() || X.getShape().take_back(Trailing) != Gamma.getShape())
    return inferenceError("{0} expects gamma to have the shape of the trailing axes of x, got {1} for x {2}", Op,
                          typeText(Gamma), typeText(X));
  if (elementsOf(Gamma.getShape()) == 0)
    return inferenceError("{0} needs at least one element a row, got x {1} and gamma {2}", Op, typeText(X),
                          typeText(Gamma));
  return SmallVector<int64_t>(X.getShape().drop_back(Trailing));
}

// The cotangents of x, gamma and beta, from dy, x, gamma and statistics of shape `Statistics`.
static InferredTypes inferNormGrad(StringRef Op, ArrayRef<RankedTensorType> Types, ArrayRef<int64_t> Statistics) {
  MPC_RETURN_IF_ERROR(expectShape(Op, "dy", Types[0], Types[1].getShape()));
  MPC_RETURN_IF_ERROR(expectShape(Op, "mean", Types[3], Statistics));
  MPC_RETURN_IF_ERROR(expectShape(Op, "inv_std", Types[4], Statistics));
  return SmallVector<RankedTensorType>{Types[1], Types[2], Types[2]};
}

InferredTypes LayerNormOp::inferTypes(TypeRange Operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "layer_norm", {"x", "gamma", "beta"}));
  MPC_ASSIGN_OR_RETURN(Rows, layerNormRows("layer_norm", Types[0], Types[1]));
  MPC_RETURN_IF_ERROR(expectShape("layer_norm", "beta", Types[2], Types[1].getShape()));
  RankedTensorType Statistic = f32Tensor(Types[0].getContext(), Rows);
  return SmallVector<RankedTensorType>{Types[0], Statistic, Statistic};
}

InferredTypes LayerNormGradOp::inferTypes(TypeRange Operands, DictionaryAttr) {
  StringRef Name = "layer_norm_grad";
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, Name, {"dy", "x", "gamma", "mean", "inv_std"}));
  MPC_ASSIGN_OR_RETURN(Rows, layerNormRows(Name, Types[1], Types[2]));
  return inferNormGrad(Name, Types, Rows);
}

// The shape of group_norm's statistics, [N, groups].
static llvm::Expected<SmallVector<int64_t>> groupNormStatistics(StringRef Op, RankedTensorType X,
                                                                ArrayRef<RankedTensorType> PerChannel,
                                                                DictionaryAttr Dictionary) {
  MPC_RETURN_IF_ERROR(expectRank(Op, "an image", X, 4));
  Attributes Values = toAttributes(Dictionary);
  ImageAxes Axes = AxesOf(Values.GetString("data_format", "NCHW"));
  int64_t Channels = X.getDimSize(Axes.channel), Groups = Values.GetInt("groups", 1);
  if (Groups < 1 || Channels % Groups != 0)
    return inferenceError("{0}: groups = {1} must divide the {2} channels of x {3}", Op, Groups, Channels, typeText(X));
  for (RankedTensorType Type : PerChannel)
    MPC_RETURN_IF_ERROR(expectShape(Op, "gamma and beta", Type, {Channels}));
  return SmallVector<int64_t>{X.getDimSize(Axes.batch), Groups};
}

InferredTypes GroupNormOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "group_norm", {"x", "gamma", "beta"}));
  ArrayRef<RankedTensorType> All(Types);
  MPC_ASSIGN_OR_RETURN(Shape, groupNormStatistics("group_norm", Types[0], All.drop_front(), Dictionary));
  RankedTensorType Statistic = f32Tensor(Types[0].getContext(), Shape);
  return SmallVector<RankedTensorType>{Types[0], Statistic, Statistic};
}

InferredTypes GroupNormGradOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  StringRef Name = "group_norm_grad";
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, Name, {"dy", "x", "gamma", "mean", "inv_std"}));
  ArrayRef<RankedTensorType> All(Types);
  MPC_ASSIGN_OR_RETURN(Shape, groupNormStatistics(Name, Types[1], All.slice(2, 1), Dictionary));
  return inferNormGrad(Name, Types, Shape);
}

//===-- Loss -----------------------------------------------------------------------------------------------------===//

InferredTypes BceWithLogitsOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  return inferElementLoss(Operands, Dictionary, "bce_with_logits", {"logits", "labels"}, "labels");
}

InferredTypes BceWithLogitsGradOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  return inferElementLossGrad(Operands, Dictionary, "bce_with_logits_grad", {"dloss", "logits", "labels"}, "labels");
}

} // namespace mpc
