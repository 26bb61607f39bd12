// Readers and writers of the dialect's discardable attributes on operations. mpc_base.td says what each means.
#pragma once

#include "compiler/dialect/dialect.h"

namespace mpc {

/// The dialect in the context of \p Op. ODS declares an accessor for each discardable attribute:
/// `dialectOf(Op).getChainAttrHelper().isAttrPresent(Op)`.
MpcDialect &dialectOf(mlir::Operation *Op);

/// Makes the function \p Op a step, which may have state.
void markStep(mlir::Operation *Op);

/// The scope in which \p Op was traced; null where it has none.
ScopeAttr scopeOf(mlir::Operation *Op);
void setScope(mlir::Operation *Op, ScopeAttr Scope);
/// The path of the Cell that \p Op was traced in; empty outside of Cells.
llvm::StringRef pathOf(mlir::Operation *Op);
/// Whether the Cell path \p Path is that of \p Cell, or of a Cell inside it.
bool liesInCell(llvm::StringRef Path, llvm::StringRef Cell);
/// "mpc.conv2d in lenet5/conv1"; the name alone outside of Cells.
std::string nameWithPath(mlir::Operation *Op);

/// The decision of mpc-amp about \p Op; null where it has decided nothing.
PrecisionAttr precisionOf(mlir::Operation *Op);
void setPrecision(mlir::Operation *Op, PrecisionAttr Precision);

/// Whether autodiff has made \p Op.
bool isMarkedBackward(mlir::Operation *Op);
void markBackward(mlir::Operation *Op);

/// The call of a Cell with Recompute() that traced \p Op; null outside of such calls. Values inside a call are computed
/// again where the backward pass reads them.
mlir::IntegerAttr recomputeCallOf(mlir::Operation *Op);
/// A null \p Call takes \p Op out of its call.
void setRecomputeCall(mlir::Operation *Op, mlir::IntegerAttr Call);

/// Gives \p New the scope of \p Old, and the mark of the backward pass where it has one.
void copyOrigin(mlir::Operation *Old, mlir::Operation *New);

} // namespace mpc
