// The precision that O1 and auto have decided for a Model. Not part of the
// public API.
#pragma once

#include "compiler/options/compile_options.h"
#include "compiler/options/precision_map.h"

namespace mpc::internal {

/// The type of each slot as it was decided on the training graph, here or in the run that a checkpoint continues.
/// Before there is a training graph it is what was decided on the graphs compiled so far. Every later Program is
/// compiled with it.
class PrecisionDecision {
 public:
  /// Keeps what a graph was compiled with. The first training graph overrules those before.
  void Keep(const compiler::PrecisionMap& decided, bool training);
  /// Sets the decision in `options`. A training graph takes that of a training graph alone: what Predict and Eval found
  /// before there was one does not bind it.
  void ApplyTo(compiler::CompileOptions& options, bool training) const;

  /// The decision of a training graph, or null.
  const compiler::PrecisionMap* of_training() const { return is_trained_ ? &slots_ : nullptr; }
  /// Another number after each change of what is decided: part of the key of a Program.
  int version() const { return version_; }

 private:
  compiler::PrecisionMap slots_;
  bool is_trained_ = false;
  int version_ = 0;
};

}  // namespace mpc::internal
