// What an instruction of a training step is there for.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/program.h"

namespace mpc::tools {

enum class StepPurpose {
  kCompute,  ///< forward and backward pass
  kScale,    ///< of the loss: multiplying by it, moving it
  kCheck,    ///< whether gradients and losses are finite
  kSkip,     ///< keeping old state by instructions of its own
  kUnscale,  ///< of gradients, by instructions of its own
  kClip,     ///< norms and clipping, by instructions of its own
  kUpdate,   ///< optimizers, running statistics, counters; what they unscale, clip and skip in their own pass is theirs
};

/// All of them, in order.
const std::vector<StepPurpose>& StepPurposes();

/// "compute", "scale", "check", "skip", "unscale", "clip", "update".
const char* PurposeName(StepPurpose purpose);

/// By kernel and Cell path. A finite check that a fused region makes belongs to the region: it is kCompute.
StepPurpose PurposeOf(const runtime::Program& program, const runtime::Instruction& instruction);

/// Whether it is there because losses are scaled: scale, check, skip, unscale.
bool IsOfLossScaling(StepPurpose purpose);

}  // namespace mpc::tools
