// Chooses among implementations and algorithms by running each of them once for its shape, and remembers the answers.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/choice_cache.h"
#include "runtime/plan_options.h"

namespace mpc::runtime {

/// Microseconds of one run, from `run`, which takes those of several in a row: the least of some rounds, after runs
/// that load code and fill caches. Errors: those of `run`.
absl::StatusOr<double> TimeOfOneRun(const std::function<absl::StatusOr<double>(int runs)>& run);

/// Microseconds of one run of the kernel that a choice names. Errors: it cannot be made or run.
using ChoiceTimer = std::function<absl::StatusOr<double>(const std::string& choice)>;

/// The fastest of `choices`. What cannot be timed is left out; no choice where nothing could.
MeasuredChoice FastestChoice(absl::Span<const std::string> choices, const ChoiceTimer& time);

/// The choices of one device: those of the cache, and those that tuning measures.
class KernelTuner {
 public:
  /// What the cache of `options` has for `key`, else what `options.tune` measures now, where there are two `candidates`
  /// at least; no choice: leave it to the heuristics. `key` names all that measurements depend on: the kernel's shapes
  /// and types, the machine, the versions of libraries. What was measured is written now and then, so that little is
  /// lost where a long planning ends early. Errors: the cache cannot be written.
  absl::StatusOr<MeasuredChoice> Choose(const std::string& key, absl::Span<const std::string> candidates,
                                        const PlanOptions& options, const ChoiceTimer& time);
  /// Writes what was measured for the cache of `options` and not written yet.
  absl::Status WriteCache(const PlanOptions& options);

 private:
  ChoiceCache& CacheOf(const PlanOptions& options) {
    return caches_.try_emplace(options.choice_cache, options.choice_cache).first->second;
  }

  std::mutex mutex_;
  std::map<std::string, ChoiceCache> caches_;  ///< by path
};

}  // namespace mpc::runtime
