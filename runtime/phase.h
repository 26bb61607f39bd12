// The purposes of a training step's operations: one list for Programs, files, reports and the IR.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mpc {

/// Files hold the number, so new phases are only added at the end.
enum class Phase : std::uint8_t {
  kUnknown,   ///< instructions that an earlier version has written, and refreshes, which run before the step
  kForward,   ///< the network and its losses, and all that belongs to no other phase
  kBackward,  ///< gradients, and what is computed again for them
  kScale,     ///< multiplying the loss by its scale, and moving the scale
  kCheck,     ///< whether gradients and losses are finite
  kSkip,      ///< keeping old state by operations of its own
  kUnscale,   ///< unscaling gradients, by operations of its own
  kClip,      ///< norms and clipping, by operations of its own
  kUpdate,    ///< optimizers, running statistics, counters, with what they unscale, clip and skip in their own pass
};

inline constexpr Phase kLastPhase = Phase::kUpdate;

/// Names in the order of Phase, as reports have them.
inline constexpr std::array<std::string_view, 9> kPhaseNames = {"unknown", "forward", "backward", "scale", "check",
                                                                "skip",    "unscale", "clip",     "update"};

static_assert(kPhaseNames.size() == static_cast<std::size_t>(kLastPhase) + 1);

constexpr std::string_view PhaseName(Phase phase) { return kPhaseNames[static_cast<std::size_t>(phase)]; }

/// Whether the phase exists because losses are scaled.
constexpr bool IsOfLossScaling(Phase phase) {
  return phase == Phase::kScale || phase == Phase::kCheck || phase == Phase::kSkip || phase == Phase::kUnscale;
}

}  // namespace mpc
