// Properties of operations, which mpc_properties.td lists and explains.
#pragma once

#include "mlir/IR/OpDefinition.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

#include "compiler/dialect/mpc_enums.h.inc"

namespace mpc {

/// The trait of an operation that has property \p P.
template <Property P> struct HasProperty {
  template <typename ConcreteOp> class Impl : public mlir::OpTrait::TraitBase<ConcreteOp, Impl> {};
};

/// Whether \p Op lists property \p P. An operation of another dialect has none.
template <Property P> bool has(mlir::Operation *Op) { return Op->hasTrait<HasProperty<P>::template Impl>(); }

/// Whether \p Op lists property \p P, for who goes through all of them.
bool has(mlir::Operation *Op, Property P);

/// No instruction of a Program: a view, or data that is there.
inline bool isViewOrConstant(mlir::Operation *Op) {
  return mlir::isa<mlir::ViewLikeOpInterface>(Op) || Op->hasTrait<mlir::OpTrait::ConstantLike>();
}

/// What \p V is a view of, through every view: \p V itself where it is none.
mlir::Value behindViews(mlir::Value V);

} // namespace mpc
