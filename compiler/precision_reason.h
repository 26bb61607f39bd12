// The words of `mpc.amp_reason`, and what they mean in a sentence.
#pragma once

#include <string>
#include <string_view>

namespace mpc::compiler {

/// "losses compute in f32 at every level" for "loss".
std::string SayReason(std::string_view reason);

/// Whether the reason hands on what other operations are pinned to: the infer rule, the minimum cut.
bool IsPropagated(std::string_view reason);

/// Whether the minimum cut decided.
bool IsCut(std::string_view reason);

} // namespace mpc::compiler
