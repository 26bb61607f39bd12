// The reasons of `#mpc.precision` as reports print them, and what they mean in a sentence.
#pragma once

#include <string>
#include <string_view>

#include "compiler/dialect/dialect.h"

namespace mpc::compiler {

/// "infer rule, list entry 'relu' (infer)", "class norm (folded)".
std::string ReasonText(PrecisionAttr precision);

/// "losses compute in f32 at every level" for "loss". Takes what ReasonText gives, and "backward" and "update" of
/// operations that follow others.
std::string SayReason(std::string_view reason);

/// Whether the operation's type follows from what other operations are pinned to: by the infer rule or the minimum cut.
/// A null \p precision does not.
bool IsPropagated(PrecisionAttr precision);

/// Whether the minimum cut decided.
bool IsCut(PrecisionAttr precision);

} // namespace mpc::compiler
