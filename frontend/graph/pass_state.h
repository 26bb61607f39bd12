// State that passes add to a step and the trace knows nothing of. Not part of the public API.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "frontend/graph/parameter.h"
#include "runtime/program.h"
#include "runtime/state_store.h"

namespace mpc::internal {

/// The accumulator that counts the micro-steps of an update; 0 between updates.
inline constexpr char kMicroStep[] = "accumulator.micro_step";

/// The state whose value before the update the accumulator `name` keeps: "norm.moving_mean" of
/// "accumulator.old.norm.moving_mean". Empty: it keeps none.
std::string_view KeptBeforeUpdate(std::string_view name);

/// The Parameter whose gradient the lowest level `name` gathers: behind "accumulator.", and before ".loss<i>" where
/// several losses have gradients by it. Not one of `parameters`: `name` gathers no gradient, or is a higher level.
std::string GatheredBy(const std::string& name, const std::set<std::string>& parameters);

/// State entries by the role that a pass gave them.
///   "derived"      follows other state (a parameter's low copy). Rebuilt from it at any time, so in no checkpoint.
///   "accumulator"  gathers over several runs of a step. Starts from zero bytes; saved like any other state. One that
///                  keeps what a statistic was before the update starts from the statistic: see Bind.
/// The Programs of a Model share one object, so that each finds what another one left.
class PassState {
 public:
  struct Bound {
    std::vector<Parameter> accumulators;                        ///< part of the Model's state
    std::vector<std::shared_ptr<runtime::StateEntry>> derived;  ///< no part of the Model's state
  };

  /// Returns the entries of those `bindings` that have one of these roles and whose name is not among `known`. An entry
  /// is found by name, or created. A derived entry of another type than an earlier Program's takes its place. Where
  /// Parameters among `known` have taken the place of others, all accumulators are created anew: an update begins. An
  /// accumulator that keeps a value of `known` from before the update may be created inside it. No earlier Program has
  /// moved that value then, so it starts from the present one. Errors (INVALID_ARGUMENT): an earlier Program gave the
  /// name to another role, or to an accumulator of another type. Errors also: those of initial values and of reading.
  absl::StatusOr<Bound> Bind(absl::Span<const runtime::StateBinding> bindings, absl::Span<const Parameter> known);

  /// Every accumulator, in the order of creation.
  const std::vector<Parameter>& accumulators() const { return accumulators_; }
  /// Every derived entry, in the order of creation.
  const std::vector<std::shared_ptr<runtime::StateEntry>>& derived() const { return derived_; }
  /// The derived entry called `name`, or null.
  std::shared_ptr<runtime::StateEntry> FindDerived(std::string_view name) const;
  /// The accumulator for a saved entry: found, or created before any Program asks for it. Errors: those of Bind.
  absl::StatusOr<Parameter> Accumulator(std::string_view name, const TensorSpec& spec);

  /// Behind micro-step `micro_step` of `count`, which a Program with the state `bindings` ran. Those of `parameters`
  /// whose gradients it did not take, as of frozen ones, have a gradient of zero in it. So what their accumulators hold
  /// counts once and reaches no later update. `parameters` is asked where an accumulator is not among `bindings`. What
  /// the Program does not move is kept as it is, where the micro-step is the first.
  /// Errors: those of reading an accumulator.
  absl::Status AddZeros(absl::Span<const runtime::StateBinding> bindings,
                        const std::function<std::vector<std::string>()>& parameters, std::int64_t micro_step,
                        std::int64_t count);

  /// Behind a micro-step, or where state was put back: notes the contents of the values that accumulators keep from
  /// before the update.
  void NoteVersions();
  /// Behind a restore of both, where no Program may have bound the accumulators yet: notes the same of `known`.
  void NoteVersionsOf(absl::Span<const Parameter> known);
  /// Before micro-step `micro_step`. A value that was written since the last one, and not by a micro-step, takes the
  /// place of what was kept of it. So a skipped update undoes its own micro-steps alone. Writing the same value back is
  /// such a write too: versions tell it from none, and not from another. Errors: those of reading.
  absl::Status KeepWritten(std::int64_t micro_step);

 private:
  /// Contents of an accumulator and of the state whose value it keeps.
  struct Versions {
    Parameter kept;
    std::uint64_t accumulator = 0;
    std::uint64_t state = 0;
  };
  static Versions VersionsOf(const Parameter& accumulator, const Parameter& state);

  absl::StatusOr<std::shared_ptr<runtime::StateEntry>> Derived(std::string_view name, const TensorSpec& spec);

  const Parameter* FindAccumulator(std::string_view name) const;
  /// Which of `known` the accumulator `name` keeps the value of; null: none.
  static const Parameter* KeptBy(const std::string& name, absl::Span<const Parameter> known);
  /// Notes which of `known` the accumulator `name` keeps the value of, if it keeps one.
  void NoteKept(const std::string& name, absl::Span<const Parameter> known);
  /// The state that the accumulator `name` keeps the value of, as a Program or a restore says; null: none.
  const Parameter* StateKeptBy(const std::string& name) const;
  /// Gives an accumulator that keeps a value from before the update the present one.
  absl::Status KeepPresent(Parameter accumulator);
  /// Behind the first micro-step of an update, whose Program has the accumulators `bound`: what others keep is still
  /// what it was before the update.
  absl::Status BeginUpdateWithout(const std::set<std::string_view>& bound);
  /// Gives up the accumulators if a Parameter or a statistic of `known` is not the one that had its name.
  void BeginUpdateOfOthers(absl::Span<const Parameter> known);
  /// Adds a gradient of zero to the accumulator `name` and to the levels above it.
  absl::Status AddZero(const std::string& name, std::int64_t micro_step, std::int64_t count);

  std::vector<Parameter> accumulators_;
  std::vector<std::shared_ptr<runtime::StateEntry>> derived_;
  std::map<std::string, Parameter> gathered_for_;  ///< Parameters and statistics of Programs with accumulators, by name
  std::map<std::string, Parameter> kept_;          ///< what accumulators keep the value of, by their names
  std::map<std::string, Versions> versions_;       ///< contents behind the last micro-step, by accumulators' names
  std::map<const runtime::StateEntry*, std::uint64_t> zeros_;  ///< versions of accumulators that AddZero has made zero
};

}  // namespace mpc::internal
