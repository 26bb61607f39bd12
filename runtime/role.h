// The roles of a step's data and state: one list for Programs, files, checkpoints, the front end and the IR.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace mpc {

/// The role of an argument or a result of a step. State outlives the step, data does not. Files hold the name, so the
/// order here may change and a name may not.
enum class Role : std::uint8_t {
  kInput,         ///< data: what the caller feeds
  kCapture,       ///< data: what the function of a network takes from the step around it
  kOutput,        ///< data: what the caller gets
  kRecord,        ///< data: what a pass adds to the results, for messages and reports
  kParameter,     ///< state: trained by an optimizer, or frozen
  kStatistic,     ///< state: running statistics of a normalisation
  kSlot,          ///< state: what an optimizer keeps for a parameter
  kStep,          ///< state: the count of steps of an optimizer
  kLearningRate,  ///< state: written by the host before a step
  kRng,           ///< state: seed and step of the random numbers
  kScaler,        ///< state: a field of a loss scaler
  kDerived,       ///< state: rebuilt from other state, in no file
  kAccumulator,   ///< state: gradients summed over micro-steps
};

/// Names in the order of Role, as IR, files and reports have them.
inline constexpr std::array<std::string_view, 13> kRoleNames = {
    "input", "capture",       "output", "record", "parameter", "statistic",  "slot",
    "step",  "learning_rate", "rng",    "scaler", "derived",   "accumulator"};

constexpr std::string_view RoleName(Role role) { return kRoleNames[static_cast<std::size_t>(role)]; }

/// Whether an entry of this role outlives the step.
constexpr bool IsState(Role role) { return role >= Role::kParameter; }

/// The role of this name; none for any other text.
constexpr std::optional<Role> ParseRole(std::string_view name) {
  for (std::size_t i = 0; i < kRoleNames.size(); ++i) {
    if (kRoleNames[i] == name) return static_cast<Role>(i);
  }
  return std::nullopt;
}

}  // namespace mpc
