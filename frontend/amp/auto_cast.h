// A precision level for a part of a traced program: Paddle's amp_guard.
#pragma once

#include <string>
#include <vector>

#include "frontend/graph/amp_option_value.h"

namespace mpc::amp {

struct AutoCastOptions {
  bool enabled = true;       ///< false: f32 inside, whatever the level around it
  std::string level = "O1";  ///< O0, O1, O2, O3, auto
  OptionValue dtype;         ///< f16 or bf16; left out: f16, or NativeLowType at level auto
  /// Names of operations ("softmax") that run in the low type (allow) or in f32 (deny) inside the scope. They act like
  /// Cell::ToFloat; a Cell's own ToFloat wins.
  std::vector<std::string> allow_add;
  std::vector<std::string> deny_add;
};

/// While it lives, operations that this thread traces run at its level; the innermost scope wins and beats the level of
/// the compilation. It belongs inside `Construct`, of a network or of a training step:
///
///     {
///       amp::AutoCast guard({.level = "O1", .dtype = "bf16"});
///       loss = network(image, label);
///     }
///
/// Losses in it stay f32. Options that ResolveOptions would refuse are an error of the trace. Outside tracing nothing
/// could take the level. Operations, Cells and Models that run while such a scope lives return FAILED_PRECONDITION.
class AutoCast {
 public:
  explicit AutoCast(const AutoCastOptions& options = {});
  ~AutoCast();
  AutoCast(const AutoCast&) = delete;
  AutoCast& operator=(const AutoCast&) = delete;

 private:
  bool traced_;
};

}  // namespace mpc::amp
