#include "compiler/dialect/inference_support.h"

#include "compiler/dialect/attribute_conversion.h"
#include "kernels/tensor_spec.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace mpc {

std::string shapeText(ArrayRef<int64_t> Dims) { return ShapeToString(Shape(Dims.begin(), Dims.end())); }

bool isTooLarge(ArrayRef<int64_t> Dims) {
  constexpr int64_t MaxElements = int64_t(1) << 47;
  return NumElements(Shape(Dims.begin(), Dims.end())) > MaxElements;
}

llvm::Expected<SmallVector<RankedTensorType>> operandTypes(TypeRange Operands, StringRef Op,
                                                           ArrayRef<StringRef> Names) {
  size_t Required =
      llvm::count_if(Names, [](StringRef Name) { return !Name.ends_with("?") && !Name.ends_with("..."); });
  bool Variadic = !Names.empty() && Names.back().ends_with("...");
  if (Operands.size() < Required || (!Variadic && Operands.size() > Names.size()))
    return inferenceError("{0} takes the operands ({1}), got {2} operands", Op, llvm::join(Names, ", "),
                          Operands.size());
  SmallVector<RankedTensorType> Types;
  for (Type Operand : Operands) {
    auto Tensor = dyn_cast<RankedTensorType>(Operand);
    if (!Tensor || !Tensor.hasStaticShape())
      return inferenceError("{0} takes statically shaped tensors, got {1}", Op, typeText(Operand));
    if (llvm::is_contained(Tensor.getShape(), 0))
      return inferenceError("{0} takes tensors with at least one element, got {1}", Op, typeText(Operand));
    if (isTooLarge(Tensor.getShape()))
      return inferenceError("{0}: {1} is too large: a tensor has at most 2^47 elements", Op, typeText(Operand));
    Types.push_back(Tensor);
  }
  return Types;
}

Type promotedType(ArrayRef<RankedTensorType> Types) {
  Type Result = Types.front().getElementType();
  for (RankedTensorType Type : Types.drop_front()) {
    if (Type.getElementType() == Result)
      continue;
    Builder B(Result.getContext());
    bool Double = Result.isF64() || Type.getElementType().isF64();
    Result = Double ? mlir::Type(B.getF64Type()) : mlir::Type(B.getF32Type());
  }
  return Result;
}

llvm::Expected<std::pair<int64_t, int64_t>> productExtents(StringRef Op, RankedTensorType A, RankedTensorType B,
                                                           const Attributes &Values) {
  bool TransposeA = Values.GetBool("transpose_a"), TransposeB = Values.GetBool("transpose_b");
  int64_t Rank = A.getRank();
  int64_t M = A.getDimSize(Rank - 2 + TransposeA), InnerA = A.getDimSize(Rank - 1 - TransposeA);
  int64_t InnerB = B.getDimSize(Rank - 2 + TransposeB), N = B.getDimSize(Rank - 1 - TransposeB);
  if (InnerA != InnerB)
    return inferenceError("{0} of {1}{2} and {3}{4}: the inner extents {5} and {6} differ", Op, typeText(A),
                          TransposeA ? " (transposed)" : "", typeText(B), TransposeB ? " (transposed)" : "", InnerA,
                          InnerB);
  return std::pair(M, N);
}

llvm::Expected<SmallVector<int64_t>> broadcastShapes(StringRef Op, RankedTensorType A, RankedTensorType B) {
  ArrayRef<int64_t> Long = A.getShape(), Short = B.getShape();
  if (Long.size() < Short.size())
    std::swap(Long, Short);
  SmallVector<int64_t> Result(Long);
  size_t Offset = Long.size() - Short.size();
  for (size_t Axis = 0; Axis < Short.size(); ++Axis) {
    int64_t &Extent = Result[Offset + Axis];
    if (Extent == Short[Axis] || Short[Axis] == 1)
      continue;
    if (Extent != 1)
      return inferenceError("{0} cannot broadcast {1} with {2}: aligned at the right, extents must be equal or 1", Op,
                            typeText(A), typeText(B));
    Extent = Short[Axis];
  }
  return Result;
}

llvm::Error expectShape(StringRef Op, StringRef Name, RankedTensorType Type, ArrayRef<int64_t> Expected) {
  if (Type.getShape() == Expected)
    return llvm::Error::success();
  return inferenceError("{0} expects {1} of shape {2}, got {3}", Op, Name, shapeText(Expected), typeText(Type));
}

llvm::Error expectRank(StringRef Op, StringRef Name, RankedTensorType Type, int64_t Rank) {
  if (Type.getRank() == Rank)
    return llvm::Error::success();
  return inferenceError("{0} expects {1} of rank {2}, got {3}", Op, Name, Rank, typeText(Type));
}

RankedTensorType withShape(RankedTensorType Like, ArrayRef<int64_t> Extents) {
  return RankedTensorType::get(Extents, Like.getElementType());
}

RankedTensorType f32Tensor(MLIRContext *Context, ArrayRef<int64_t> Extents) {
  return RankedTensorType::get(Extents, Float32Type::get(Context));
}

SmallVector<int64_t> imageShape(ImageAxes Axes, int64_t Batch, int64_t Channels, int64_t Height, int64_t Width) {
  SmallVector<int64_t> Result(4);
  Result[Axes.batch] = Batch;
  Result[Axes.channel] = Channels;
  Result[Axes.height] = Height;
  Result[Axes.width] = Width;
  return Result;
}

SmallVector<int64_t> lossShape(DictionaryAttr Dictionary, ArrayRef<int64_t> Elements) {
  bool Keep = toAttributes(Dictionary).GetString("reduction", "mean") == "none";
  return Keep ? SmallVector<int64_t>(Elements) : SmallVector<int64_t>();
}

llvm::Expected<int64_t> normalAxis(StringRef Op, int64_t Axis, int64_t Rank) {
  if (Axis < -Rank || Axis >= Rank)
    return inferenceError("{0} axis {1} is outside [{2}, {3}) of a rank-{3} tensor", Op, Axis, -Rank, Rank);
  return Axis < 0 ? Axis + Rank : Axis;
}

InferredTypes inferAllSameShape(TypeRange Operands, StringRef Op, ArrayRef<StringRef> Names) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, Op, Names));
  for (size_t Index = 1; Index < Types.size(); ++Index)
    MPC_RETURN_IF_ERROR(expectShape(Op, Names[Index], Types[Index], Types.front().getShape()));
  return SmallVector<RankedTensorType>{Types.front()};
}

InferredTypes inferBroadcast(TypeRange Operands, StringRef Op) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, Op, {"a", "b"}));
  MPC_ASSIGN_OR_RETURN(Result, broadcastShapes(Op, Types[0], Types[1]));
  return SmallVector<RankedTensorType>{RankedTensorType::get(Result, promotedType(Types))};
}

InferredTypes inferComparison(TypeRange Operands, StringRef Op) {
  MPC_ASSIGN_OR_RETURN(Types, inferBroadcast(Operands, Op));
  return SmallVector<RankedTensorType>{Types[0].clone(IntegerType::get(Types[0].getContext(), 1))};
}

InferredTypes inferExtremumGrad(TypeRange Operands, StringRef Op) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, Op, {"dy", "a", "b"}));
  MPC_ASSIGN_OR_RETURN(Result, broadcastShapes(Op, Types[1], Types[2]));
  MPC_RETURN_IF_ERROR(expectShape(Op, "dy", Types[0], Result));
  return SmallVector<RankedTensorType>{withShape(Types[1], Result), withShape(Types[2], Result)};
}

InferredTypes inferConvolution(StringRef Op, ArrayRef<RankedTensorType> Types, ArrayRef<int64_t> Result,
                               int64_t Channels) {
  if (Types.size() == 3)
    MPC_RETURN_IF_ERROR(expectShape(Op, "a bias", Types[2], {Channels}));
  return SmallVector<RankedTensorType>{RankedTensorType::get(Result, promotedType(Types.take_front(2)))};
}

InferredTypes inferElementLoss(TypeRange Operands, DictionaryAttr Dictionary, StringRef Op, ArrayRef<StringRef> Names,
                               StringRef Target) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, Op, Names));
  MPC_RETURN_IF_ERROR(expectShape(Op, Target, Types[1], Types[0].getShape()));
  return SmallVector<RankedTensorType>{f32Tensor(Types[0].getContext(), lossShape(Dictionary, Types[0].getShape()))};
}

InferredTypes inferElementLossGrad(TypeRange Operands, DictionaryAttr Dictionary, StringRef Op,
                                   ArrayRef<StringRef> Names, StringRef Target) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, Op, Names));
  MPC_RETURN_IF_ERROR(expectShape(Op, Target, Types[2], Types[1].getShape()));
  MPC_RETURN_IF_ERROR(expectShape(Op, "dloss", Types[0], lossShape(Dictionary, Types[1].getShape())));
  return SmallVector<RankedTensorType>{Types[1]};
}

InferredTypes inferReduction(TypeRange Operands, DictionaryAttr Dictionary, StringRef Op) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, Op, {"x"}));
  Attributes Values = toAttributes(Dictionary);
  ArrayRef<int64_t> Extents = Types[0].getShape();
  std::vector<int64_t> Axes = Values.GetInts("axes");
  SmallVector<bool> Reduced(Extents.size(), Axes.empty());
  for (int64_t Axis : Axes) {
    if (Axis < 0 || Axis >= int64_t(Extents.size()) || Reduced[Axis])
      return inferenceError("{0} axes must be distinct and in [0, {1}), got {2}", Op, Extents.size(), Axis);
    Reduced[Axis] = true;
  }
  SmallVector<int64_t> Result;
  for (size_t Axis = 0; Axis < Extents.size(); ++Axis) {
    if (!Reduced[Axis])
      Result.push_back(Extents[Axis]);
    else if (Values.GetBool("keep_dims"))
      Result.push_back(1);
  }
  return SmallVector<RankedTensorType>{RankedTensorType::get(Result, Types[0].getElementType())};
}

llvm::Error expectScalars(StringRef Op, ArrayRef<RankedTensorType> Types) {
  for (RankedTensorType Type : Types)
    if (Type.getRank() != 0)
      return inferenceError("{0} expects scalars (rank 0), got {1}", Op, typeText(Type));
  return llvm::Error::success();
}

llvm::Error expectElement(StringRef Op, StringRef Name, RankedTensorType Type, bool Flag) {
  if (Flag ? Type.getElementType().isInteger(1) : isa<Float32Type, Float64Type>(Type.getElementType()))
    return llvm::Error::success();
  return inferenceError("{0} expects {1} to be {2}, got {3}; a scale comes with unscale = true, a norm with max_norm",
                        Op, Name,
                        Flag             ? "tensor<i1>"
                        : Name == "norm" ? "tensor<f64>"
                                         : "tensor<f32>",
                        typeText(Type));
}

InFlightDiagnostic resultError(OpResult Result) {
  return Result.getOwner()->emitOpError() << "result " << Result.getResultNumber() << " is " << Result.getType();
}

} // namespace mpc
