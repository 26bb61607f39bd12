// The scale of gradients between a scaler and an optimizer.
#pragma once

#include "compiler/dialect/dialect.h"

#include <string>

namespace mpc {

/// Follows scales through one function, in program order, and finds where gradients are used at the wrong one.
///
/// A gradient is scaled by what mpc.scale_loss multiplied its loss by, or by a seed that is scaler state. mpc.unscale
/// by the same scale makes it unscaled. Casts, data movement and sums of equal scales keep the scale; everything else
/// makes it unknown, and what is unknown is never wrong.
class ScaleTracking {
public:
  enum class Kind {
    None,     ///< no gradient, as far as is known
    Scaled,   ///< by `By`
    Unscaled, ///< mpc.unscale undid its scale
    Unknown,  ///< a gradient after arithmetic of the user's own, or with a seed of the user's own
  };
  struct Scale {
    Kind State = Kind::None;
    mlir::Value By;                    ///< Scaled: the scale; Unscaled: the scale that it had
    mlir::Operation *Source = nullptr; ///< the operation that gave it this state
  };
  /// A gradient used at the wrong scale.
  struct Misuse {
    mlir::Operation *Op = nullptr;
    std::string Message;
    llvm::SmallVector<std::pair<mlir::Operation *, std::string>> Notes;
  };

  explicit ScaleTracking(mlir::func::FuncOp Function);

  Scale lookup(mlir::Value V) const { return Scales.lookup(V); }
  llvm::ArrayRef<Misuse> misuses() const { return Misuses; }

private:
  void visit(mlir::Operation *Op);
  void visitRequest(mlir::Operation *Op, mlir::Value Loss, mlir::Value Seed, mlir::ValueRange Gradients);
  void visitUnscale(UnscaleOp Op);
  /// \p Op divides \p Gradient by its scale.
  void expectNotUnscaled(mlir::Operation *Op, mlir::Value Gradient);
  void visitSum(mlir::Operation *Op);
  void visitClip(mlir::Operation *Op, mlir::ValueRange Gradients);
  void visitUpdate(mlir::Operation *Op);
  /// \p Op on a gradient that is still scaled.
  void report(mlir::Operation *Op, const mlir::Twine &What, mlir::Value Gradient);
  std::string describe(mlir::Value By) const;
  std::pair<mlir::Operation *, std::string> note(const Scale &Known) const;

  mlir::func::FuncOp Function;
  llvm::DenseMap<mlir::Value, Scale> Scales;
  llvm::SmallVector<Misuse> Misuses;
};

} // namespace mpc
