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
/// gradient unscaled. Casts, data movement and sums of equal scales keep the scale. Clipping and accumulation keep that
/// there is none. Everything else makes it unknown, and what is unknown is never wrong.
///
/// An optimizer whose `loss_scale` divides needs scaled gradients: scaled ones, or those of a seed of the same number.
/// The loss may end in products instead, by which the user may have scaled it.
class ScaleTracking {
public:
  enum class Kind {
    None,     ///< no gradient, as far as is known
    Plain,    ///< a gradient of a loss that no scaler has multiplied
    Scaled,   ///< a gradient that is scaled by `by`
    Unscaled, ///< mpc.unscale undid its scale
    Unknown,  ///< a gradient after arithmetic of the user's own, or with a seed of the user's own
  };
  struct Scale {
    Kind state = Kind::None;
    mlir::Value by;                    ///< Scaled: the scale; Unscaled: the scale that it had
    mlir::Operation *source = nullptr; ///< the operation that gave it this state
    mlir::Value parameter;             ///< what it is the gradient of, where that is known
    std::optional<double> seed;        ///< Unknown: the constant that the backward pass began with
    mlir::Value loss;                  ///< Plain, Unknown: the loss, where that is known
  };
  /// Gradients used at the wrong scale by operations of one name.
  struct Misuse {
    mlir::Operation *op = nullptr; ///< the first of them
    std::string message;
    llvm::SmallVector<std::string> parameters; ///< whose gradients, where their names are known
    llvm::SmallVector<std::pair<mlir::Operation *, std::string>> notes;
  };

  explicit ScaleTracking(mlir::func::FuncOp function);

  Scale lookup(mlir::Value v) const { return scales.lookup(v); }
  llvm::ArrayRef<Misuse> getMisuses() const { return misuses; }

private:
  void visit(mlir::Operation *op);
  /// Marks what is computed from a scale or a scaled loss.
  void followScaler(mlir::Operation *op);
  /// \p fromScaler: the loss may be scaled, in a way that is not known.
  void visitRequest(mlir::Operation *op, mlir::Value loss, mlir::Value seed, bool fromScaler,
                    mlir::ValueRange parameters, mlir::ValueRange gradients);
  /// Reports a loss that \p op scales for the second time.
  void expectUnscaledLoss(ScaleLossOp op);
  void visitUnscale(UnscaleOp op);
  /// \p op divides \p gradient by \p by.
  void expectScaled(mlir::Operation *op, mlir::Value gradient, mlir::Value by);
  void visitSum(mlir::Operation *op);
  /// \p op reads \p gradient, which must not be scaled, as \p what says. Its first result has no scale either.
  void visitUnscaled(mlir::Operation *op, const mlir::Twine &what, mlir::Value gradient);
  void visitUpdate(mlir::Operation *op);
  /// \p op divides what it updates by by \p lossScale.
  void visitDividingUpdate(mlir::Operation *op, double lossScale);
  /// \p op on a gradient that is still scaled.
  void report(mlir::Operation *op, const mlir::Twine &what, mlir::Value gradient);
  /// Joins an earlier misuse of the same kind.
  void add(mlir::Operation *op, const mlir::Twine &message, const Scale &known,
           llvm::ArrayRef<std::pair<mlir::Operation *, std::string>> notes);
  std::string describe(mlir::Value by) const;
  std::pair<mlir::Operation *, std::string> note(const Scale &known) const;

  mlir::func::FuncOp function;
  llvm::DenseMap<mlir::Value, Scale> scales;
  llvm::DenseSet<mlir::Value> fromScaler; ///< computed from a scale or a scaled loss, up to where that is divided out
  llvm::SmallVector<Misuse> misuses;
};

} // namespace mpc
