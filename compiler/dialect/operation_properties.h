// Properties of operations, which mpc_properties.td lists and explains.
#pragma once

#include "mlir/IR/OpDefinition.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

#include "runtime/phase.h"

#include <optional>

#include "compiler/dialect/mpc_enums.h.inc"

namespace mpc {

/// The trait of an operation that has property \p p.
template <Property P> struct HasProperty {
  template <typename ConcreteOp> class Impl : public mlir::OpTrait::TraitBase<ConcreteOp, Impl> {};
};

/// Whether \p op lists property \p p. An operation of another dialect has none.
template <Property P> bool has(mlir::Operation *op) { return op->hasTrait<HasProperty<P>::template Impl>(); }

/// The trait of an operation that is in phase \p p, whatever is around it.
template <Phase P> struct InPhase {
  template <typename ConcreteOp> class Impl : public mlir::OpTrait::TraitBase<ConcreteOp, Impl> {};
};

/// The phase that the kind of \p op says; none where neighbours decide. See compiler/analysis/phases.h.
std::optional<Phase> ownPhase(mlir::Operation *op);

/// Whether \p op lists property \p p, for code that goes through all properties.
bool has(mlir::Operation *op, Property p);

/// Whether \p op becomes no instruction of a Program, because it is a view or a constant.
inline bool isViewOrConstant(mlir::Operation *op) {
  return mlir::isa<mlir::ViewLikeOpInterface>(op) || op->hasTrait<mlir::OpTrait::ConstantLike>();
}

/// Whether \p op is a view with effects. It waits for the operation that writes what it shows. That operation reads its
/// operands until then, so nothing may write over them before. Passes move other views freely, but no wait.
bool isWait(mlir::Operation *op);

/// The value that \p v is a view of, through every view; \p v itself where it is no view.
mlir::Value behindViews(mlir::Value v);

} // namespace mpc
