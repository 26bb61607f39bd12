// The first result of a replayed step that is not finite.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "frontend/state/step_capsule.h"
#include "tools/support/program_results.h"

namespace mpc::tools {

/// Looks at each result of the step of `capsule`, which outlives it. A fused operation shows what it writes alone.
class FirstBadResult {
 public:
  explicit FirstBadResult(const StepCapsule& capsule) : capsule_(capsule) {}

  /// A ReplayObserver.
  void See(std::int64_t run, const runtime::ObservedResult& seen);

  /// Lines that name state and inputs that are not finite before the step, then the operation and the result.
  std::string Describe() const;

 private:
  const StepCapsule& capsule_;
  std::optional<ResultPlace> place_;
  std::int64_t not_finite_ = 0;  ///< elements of that result
};

}  // namespace mpc::tools
