// Shared by the shape-inference files.
#pragma once

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/tensor_values.h"
#include "kernels/attributes.h"
#include "kernels/window.h"
#include "llvm/Support/FormatVariadic.h"

namespace mpc {

using InferredTypes = llvm::Expected<llvm::SmallVector<mlir::RankedTensorType>>;

template <typename... Args> llvm::Error inferenceError(const char *Format, Args &&...Arguments) {
  return llvm::createStringError(llvm::formatv(Format, std::forward<Args>(Arguments)...).str());
}

/// "2x3"; "scalar" for rank 0.
std::string shapeText(llvm::ArrayRef<int64_t> Shape);

/// Whether the bytes of a tensor of this shape could overflow 64-bit arithmetic on sizes and offsets.
bool isTooLarge(llvm::ArrayRef<int64_t> Shape);

/// The operands as tensor types; an error names a wrong count or an empty tensor. \p Names lists the operands, "bias?"
/// being optional and "inputs..." any number.
llvm::Expected<llvm::SmallVector<mlir::RankedTensorType>> operandTypes(mlir::TypeRange Operands, llvm::StringRef Op,
                                                                       llvm::ArrayRef<llvm::StringRef> Names);

/// The type that tracing gives for mixed floating operands. Equal types stay; otherwise it is f32 (f64 if any is).
mlir::Type promotedType(llvm::ArrayRef<mlir::RankedTensorType> Types);

/// The rows and columns of a product of matrices, which the last two axes of \p A and \p B span. `transpose_a` and
/// `transpose_b` exchange these.
llvm::Expected<std::pair<int64_t, int64_t>> productExtents(llvm::StringRef Op, mlir::RankedTensorType A,
                                                           mlir::RankedTensorType B, const Attributes &Values);

/// NumPy broadcasting of two shapes.
llvm::Expected<llvm::SmallVector<int64_t>> broadcastShapes(llvm::StringRef Op, mlir::RankedTensorType A,
                                                           mlir::RankedTensorType B);

/// Requires \p Type to have shape \p Expected.
llvm::Error expectShape(llvm::StringRef Op, llvm::StringRef Name, mlir::RankedTensorType Type,
                        llvm::ArrayRef<int64_t> Expected);

llvm::Error expectRank(llvm::StringRef Op, llvm::StringRef Name, mlir::RankedTensorType Type, int64_t Rank);

/// Requires every one of \p Types to have rank 0.
llvm::Error expectScalars(llvm::StringRef Op, llvm::ArrayRef<mlir::RankedTensorType> Types);

/// Requires a flag (i1), or else a scale or norm (f32, f64), which attributes of an update ask for.
llvm::Error expectElement(llvm::StringRef Op, llvm::StringRef Name, mlir::RankedTensorType Type, bool Flag);

/// The type of \p Like with another shape.
mlir::RankedTensorType withShape(mlir::RankedTensorType Like, llvm::ArrayRef<int64_t> Extents);
mlir::RankedTensorType f32Tensor(mlir::MLIRContext *Context, llvm::ArrayRef<int64_t> Extents);

/// The shape of an image whose axes lie as \p Axes says.
llvm::SmallVector<int64_t> imageShape(ImageAxes Axes, int64_t Batch, int64_t Channels, int64_t Height, int64_t Width);

/// The shape of a loss over \p Elements under the operation's `reduction`.
llvm::SmallVector<int64_t> lossShape(mlir::DictionaryAttr Dictionary, llvm::ArrayRef<int64_t> Elements);

/// absl::StatusOr as llvm::Expected, with the operation's name in front.
template <typename T> llvm::Expected<T> toExpected(llvm::StringRef Op, absl::StatusOr<T> Result) {
  if (Result.ok())
    return *std::move(Result);
  return inferenceError("{0}: {1}", Op, std::string(Result.status().message()));
}

/// An axis in [-rank, rank) as one in [0, rank).
llvm::Expected<int64_t> normalAxis(llvm::StringRef Op, int64_t Axis, int64_t Rank);

// Rules that several operations share; \p Names are those of the operands.

/// One result of the first operand's type, whose shape every operand must have.
InferredTypes inferAllSameShape(mlir::TypeRange Operands, llvm::StringRef Op, llvm::ArrayRef<llvm::StringRef> Names);
/// Two operands under broadcasting.
InferredTypes inferBroadcast(mlir::TypeRange Operands, llvm::StringRef Op);
/// Two operands under broadcasting, which are compared: the result is i1.
InferredTypes inferComparison(mlir::TypeRange Operands, llvm::StringRef Op);
/// The derivative of `minimum` or `maximum` from dy, a and b, which has dy's shape before broadcasting is undone.
InferredTypes inferExtremumGrad(mlir::TypeRange Operands, llvm::StringRef Op);
/// A convolution of image, weight and perhaps a bias, whose result has shape \p Result with \p Channels channels.
InferredTypes inferConvolution(llvm::StringRef Op, llvm::ArrayRef<mlir::RankedTensorType> Types,
                               llvm::ArrayRef<int64_t> Result, int64_t Channels);
/// A loss of two operands of one shape; messages call the second one \p Target.
InferredTypes inferElementLoss(mlir::TypeRange Operands, mlir::DictionaryAttr Dictionary, llvm::StringRef Op,
                               llvm::ArrayRef<llvm::StringRef> Names, llvm::StringRef Target);
/// The derivative of such a loss by its first operand; dloss stands in front of the loss's operands.
InferredTypes inferElementLossGrad(mlir::TypeRange Operands, mlir::DictionaryAttr Dictionary, llvm::StringRef Op,
                                   llvm::ArrayRef<llvm::StringRef> Names, llvm::StringRef Target);
/// Operand x reduced over the attribute `axes`, which stay with extent 1 where `keep_dims` holds.
InferredTypes inferReduction(mlir::TypeRange Operands, mlir::DictionaryAttr Dictionary, llvm::StringRef Op);

/// The error "result <number> is <type>", which its user goes on with.
mlir::InFlightDiagnostic resultError(mlir::OpResult Result);

} // namespace mpc

// Returns the error of a failed Expected, else defines the value.
#define MPC_ASSIGN_OR_RETURN(Value, Expression)                                                                        \
  auto Value##OrError = (Expression);                                                                                  \
  if (!Value##OrError)                                                                                                 \
    return Value##OrError.takeError();                                                                                 \
  auto Value = std::move(*Value##OrError)

#define MPC_RETURN_IF_ERROR(Expression)                                                                                \
  if (llvm::Error Err = (Expression))                                                                                  \
  return Err
