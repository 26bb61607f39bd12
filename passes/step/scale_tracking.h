// The scale of gradients between a scaler and an optimizer.
#pragma once

#include "compiler/dialect/dialect.h"
#include "llvm/ADT/DenseSet.h"

#include <optional>
#include <string>

namespace mpc {

/// Follows scales through one function, in program order, and finds where gradients are used at the wrong one.
///
/// A gradient is scaled by what mpc.scale_loss multiplied its loss by, or by a seed that is scaler state. It is plain
/// where nothing of a scaler reaches its loss and the seed is one. mpc.unscale by the same scale makes a scaled
/// gradient unscaled. Casts, data movement and sums of equal scales keep the scale; everything else makes it unknown,
/// and what is unknown is never wrong. An optimizer whose `loss_scale` divides needs scaled gradients: scaled ones, or
/// those of a seed of the same number.
class ScaleTracking {
public:
  enum class Kind {
    None,     ///< no gradient, as far as is known
    Plain,    ///< a gradient of a loss that no scaler has multiplied
    Scaled,   ///< a gradient that is scaled by `By`
    Unscaled, ///< mpc.unscale undid its scale
    Unknown,  ///< a gradient after arithmetic of the user's own, or with a seed of the user's own
  };
  struct Scale {
    Kind State = Kind::None;
    mlir::Value By;                    ///< Scaled: the scale; Unscaled: the scale that it had
    mlir::Operation *Source = nullptr; ///< the operation that gave it this state
    mlir::Value Parameter;             ///< what it is the gradient of, where that is known
    std::optional<double> Seed;        ///< Unknown: the constant that the backward pass began with
    /// Unknown: the loss ends in a product, which may be a scale of the user's own. Plain: the same.
    bool MayBeScaledByHand = false;
  };
  /// Gradients used at the wrong scale by operations of one name.
  struct Misuse {
    mlir::Operation *Op = nullptr; ///< the first of them
    std::string Message;
    llvm::SmallVector<std::string> Parameters; ///< whose gradients, where their names are known
    llvm::SmallVector<std::pair<mlir::Operation *, std::string>> Notes;
  };

  explicit ScaleTracking(mlir::func::FuncOp Function);

  Scale lookup(mlir::Value V) const { return Scales.lookup(V); }
  llvm::ArrayRef<Misuse> misuses() const { return Misuses; }

private:
  void visit(mlir::Operation *Op);
  /// Marks what is computed from a scale or a scaled loss.
  void followScaler(mlir::Operation *Op);
  /// \p FromScaler: the loss may be scaled, in a way that is not known.
  void visitRequest(mlir::Operation *Op, mlir::Value Loss, mlir::Value Seed, bool FromScaler,
                    mlir::ValueRange Parameters, mlir::ValueRange Gradients);
  void visitUnscale(UnscaleOp Op);
  /// \p Op divides \p Gradient by \p By.
  void expectScaled(mlir::Operation *Op, mlir::Value Gradient, mlir::Value By);
  void visitSum(mlir::Operation *Op);
  void visitClip(mlir::Operation *Op, mlir::ValueRange Gradients);
  void visitUpdate(mlir::Operation *Op);
  /// \p Op divides what it updates by by \p LossScale.
  void visitDividingUpdate(mlir::Operation *Op, double LossScale);
  /// \p Op on a gradient that is still scaled.
  void report(mlir::Operation *Op, const mlir::Twine &What, mlir::Value Gradient);
  /// Joins an earlier misuse of the same kind.
  void add(mlir::Operation *Op, const mlir::Twine &Message, const Scale &Known,
           llvm::ArrayRef<std::pair<mlir::Operation *, std::string>> Notes);
  std::string describe(mlir::Value By) const;
  std::pair<mlir::Operation *, std::string> note(const Scale &Known) const;

  mlir::func::FuncOp Function;
  llvm::DenseMap<mlir::Value, Scale> Scales;
  llvm::DenseSet<mlir::Value> FromScaler; ///< computed from a scale or a scaled loss, up to where that is divided out
  llvm::SmallVector<Misuse> Misuses;
};

} // namespace mpc
