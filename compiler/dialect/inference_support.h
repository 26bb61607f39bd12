// Shared by the shape-inference files.
#pragma once

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/tensor_values.h"
#include "kernels/attributes.h"
#include "kernels/window.h"
#include "llvm/Support/FormatVariadic.h"

namespace mpc {

using InferredTypes = llvm::Expected<llvm::SmallVector<mlir::RankedTensorType>>;

template <typename... Args> llvm::Error inferenceError(const char *format, Args &&...arguments) {
  return llvm::createStringError(llvm::formatv(format, std::forward<Args>(arguments)...).str());
}

/// "2x3"; "scalar" for rank 0.
std::string shapeText(llvm::ArrayRef<int64_t> shape);

/// Whether the bytes of a tensor of this shape could overflow 64-bit arithmetic on sizes and offsets.
bool isTooLarge(llvm::ArrayRef<int64_t> shape);

/// An operation's mnemonic and the names of its operands. "bias?" is optional, and "inputs..." is any number.
struct OperandNames {
  llvm::StringRef op;
  llvm::ArrayRef<llvm::StringRef> names;
};

/// The operands that ODS lists for an operation.
template <typename Op> OperandNames operandsOf() { return {Op::mnemonic(), Op::operandNames()}; }

/// The operands as tensor types. An error names a wrong count or an empty tensor.
llvm::Expected<llvm::SmallVector<mlir::RankedTensorType>> operandTypes(mlir::TypeRange operands,
                                                                       const OperandNames &given);
template <typename Op>
llvm::Expected<llvm::SmallVector<mlir::RankedTensorType>> operandTypes(mlir::TypeRange operands) {
  return operandTypes(operands, operandsOf<Op>());
}

/// The type that tracing gives for mixed floating operands. Equal types stay; otherwise it is f32 (f64 if any is).
mlir::Type promotedType(llvm::ArrayRef<mlir::RankedTensorType> types);

/// The rows and columns of a product of matrices, which the last two axes of \p a and \p b span. `transpose_a` and
/// `transpose_b` exchange these.
llvm::Expected<std::pair<int64_t, int64_t>> productExtents(llvm::StringRef op, mlir::RankedTensorType a,
                                                           mlir::RankedTensorType b, const Attributes &values);

/// NumPy broadcasting of two shapes.
llvm::Expected<llvm::SmallVector<int64_t>> broadcastShapes(llvm::StringRef op, mlir::RankedTensorType a,
                                                           mlir::RankedTensorType b);

/// Requires \p type to have shape \p expected.
llvm::Error expectShape(llvm::StringRef op, llvm::StringRef name, mlir::RankedTensorType type,
                        llvm::ArrayRef<int64_t> expected);

llvm::Error expectRank(llvm::StringRef op, llvm::StringRef name, mlir::RankedTensorType type, int64_t rank);

/// Requires every one of \p types to have rank 0.
llvm::Error expectScalars(llvm::StringRef op, llvm::ArrayRef<mlir::RankedTensorType> types);

/// Requires a flag (i1), or else a scale or norm (f32, f64), which attributes of an update ask for.
llvm::Error expectElement(llvm::StringRef op, llvm::StringRef name, mlir::RankedTensorType type, bool flag);

/// The type of \p like with another shape.
mlir::RankedTensorType withShape(mlir::RankedTensorType like, llvm::ArrayRef<int64_t> extents);
mlir::RankedTensorType f32Tensor(mlir::MLIRContext *context, llvm::ArrayRef<int64_t> extents);

/// The shape of an image whose axes lie as \p axes says.
llvm::SmallVector<int64_t> imageShape(ImageAxes axes, int64_t batch, int64_t channels, int64_t height, int64_t width);

/// The shape of a loss over \p elements under the operation's `reduction`.
llvm::SmallVector<int64_t> lossShape(mlir::DictionaryAttr dictionary, llvm::ArrayRef<int64_t> elements);

/// absl::StatusOr as llvm::Expected, with the operation's name in front.
template <typename T> llvm::Expected<T> toExpected(llvm::StringRef op, absl::StatusOr<T> result) {
  if (result.ok())
    return *std::move(result);
  return inferenceError("{0}: {1}", op, std::string(result.status().message()));
}

/// An axis in [-rank, rank) as one in [0, rank).
llvm::Expected<int64_t> normalAxis(llvm::StringRef op, int64_t axis, int64_t rank);

// Rules that several operations share.

/// One result of the first operand's type, whose shape every operand must have.
InferredTypes inferAllSameShape(mlir::TypeRange operands, const OperandNames &given);
/// Two operands under broadcasting.
InferredTypes inferBroadcast(mlir::TypeRange operands, const OperandNames &given);
/// Two operands under broadcasting, which are compared: the result is i1.
InferredTypes inferComparison(mlir::TypeRange operands, const OperandNames &given);
/// The derivative of `minimum` or `maximum` from dy, a and b, which has dy's shape before broadcasting is undone.
InferredTypes inferExtremumGrad(mlir::TypeRange operands, const OperandNames &given);
/// A convolution of image, weight and perhaps a bias, whose result has shape \p result with \p channels channels.
InferredTypes inferConvolution(llvm::StringRef op, llvm::ArrayRef<mlir::RankedTensorType> types,
                               llvm::ArrayRef<int64_t> result, int64_t channels);
/// A loss of two operands of one shape; messages call the second one \p target.
InferredTypes inferElementLoss(mlir::TypeRange operands, mlir::DictionaryAttr dictionary, const OperandNames &given,
                               llvm::StringRef target);
/// The derivative of such a loss by its first operand; dloss stands in front of the loss's operands.
InferredTypes inferElementLossGrad(mlir::TypeRange operands, mlir::DictionaryAttr dictionary, const OperandNames &given,
                                   llvm::StringRef target);
/// The one operand reduced over the attribute `axes`, which stay with extent 1 where `keep_dims` holds.
InferredTypes inferReduction(mlir::TypeRange operands, mlir::DictionaryAttr dictionary, const OperandNames &given);
/// The same for a tensor that is an operand among others.
InferredTypes inferReduction(mlir::RankedTensorType x, mlir::DictionaryAttr dictionary, llvm::StringRef op);

/// The error "result <number> is <type>", which its user goes on with.
mlir::InFlightDiagnostic resultError(mlir::OpResult result);

/// The yield at the end of the block of \p op. An error where another operation ends it: the trait that says so is
/// verified behind the operation.
mlir::FailureOr<YieldOp> yieldOf(mlir::Operation *op);

} // namespace mpc

// NOLINTBEGIN(bugprone-macro-parentheses): a name that is defined cannot stand in parentheses.
// Returns the error of a failed Expected, else defines the value.
#define MPC_ASSIGN_OR_RETURN(Value, Expression)                                                                        \
  auto Value##OrError = (Expression);                                                                                  \
  if (!Value##OrError)                                                                                                 \
    return Value##OrError.takeError();                                                                                 \
  auto Value = std::move(*Value##OrError)
// NOLINTEND(bugprone-macro-parentheses)

#define MPC_RETURN_IF_ERROR(Expression)                                                                                \
  if (llvm::Error Err = (Expression))                                                                                  \
  return Err
