// A precision level for a part of a traced program: Paddle's amp_guard.
#pragma once

#include <string>
#include <vector>

#include "frontend/graph/amp_option_value.h"

namespace mpc::amp {

struct AutoCastOptions {
  bool enabled = true;       ///< false: f32 inside, whatever the level around it
  std::string level = "O1";  ///< O0, O1, O2, O3, auto
  OptionValue dtype;         ///< f16 or bf16; left out: f16, at auto NativeLowType
  /// Operations ("softmax") that run low or in f32 inside the scope, as if Cell::ToFloat said so of them; a Cell's own
  /// ToFloat wins.
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
/// could take the level: operations, Cells and Models that run while such a scope lives answer FAILED_PRECONDITION.
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
