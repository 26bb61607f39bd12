// The Cells and precision scopes that a trace is in. Not part of the public API.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "compiler/module/graph_builder.h"
#include "frontend/graph/precision_scope.h"
#include "kernels/dtype.h"

namespace mpc::nn {
class Cell;
}  // namespace mpc::nn

namespace mpc::internal {

/// An error (INVALID_ARGUMENT) with the path of the Cell that it happened in.
absl::Status ErrorAt(const std::string& path, const std::string& message);

/// The Cells that are running, outermost first, and the scope that each gives to its operations.
class CellStack {
 public:
  /// `networks` are the Cells that an AMP level acts in. Their floating outputs are rounded to `network_outputs`.
  explicit CellStack(std::vector<const nn::Cell*> networks, std::optional<DType> network_outputs = std::nullopt)
      : networks_(std::move(networks)), network_outputs_(network_outputs) {}

  /// Enters `cell` even where that is an error. `call` is its number in CellCalls, 0 if it has none. Errors: the Cell
  /// that calls it does not register it, and it needs a name; ToFloat was given no floating type.
  absl::Status Enter(nn::Cell& cell, std::size_t call);
  void Leave() { frames_.pop_back(); }

  /// The innermost Cell; null outside of all Cells and directly in a FixedScope.
  const nn::Cell* innermost() const { return frames_.empty() ? nullptr : frames_.back().cell; }
  /// The number in CellCalls of the innermost Cell's call; 0 if there is none.
  std::size_t call() const { return frames_.empty() ? 0 : frames_.back().call; }
  /// The type that floating outputs of the innermost Cell are rounded to, if it is a network. A network that is
  /// differentiated itself returns its loss first and is left alone.
  std::optional<DType> rounded_outputs() const;
  /// Errors: `cell` is the innermost one, it is not registered, and it asks whether it trains. SetTrain has not reached
  /// it.
  absl::Status CheckModeRead(const nn::Cell& cell) const;

  /// `cell` is differentiated until LeaveLoss; null where a function without a Cell is.
  void EnterLoss(const nn::Cell* cell) { losses_.push_back(cell); }
  void LeaveLoss() { losses_.pop_back(); }

  /// amp::AutoCast.
  void EnterPrecision(PrecisionScope scope) { precision_.push_back(std::move(scope)); }
  void LeavePrecision() { precision_.pop_back(); }

  /// The scope of the innermost Cell.
  compiler::Scope scope() const { return frames_.empty() ? compiler::Scope() : frames_.back().scope; }
  /// The scope of an operation: with the level and the pins of the innermost amp::AutoCast.
  compiler::Scope ScopeOf(std::string_view op) const;
  /// What decides the precision of a call that begins now.
  SurroundingPrecision precision() const;
  std::string path() const { return scope().path; }

  /// While it lives, operations have a scope that no Cell gives them.
  class FixedScope {
   public:
    FixedScope(CellStack& cells, compiler::Scope scope) : cells_(cells) {
      cells_.frames_.push_back({nullptr, std::move(scope)});
    }
    /// Operations have the path `path`, outside every network. Optimizers use it: they are no Cells.
    FixedScope(CellStack& cells, std::string path) : FixedScope(cells, compiler::Scope{.path = std::move(path)}) {}
    ~FixedScope() { cells_.frames_.pop_back(); }
    FixedScope(const FixedScope&) = delete;
    FixedScope& operator=(const FixedScope&) = delete;

   private:
    CellStack& cells_;
  };

 private:
  struct Frame {
    nn::Cell* cell = nullptr;
    compiler::Scope scope;
    std::size_t call = 0;
    const nn::Cell* forgotten_by = nullptr;  ///< the calling Cell, where that does not register this one
  };

  bool IsNetwork(const nn::Cell* cell) const;
  bool InLoss() const;

  std::vector<const nn::Cell*> networks_;
  std::optional<DType> network_outputs_;
  std::vector<Frame> frames_;
  std::vector<PrecisionScope> precision_;
  std::vector<const nn::Cell*> losses_;  ///< Cells that are differentiated themselves
  std::int64_t recomputed_calls_ = 0;    ///< calls of Cells with Recompute()
};

}  // namespace mpc::internal
