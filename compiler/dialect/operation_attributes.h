// Readers and writers of the dialect's discardable attributes on operations. mpc_base.td says what each means.
#pragma once

#include "compiler/dialect/dialect.h"

namespace mpc {

/// The dialect in the context of \p op. ODS declares an accessor for each discardable attribute:
/// `dialectOf(Op).getChainAttrHelper().isAttrPresent(Op)`.
MpcDialect &dialectOf(mlir::Operation *op);

/// Makes the function \p op a step, which may have state.
void markStep(mlir::Operation *op);

/// The scope in which \p op was traced; null where it has none.
ScopeAttr scopeOf(mlir::Operation *op);
void setScope(mlir::Operation *op, ScopeAttr scope);
/// The path of the Cell that \p op was traced in; empty outside of Cells.
llvm::StringRef pathOf(mlir::Operation *op);
/// Whether the Cell path \p path is that of \p cell, or of a Cell inside it.
bool liesInCell(llvm::StringRef path, llvm::StringRef cell);
/// "mpc.conv2d in lenet5/conv1"; the name alone outside of Cells.
std::string nameWithPath(mlir::Operation *op);

/// The decision of mpc-amp about \p op; null where it has decided nothing.
PrecisionAttr precisionOf(mlir::Operation *op);
void setPrecision(mlir::Operation *op, PrecisionAttr precision);

/// Whether autodiff has made \p op.
bool isMarkedBackward(mlir::Operation *op);
void markBackward(mlir::Operation *op);

/// Whether autodiff has differentiated a result of \p op of which mpc-amp had decided nothing.
bool isMarkedDifferentiated(mlir::Operation *op);
void markDifferentiated(mlir::Operation *op);
void unmarkDifferentiated(mlir::Operation *op);

/// The call of a Cell with Recompute() that traced \p op; null outside of such calls. Values inside a call are computed
/// again where the backward pass reads them.
mlir::IntegerAttr recomputeCallOf(mlir::Operation *op);
/// A null \p call takes \p op out of its call.
void setRecomputeCall(mlir::Operation *op, mlir::IntegerAttr call);

/// Gives \p replacement the scope of \p old, and the mark of the backward pass where it has one.
void copyOrigin(mlir::Operation *old, mlir::Operation *replacement);

} // namespace mpc
