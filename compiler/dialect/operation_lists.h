// What passes and reports know of operations beside what ODS says of them: lists, each a question with a yes or no.
#pragma once

#include "compiler/dialect/dialect.h"

namespace mpc {

//===-- Values that only move ------------------------------------------------------------------------------------===//

/// The same elements in another shape or order, or several times.
bool isMovement(mlir::Operation *Op);
/// isMovement(), stop_gradient and neg: whether the operand is a value decides whether the result is one.
bool handsOnValue(mlir::Operation *Op);
/// Moves elements along axes that its attributes name: on a permuted image it takes permuted ones.
bool movesAlongAxes(mlir::Operation *Op);
/// The result is one of the operands, element by element, or its negative: exact in any type that holds them. Data
/// movement is not among them.
bool selectsValues(mlir::Operation *Op);
/// What the result of a gradient is scaled by, its operand was scaled by.
bool keepsScale(mlir::Operation *Op);
/// Behind these a parameter is still the parameter: the same elements.
bool reordersElements(mlir::Operation *Op);
/// Behind these some of a parameter's elements are left.
bool takesParts(mlir::Operation *Op);
/// No instruction of a Program: a view, or data that is there.
bool isViewOrConstant(mlir::Operation *Op);

//===-- Arithmetic -----------------------------------------------------------------------------------------------===//

/// Computes each result element from the operand elements at the same (broadcast) position, so that it commutes with a
/// permutation of axes. Dropout is none: its mask counts elements.
bool isElementwise(mlir::Operation *Op);
/// Computes in f32 from operands of any storage types and rounds once to its result, on every device.
bool isArithmetic(mlir::Operation *Op);
/// An element takes many instructions: exponentials, random numbers.
bool isExpensive(mlir::Operation *Op);
/// An element takes one instruction.
bool isSimpleArithmetic(mlir::Operation *Op);
/// Softmax along an axis, or its gradient.
bool isAlongAnAxis(mlir::Operation *Op);
/// Sums or means over axes.
bool isSum(mlir::Operation *Op);
/// isSum() and maxima.
bool isReduction(mlir::Operation *Op);
/// Multiplies two matrices or convolves, and can apply an activation to the result.
bool takesActivation(mlir::Operation *Op);
bool isBatchNorm(mlir::Operation *Op);
/// A product that may be a scale of the user's own.
bool isProductOrQuotient(mlir::Operation *Op);

//===-- Training steps -------------------------------------------------------------------------------------------===//

/// Asks autodiff for gradients.
bool isGradientRequest(mlir::Operation *Op);
/// Written by autodiff alone; its results are cotangents.
bool isGradientOp(mlir::Operation *Op);
/// Adds gradients, which must have one scale.
bool sumsGradients(mlir::Operation *Op);
/// Scales or clips gradients, or scales the loss: with state updates, what no region of the network takes in.
bool isScaling(mlir::Operation *Op);
/// Has no precision to decide, as part of the update.
bool followsUpdate(mlir::Operation *Op);
/// Reads gradients of parameters, beside the updates themselves.
bool readsParameterGradients(mlir::Operation *Op);
/// What comes behind it is not scaled any more, or is decided by it.
bool endsScale(mlir::Operation *Op);
/// A gradient's share in a check or norm of many: without a region it costs no launch of its own.
bool isGradientPart(mlir::Operation *Op);
/// Of one decision for several flags.
bool joinsFlags(mlir::Operation *Op);
/// Decides about the whole step: computing it twice would decide twice.
bool decidesStep(mlir::Operation *Op);
/// Holds no value of the network or of its gradients.
bool isBesideNetwork(mlir::Operation *Op);

//===-- Images ---------------------------------------------------------------------------------------------------===//

/// Operands and results that are images, by position.
struct ImageValues {
  llvm::SmallVector<unsigned> Operands;
  llvm::SmallVector<unsigned> Results;
};

/// The images of an operation that has a `data_format`, whatever the shapes are; none for any other.
std::optional<ImageValues> imagesOf(mlir::Operation *Op);

//===-- All of them ----------------------------------------------------------------------------------------------===//

struct OperationList {
  llvm::StringRef Name; ///< as `mpc-opt --list-operations` prints it
  bool (*Contains)(mlir::Operation *);
};

/// Every list of this file.
llvm::ArrayRef<OperationList> operationLists();

} // namespace mpc
