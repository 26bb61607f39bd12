#include "compiler/dialect/inference_support.h"

#include "kernels/tensor_spec.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace mpc {

std::string typeText(Type Type) {
  std::string Text;
  llvm::raw_string_ostream(Text) << Type;
  return Text;
}

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

llvm::Expected<int64_t> normalAxis(StringRef Op, int64_t Axis, int64_t Rank) {
  if (Axis < -Rank || Axis >= Rank)
    return inferenceError("{0} axis {1} is outside [{2}, {3}) of a rank-{3} tensor", Op, Axis, -Rank, Rank);
  return Axis < 0 ? Axis + Rank : Axis;
}

} // namespace mpc
