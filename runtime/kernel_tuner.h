// Chooses among implementations and algorithms by running each of them once for its shape, and remembers the answers.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/choice_cache.h"
#include "runtime/plan_options.h"

namespace mpc::runtime {

/// The time of one run in microseconds: the least of several rounds, after runs that load code and fill caches. `run`
/// returns the time of `runs` runs in a row. Errors: those of `run`.
absl::StatusOr<double> TimeOfOneRun(const std::function<absl::StatusOr<double>(int runs)>& run);

/// Returns the time of one run, in microseconds, of the kernel that a choice names. Errors: the kernel cannot be made
/// or run.
using ChoiceTimer = std::function<absl::StatusOr<double>(const std::string& choice)>;

/// The fastest of `choices`. Those that cannot be timed are left out. There is no choice where none can be timed.
/// `first_failure` is set to the name and the error of the first one that cannot.
MeasuredChoice FastestChoice(absl::Span<const std::string> choices, const ChoiceTimer& time,
                             std::string* first_failure = nullptr);

/// The choices of one device: those of the cache, and those that tuning measures.
class KernelTuner {
 public:
  /// The choice of the cache of `options` for `key`. Where it has none and `options.tune` is set, measures the
  /// candidates now. There is no choice with fewer than two `candidates`, or where nothing was measured: the heuristics
  /// decide. Where no candidate could be timed, a warning says so once for each key. `key` names all that measurements
  /// depend on: the kernel's shapes and types, the machine, the versions of libraries. Measured choices are written now
  /// and then, so that little is lost where a long planning ends early. Errors: the cache cannot be written.
  absl::StatusOr<MeasuredChoice> Choose(const std::string& key, absl::Span<const std::string> candidates,
                                        const PlanOptions& options, const ChoiceTimer& time);
  /// Writes the measured choices for the cache of `options` that are not written yet.
  absl::Status WriteCache(const PlanOptions& options);

 private:
  ChoiceCache& CacheOf(const PlanOptions& options) {
    return caches_.try_emplace(options.choice_cache, options.choice_cache).first->second;
  }

  std::mutex mutex_;
  std::map<std::string, ChoiceCache> caches_;  ///< by path
  std::set<std::string> warned_;               ///< keys of which no candidate could be timed
};

}  // namespace mpc::runtime
