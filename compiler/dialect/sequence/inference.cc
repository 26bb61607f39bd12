// Shape inference of batched matrix work, attention, recurrent cells, transposed convolution, layer and group
// normalisation, binary cross-entropy.
#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/inference_support.h"
#include "kernels/known_attributes.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace mpc {

static int64_t elementsOf(ArrayRef<int64_t> extents) {
  int64_t count = 1;
  for (int64_t extent : extents)
    count *= extent;
  return count;
}

//===-- Matrix work ----------------------------------------------------------------------------------------------===//

InferredTypes BatchMatmulOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<BatchMatmulOp>(operands));
  RankedTensorType a = types[0], b = types[1];
  int64_t rank = a.getRank();
  if (rank < 3 || b.getRank() != rank)
    return inferenceError("{0} expects a and b of one rank, at least 3, got {1} and {2}; matmul takes "
                          "matrices",
                          mnemonic(), typeText(a), typeText(b));
  ArrayRef<int64_t> leading = a.getShape().drop_back(2);
  if (leading != b.getShape().drop_back(2))
    return inferenceError("{0} of {1} and {2}: the leading extents {3} and {4} differ; broadcast_to makes "
                          "them equal",
                          mnemonic(), typeText(a), typeText(b), shapeText(leading),
                          shapeText(b.getShape().drop_back(2)));
  MPC_ASSIGN_OR_RETURN(extents, productExtents(mnemonic(), a, b, toAttributes(dictionary)));
  SmallVector<int64_t> result(leading);
  result.append({extents.first, extents.second});
  return SmallVector<RankedTensorType>{RankedTensorType::get(result, promotedType({a, b}))};
}

//===-- Attention ------------------------------------------------------------------------------------------------===//

// Checks the scale, and a mask of [B, H, T, S] = \p scores that may be null.
static llvm::Error checkScaleAndMask(StringRef op, ArrayRef<int64_t> scores, RankedTensorType mask,
                                     DictionaryAttr dictionary) {
  double scale = toAttributes(dictionary).GetDouble("scale", 1);
  if (!std::isfinite(scale))
    return inferenceError("{0} needs a finite scale, got {1}", op, scale);
  if (!mask)
    return llvm::Error::success();
  ArrayRef<int64_t> given = mask.getShape();
  bool fits = given.size() <= 4;
  for (size_t axis = 0; fits && axis < given.size(); ++axis) {
    int64_t full = scores[4 - given.size() + axis];
    fits = given[axis] == 1 || given[axis] == full;
  }
  if (fits)
    return llvm::Error::success();
  return inferenceError("{0}: mask {1} does not broadcast to [B, H, T, S] = {2}", op, typeText(mask),
                        shapeText(scores));
}

// Checks query [B, H, T, D], key [B, H, S, D], value [B, H, S, E] and a mask that may be null.
static llvm::Error checkAttention(StringRef op, RankedTensorType query, RankedTensorType key, RankedTensorType value,
                                  RankedTensorType mask, DictionaryAttr dictionary) {
  MPC_RETURN_IF_ERROR(expectRank(op, "a query [B, H, T, D]", query, 4));
  MPC_RETURN_IF_ERROR(expectRank(op, "a key [B, H, S, D]", key, 4));
  MPC_RETURN_IF_ERROR(expectRank(op, "a value [B, H, S, E]", value, 4));
  ArrayRef<int64_t> q = query.getShape(), k = key.getShape(), v = value.getShape();
  if (q.take_front(2) != k.take_front(2) || q.take_front(2) != v.take_front(2))
    return inferenceError("{0}: query, key and value need one batch size and one number of heads, got {1}, {2} and {3}",
                          op, typeText(query), typeText(key), typeText(value));
  if (q[3] != k[3])
    return inferenceError("{0}: query and key need one width D, got {1} and {2} ({3}, {4})", op, q[3], k[3],
                          typeText(query), typeText(key));
  if (k[2] != v[2])
    return inferenceError("{0}: key and value need one length S, got {1} and {2} ({3}, {4})", op, k[2], v[2],
                          typeText(key), typeText(value));
  return checkScaleAndMask(op, {q[0], q[1], q[2], k[2]}, mask, dictionary);
}

InferredTypes AttentionOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<AttentionOp>(operands));
  RankedTensorType mask = types.size() == 4 ? types[3] : RankedTensorType();
  MPC_RETURN_IF_ERROR(checkAttention(mnemonic(), types[0], types[1], types[2], mask, dictionary));
  ArrayRef<int64_t> query = types[0].getShape();
  SmallVector<int64_t> result{query[0], query[1], query[2], types[2].getDimSize(3)};
  return SmallVector<RankedTensorType>{
      RankedTensorType::get(result, promotedType(ArrayRef<RankedTensorType>(types).take_front(3))),
      f32Tensor(types[0].getContext(), query.take_front(3))};
}

InferredTypes AttentionGradOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<AttentionGradOp>(operands));
  RankedTensorType mask = types.size() == 6 ? types[5] : RankedTensorType();
  MPC_RETURN_IF_ERROR(checkAttention(mnemonic(), types[1], types[2], types[3], mask, dictionary));
  ArrayRef<int64_t> query = types[1].getShape();
  MPC_RETURN_IF_ERROR(expectShape(mnemonic(), "dy", types[0], {query[0], query[1], query[2], types[3].getDimSize(3)}));
  MPC_RETURN_IF_ERROR(expectShape(mnemonic(), "log_sum_exp", types[4], query.take_front(3)));
  return SmallVector<RankedTensorType>{types[1], types[2], types[3]};
}

// The shapes of y and log_sum_exp, from qkv [B, T, 3 * heads * D] and a mask that may be null.
struct PackedShapes {
  SmallVector<int64_t> y, logSumExp;
};

static llvm::Expected<PackedShapes> packedShapes(StringRef op, RankedTensorType qkv, RankedTensorType mask,
                                                 DictionaryAttr dictionary) {
  MPC_RETURN_IF_ERROR(expectRank(op, "queries, keys and values [B, T, 3 * H * D]", qkv, 3));
  int64_t samples = qkv.getDimSize(0), rows = qkv.getDimSize(1), width = qkv.getDimSize(2);
  int64_t heads = toAttributes(dictionary).GetInt("heads", 0);
  if (heads < 1 || width % 3 != 0 || width / 3 % heads != 0)
    return inferenceError("{0}: the last extent of qkv, {1}, is not 3 * heads * D for heads = {2} and a whole D ({3})",
                          op, width, heads, typeText(qkv));
  MPC_RETURN_IF_ERROR(checkScaleAndMask(op, {samples, heads, rows, rows}, mask, dictionary));
  return PackedShapes{{samples, rows, width / 3}, {samples, heads, rows}};
}

InferredTypes PackedAttentionOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<PackedAttentionOp>(operands));
  RankedTensorType mask = types.size() == 2 ? types[1] : RankedTensorType();
  MPC_ASSIGN_OR_RETURN(shapes, packedShapes(mnemonic(), types[0], mask, dictionary));
  return SmallVector<RankedTensorType>{withShape(types[0], shapes.y),
                                       f32Tensor(types[0].getContext(), shapes.logSumExp)};
}

InferredTypes PackedAttentionGradOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<PackedAttentionGradOp>(operands));
  RankedTensorType mask = types.size() == 5 ? types[4] : RankedTensorType();
  MPC_ASSIGN_OR_RETURN(shapes, packedShapes(mnemonic(), types[1], mask, dictionary));
  MPC_RETURN_IF_ERROR(expectShape(mnemonic(), "dy", types[0], shapes.y));
  MPC_RETURN_IF_ERROR(expectShape(mnemonic(), "y", types[2], shapes.y));
  MPC_RETURN_IF_ERROR(expectShape(mnemonic(), "log_sum_exp", types[3], shapes.logSumExp));
  return SmallVector<RankedTensorType>{types[1]};
}

//===-- Recurrent cells ------------------------------------------------------------------------------------------===//

// Kernels read cell states, their cotangents and activations as f32.
static llvm::Error expectF32(StringRef op, StringRef name, RankedTensorType type) {
  if (isa<Float32Type, Float64Type>(type.getElementType()))
    return llvm::Error::success();
  return inferenceError("{0} takes {1} in f32, got {2}; cast changes it", op, name, typeText(type));
}

static llvm::Error checkLstm(StringRef op, StringRef name, RankedTensorType gates, RankedTensorType cellState) {
  MPC_RETURN_IF_ERROR(expectRank(op, "a cell state [N, H]", cellState, 2));
  if (gates.getShape() == ArrayRef<int64_t>({cellState.getDimSize(0), 4 * cellState.getDimSize(1)}))
    return llvm::Error::success();
  return inferenceError("{0} expects {1} of shape [N, 4 H] = {2}x{3} for cell state {4}, got {5}", op, name,
                        cellState.getDimSize(0), 4 * cellState.getDimSize(1), typeText(cellState), typeText(gates));
}

InferredTypes LstmCellOp::inferTypes(TypeRange operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<LstmCellOp>(operands));
  MPC_RETURN_IF_ERROR(checkLstm(mnemonic(), "gates", types[0], types[1]));
  MPC_RETURN_IF_ERROR(expectF32(mnemonic(), "a cell state", types[1]));
  MLIRContext *context = types[0].getContext();
  return SmallVector<RankedTensorType>{withShape(types[0], types[1].getShape()),
                                       f32Tensor(context, types[1].getShape()),
                                       f32Tensor(context, types[0].getShape())};
}

InferredTypes LstmCellGradOp::inferTypes(TypeRange operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<LstmCellGradOp>(operands));
  MPC_RETURN_IF_ERROR(checkLstm(mnemonic(), "activations", types[2], types[3]));
  for (unsigned index : {0u, 1u, 4u})
    MPC_RETURN_IF_ERROR(expectShape(mnemonic(), "states and their cotangents", types[index], types[3].getShape()));
  for (RankedTensorType type : ArrayRef(types).drop_front())
    MPC_RETURN_IF_ERROR(expectF32(mnemonic(), "cell states, their cotangents and activations", type));
  return SmallVector<RankedTensorType>{withShape(types[0], types[2].getShape()), types[3]};
}

//===-- Transposed convolution -----------------------------------------------------------------------------------===//

// One extent of the result, by the formula of the operation's description.
static llvm::Expected<int64_t> transposedExtent(StringRef op, const Attributes &values, int axis, int64_t input,
                                                int64_t kernel) {
  const char *axisName = axis == 0 ? "height" : "width";
  int64_t stride = values.Get(attribute::kStrides)[axis], dilation = values.Get(attribute::kDilations)[axis];
  int64_t extra = values.GetInts("output_padding", {0, 0})[axis];
  PadMode mode = values.Get(attribute::kPadMode);
  constexpr int64_t largest = std::numeric_limits<int32_t>::max();
  for (int64_t extent : {input, kernel, stride, dilation})
    if (extent < 1 || extent > largest)
      return inferenceError("{0}: input, kernel, stride and dilation must be in [1, {1}]; got input {2}, kernel {3}, "
                            "stride {4}, dilation {5} along {6}",
                            op, largest, input, kernel, stride, dilation, axisName);
  if (extra < 0 || extra >= stride)
    return inferenceError("{0}: output_padding must be in [0, stride), got {1} with stride {2} along {3}", op, extra,
                          stride, axisName);
  if (mode == PadMode::kSame) {
    if (extra != 0)
      return inferenceError("{0}: pad_mode \"same\" fixes the result's extent; output_padding {1} along {2} needs "
                            "\"pad\" or \"valid\"",
                            op, extra, axisName);
    return input * stride;
  }
  std::vector<int64_t> padding = values.Get(attribute::kPadding);
  int64_t removed = mode == PadMode::kPad ? padding[2 * axis] + padding[2 * axis + 1] : 0;
  int64_t extent = (input - 1) * stride - removed + dilation * (kernel - 1) + 1 + extra;
  if (extent < 1)
    return inferenceError("{0}: an input {1} of {2}, a kernel of {3} and padding {4} in all leave no result", op,
                          axisName, input, kernel, removed);
  return extent;
}

InferredTypes ConvTranspose2dOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<ConvTranspose2dOp>(operands));
  MPC_RETURN_IF_ERROR(expectRank(mnemonic(), "an image", types[0], 4));
  MPC_RETURN_IF_ERROR(expectRank(mnemonic(), "a weight [C, O / groups, kh, kw]", types[1], 4));
  ArrayRef<int64_t> input = types[0].getShape(), weight = types[1].getShape();
  Attributes values = toAttributes(dictionary);
  DataFormat format = values.Get(attribute::kDataFormat);
  ImageAxes axes = AxesOf(format);
  if (values.GetInts("strides", {1, 1}).size() != 2 || values.GetInts("dilations", {1, 1}).size() != 2 ||
      values.GetInts("output_padding", {0, 0}).size() != 2 || values.GetInts("padding", {0, 0, 0, 0}).size() != 4)
    return inferenceError("{0}: strides, dilations and output_padding take [height, width], padding takes [top, "
                          "bottom, left, right]",
                          mnemonic());
  int64_t groups = values.Get(attribute::kGroups), channels = input[axes.channel];
  if (weight[0] != channels)
    return inferenceError("{0} expects {1} input channels, got {2} (input {3}, {4})", mnemonic(), weight[0], channels,
                          typeText(types[0]), wordOf(format));
  if (groups < 1 || channels % groups != 0)
    return inferenceError("{0}: groups = {1} must divide the {2} input channels", mnemonic(), groups, channels);
  MPC_ASSIGN_OR_RETURN(height, transposedExtent(mnemonic(), values, 0, input[axes.height], weight[2]));
  MPC_ASSIGN_OR_RETURN(width, transposedExtent(mnemonic(), values, 1, input[axes.width], weight[3]));
  // The convolution whose derivative this is must exist: it checks the mode and the padding.
  MPC_ASSIGN_OR_RETURN(geometry,
                       toExpected(mnemonic(), ResolveWindow(values, {height, width}, {weight[2], weight[3]})));
  if (geometry.output[0] != input[axes.height] || geometry.output[1] != input[axes.width])
    return inferenceError("{0}: no convolution maps {1}x{2} to the input's {3}x{4}", mnemonic(), height, width,
                          input[axes.height], input[axes.width]);
  int64_t outputs = weight[1] * groups;
  return inferConvolution(mnemonic(), types, imageShape(axes, input[axes.batch], outputs, height, width), outputs);
}

//===-- Normalisation --------------------------------------------------------------------------------------------===//

// The leading extents of x, those that gamma does not cover.
static llvm::Expected<SmallVector<int64_t>> layerNormRows(StringRef op, RankedTensorType x, RankedTensorType gamma) {
  int64_t trailing = gamma.getRank();
  if (trailing < 1 || trailing > x.getRank() || x.getShape().take_back(trailing) != gamma.getShape())
    return inferenceError("{0} expects gamma to have the shape of the trailing axes of x, got {1} for x {2}", op,
                          typeText(gamma), typeText(x));
  if (elementsOf(gamma.getShape()) == 0)
    return inferenceError("{0} needs at least one element a row, got x {1} and gamma {2}", op, typeText(x),
                          typeText(gamma));
  return SmallVector<int64_t>(x.getShape().drop_back(trailing));
}

// The cotangents of x, gamma and beta, from dy, x, gamma and statistics of shape `statistics`.
static InferredTypes inferNormGrad(StringRef op, ArrayRef<RankedTensorType> types, ArrayRef<int64_t> statistics) {
  MPC_RETURN_IF_ERROR(expectShape(op, "dy", types[0], types[1].getShape()));
  MPC_RETURN_IF_ERROR(expectShape(op, "mean", types[3], statistics));
  MPC_RETURN_IF_ERROR(expectShape(op, "inv_std", types[4], statistics));
  return SmallVector<RankedTensorType>{types[1], types[2], types[2]};
}

InferredTypes LayerNormOp::inferTypes(TypeRange operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<LayerNormOp>(operands));
  MPC_ASSIGN_OR_RETURN(rows, layerNormRows(mnemonic(), types[0], types[1]));
  MPC_RETURN_IF_ERROR(expectShape(mnemonic(), "beta", types[2], types[1].getShape()));
  RankedTensorType statistic = f32Tensor(types[0].getContext(), rows);
  return SmallVector<RankedTensorType>{types[0], statistic, statistic};
}

InferredTypes LayerNormGradOp::inferTypes(TypeRange operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<LayerNormGradOp>(operands));
  MPC_ASSIGN_OR_RETURN(rows, layerNormRows(mnemonic(), types[1], types[2]));
  return inferNormGrad(mnemonic(), types, rows);
}

// The shape of group_norm's statistics, [N, groups].
static llvm::Expected<SmallVector<int64_t>> groupNormStatistics(StringRef op, RankedTensorType x,
                                                                ArrayRef<RankedTensorType> perChannel,
                                                                DictionaryAttr dictionary) {
  MPC_RETURN_IF_ERROR(expectRank(op, "an image", x, 4));
  Attributes values = toAttributes(dictionary);
  ImageAxes axes = AxesOf(values.Get(attribute::kDataFormat));
  int64_t channels = x.getDimSize(axes.channel), groups = values.Get(attribute::kGroups);
  if (groups < 1 || channels % groups != 0)
    return inferenceError("{0}: groups = {1} must divide the {2} channels of x {3}", op, groups, channels, typeText(x));
  for (RankedTensorType type : perChannel)
    MPC_RETURN_IF_ERROR(expectShape(op, "gamma and beta", type, {channels}));
  return SmallVector<int64_t>{x.getDimSize(axes.batch), groups};
}

InferredTypes GroupNormOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<GroupNormOp>(operands));
  ArrayRef<RankedTensorType> all(types);
  MPC_ASSIGN_OR_RETURN(shape, groupNormStatistics(mnemonic(), types[0], all.drop_front(), dictionary));
  RankedTensorType statistic = f32Tensor(types[0].getContext(), shape);
  return SmallVector<RankedTensorType>{types[0], statistic, statistic};
}

InferredTypes GroupNormGradOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<GroupNormGradOp>(operands));
  ArrayRef<RankedTensorType> all(types);
  MPC_ASSIGN_OR_RETURN(shape, groupNormStatistics(mnemonic(), types[1], all.slice(2, 1), dictionary));
  return inferNormGrad(mnemonic(), types, shape);
}

//===-- Loss -----------------------------------------------------------------------------------------------------===//

InferredTypes BceWithLogitsOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  return inferElementLoss(operands, dictionary, operandsOf<BceWithLogitsOp>(), "labels");
}

InferredTypes BceWithLogitsGradOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  return inferElementLossGrad(operands, dictionary, operandsOf<BceWithLogitsGradOp>(), "labels");
}

} // namespace mpc
