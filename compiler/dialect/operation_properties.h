// Properties of operations, which mpc_properties.td lists and explains.
#pragma once

#include "mlir/IR/OpDefinition.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

#include "runtime/phase.h"

#include <optional>

#include "compiler/dialect/mpc_enums.h.inc"

namespace mpc {

/// The trait of an operation that has property \p P.
template <Property P> struct HasProperty {
  template <typename ConcreteOp> class Impl : public mlir::OpTrait::TraitBase<ConcreteOp, Impl> {};
};

/// Whether \p Op lists property \p P. An operation of another dialect has none.
template <Property P> bool has(mlir::Operation *Op) { return Op->hasTrait<HasProperty<P>::template Impl>(); }

/// The trait of an operation that is in phase \p P, whatever is around it.
template <Phase P> struct InPhase {
  template <typename ConcreteOp> class Impl : public mlir::OpTrait::TraitBase<ConcreteOp, Impl> {};
};

/// The phase that the kind of \p Op says; none where neighbours decide. See compiler/analysis/phases.h.
std::optional<Phase> ownPhase(mlir::Operation *Op);

/// Whether \p Op lists property \p P, for code that goes through all properties.
bool has(mlir::Operation *Op, Property P);

/// Whether \p Op becomes no instruction of a Program, because it is a view or a constant.
inline bool isViewOrConstant(mlir::Operation *Op) {
  return mlir::isa<mlir::ViewLikeOpInterface>(Op) || Op->hasTrait<mlir::OpTrait::ConstantLike>();
}

/// The value that \p V is a view of, through every view; \p V itself where it is no view.
mlir::Value behindViews(mlir::Value V);

} // namespace mpc
