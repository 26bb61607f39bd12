// The scopes of amp::AutoCast. Not part of the public API.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "compiler/module/graph_builder.h"
#include "kernels/dtype.h"

namespace mpc::internal {

/// An amp::AutoCast scope.
struct PrecisionScope {
  std::string level;
  std::optional<DType> low;
  std::vector<std::string> low_operations;  ///< pinned low inside
  std::vector<std::string> f32_operations;  ///< pinned f32 inside

  /// Writes the level, the low type and the pin of operation `op` into `scope`. A pin that is there stays.
  void Apply(std::string_view op, compiler::Scope& scope) const;
  friend bool operator==(const PrecisionScope&, const PrecisionScope&) = default;
};

/// What surrounds a call and decides the precision of the operations in it.
struct SurroundingPrecision {
  bool network = false;                 ///< inside a network that an AMP level acts in
  bool in_loss = false;                 ///< inside a Cell that is a loss
  std::optional<DType> pin;             ///< innermost Cell::ToFloat
  std::optional<PrecisionScope> scope;  ///< innermost amp::AutoCast
  friend bool operator==(const SurroundingPrecision&, const SurroundingPrecision&) = default;
};

/// Counts the amp::AutoCast scopes of this thread that were opened outside tracing.
void CountUntracedScope(int change);
/// Errors (FAILED_PRECONDITION): such a scope is open.
absl::Status CheckNoUntracedScope();

}  // namespace mpc::internal
