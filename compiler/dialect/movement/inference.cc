// Shape inference of operations that move parts of tensors, look values up, and of the maximum over axes.
#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/inference_support.h"

using namespace mlir;

namespace mpc {

InferredTypes ConcatOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "concat", {"x", "inputs..."}));
  for (RankedTensorType Type : Types)
    if (Type.getElementType() != Types.front().getElementType())
      return inferenceError("concat needs operands of one element type, got {0} and {1}; cast changes it",
                            typeText(Types.front()), typeText(Type));
  SmallVector<int64_t> Result(Types.front().getShape());
  MPC_ASSIGN_OR_RETURN(Axis, normalAxis("concat", toAttributes(Dictionary).GetInt("axis", 0), Result.size()));
  Result[Axis] = 0;
  for (RankedTensorType Type : Types) {
    bool Agrees = Type.getRank() == int64_t(Result.size());
    for (int64_t Other = 0; Agrees && Other < Type.getRank(); ++Other)
      Agrees = Other == Axis || Type.getDimSize(Other) == Result[Other];
    if (!Agrees)
      return inferenceError("concat along axis {0} needs operands that agree on every other axis, got {1} and {2}",
                            Axis, typeText(Types.front()), typeText(Type));
    Result[Axis] += Type.getDimSize(Axis);
  }
  return SmallVector<RankedTensorType>{withShape(Types.front(), Result)};
}

// One value of `Name` an axis of X.
static llvm::Error checkOneAnAxis(StringRef Op, StringRef Name, RankedTensorType X, ArrayRef<int64_t> Values) {
  if (int64_t(Values.size()) == X.getRank())
    return llvm::Error::success();
  return inferenceError("{0} takes one of {1} an axis: {2} has {3}, got {4}", Op, Name, typeText(X), X.getRank(),
                        Values.size());
}

InferredTypes SliceOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "slice", {"x"}));
  std::vector<int64_t> Starts = toAttributes(Dictionary).GetInts("starts");
  std::vector<int64_t> Sizes = toAttributes(Dictionary).GetInts("sizes");
  MPC_RETURN_IF_ERROR(checkOneAnAxis("slice", "starts", Types[0], Starts));
  MPC_RETURN_IF_ERROR(checkOneAnAxis("slice", "sizes", Types[0], Sizes));
  for (auto [Axis, Extent, Start, Size] : llvm::enumerate(Types[0].getShape(), Starts, Sizes))
    if (Start < 0 || Size < 1 || Start > Extent - Size)
      return inferenceError("slice of axis {0} takes {1} elements from {2} on, but {3} has elements 0 to {4} there",
                            Axis, Size, Start, typeText(Types[0]), Extent - 1);
  return SmallVector<RankedTensorType>{RankedTensorType::get(Sizes, Types[0].getElementType())};
}

InferredTypes SplitOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "split", {"x"}));
  MPC_ASSIGN_OR_RETURN(Axis, normalAxis("split", toAttributes(Dictionary).GetInt("axis", 0), Types[0].getRank()));
  std::vector<int64_t> Sizes = toAttributes(Dictionary).GetInts("sizes");
  int64_t Extent = Types[0].getDimSize(Axis), Rest = Extent;
  for (int64_t Size : Sizes) {
    if (Size < 1)
      return inferenceError("split takes sizes >= 1, got {0}", Size);
    Rest = Size > Rest ? -1 : Rest - Size;
    if (Rest < 0)
      break;
  }
  if (Rest != 0 || Sizes.empty())
    return inferenceError("split sizes must add up to {0}, the extent of axis {1} of {2}; got {3}", Extent, Axis,
                          typeText(Types[0]), shapeText(Sizes));
  SmallVector<RankedTensorType> Pieces;
  for (int64_t Size : Sizes) {
    SmallVector<int64_t> Piece(Types[0].getShape());
    Piece[Axis] = Size;
    Pieces.push_back(RankedTensorType::get(Piece, Types[0].getElementType()));
  }
  return Pieces;
}

InferredTypes PadOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "pad", {"x"}));
  std::vector<int64_t> Low = toAttributes(Dictionary).GetInts("low");
  std::vector<int64_t> High = toAttributes(Dictionary).GetInts("high");
  MPC_RETURN_IF_ERROR(checkOneAnAxis("pad", "low", Types[0], Low));
  MPC_RETURN_IF_ERROR(checkOneAnAxis("pad", "high", Types[0], High));
  constexpr int64_t Limit = int64_t(1) << 47;
  SmallVector<int64_t> Result;
  for (auto [Extent, Before, After] : llvm::zip_equal(Types[0].getShape(), Low, High)) {
    if (Before < 0 || After < 0 || Before > Limit || After > Limit)
      return inferenceError("pad takes widths in [0, 2^47], got low {0} and high {1}; slice cuts", Before, After);
    Result.push_back(Extent + Before + After);
  }
  return SmallVector<RankedTensorType>{RankedTensorType::get(Result, Types[0].getElementType())};
}

InferredTypes GatherOp::inferTypes(TypeRange Operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "gather", {"table", "indices"}));
  if (Types[0].getRank() < 1)
    return inferenceError("gather takes a table of rank 1 or more, got {0}", typeText(Types[0]));
  if (!isa<IntegerType>(Types[1].getElementType()))
    return inferenceError("gather takes indices of i32 or i64, got {0}", typeText(Types[1]));
  SmallVector<int64_t> Result(Types[1].getShape());
  llvm::append_range(Result, Types[0].getShape().drop_front());
  return SmallVector<RankedTensorType>{RankedTensorType::get(Result, Types[0].getElementType())};
}

InferredTypes GatherGradOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "gather_grad", {"dy", "indices"}));
  ArrayRef<int64_t> Dy = Types[0].getShape(), Indices = Types[1].getShape();
  if (Dy.size() < Indices.size() || Dy.take_front(Indices.size()) != Indices)
    return inferenceError("gather_grad expects dy to begin with the shape of the indices, {0}, got {1}",
                          shapeText(Indices), typeText(Types[0]));
  int64_t Rows = toAttributes(Dictionary).GetInt("rows");
  if (Rows < 1)
    return inferenceError("gather_grad takes rows >= 1, got {0}", Rows);
  SmallVector<int64_t> Result{Rows};
  llvm::append_range(Result, Dy.drop_front(Indices.size()));
  return SmallVector<RankedTensorType>{RankedTensorType::get(Result, Types[0].getElementType())};
}

InferredTypes OneHotOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "one_hot", {"indices"}));
  if (!isa<IntegerType>(Types[0].getElementType()))
    return inferenceError("one_hot takes indices of i32 or i64, got {0}", typeText(Types[0]));
  int64_t Depth = toAttributes(Dictionary).GetInt("depth");
  if (Depth < 1)
    return inferenceError("one_hot takes a depth >= 1, got {0}", Depth);
  SmallVector<int64_t> Result(Types[0].getShape());
  Result.push_back(Depth);
  return SmallVector<RankedTensorType>{RankedTensorType::get(Result, Float32Type::get(Types[0].getContext()))};
}

InferredTypes ReduceMaxOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  return inferReduction(Operands, Dictionary, "reduce_max");
}

InferredTypes ReduceMaxGradOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "reduce_max_grad", {"dy", "x", "y"}));
  MPC_ASSIGN_OR_RETURN(Reduced, inferReduction(Operands.slice(1, 1), Dictionary, "reduce_max_grad"));
  MPC_RETURN_IF_ERROR(expectShape("reduce_max_grad", "dy", Types[0], Reduced.front().getShape()));
  MPC_RETURN_IF_ERROR(expectShape("reduce_max_grad", "y", Types[2], Reduced.front().getShape()));
  return SmallVector<RankedTensorType>{Types[1]};
}

} // namespace mpc
