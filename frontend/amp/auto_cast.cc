#include "frontend/amp/auto_cast.h"

#include "frontend/amp/options.h"
#include "frontend/trace.h"

namespace mpc::amp {

AutoCast::AutoCast(const AutoCastOptions& options) : traced_(internal::Trace::Current() != nullptr) {
  if (!traced_) {
    internal::CountUntracedScope(1);
    return;
  }
  internal::Trace& trace = *internal::Trace::Current();
  internal::PrecisionScope scope{.level = "O0"};
  if (options.enabled) {
    absl::StatusOr<Precision> precision = ResolveOptions({.level = options.level.empty() ? "O1" : options.level,
                                                          .dtype = options.dtype,
                                                          .allow_add = options.allow_add,
                                                          .deny_add = options.deny_add},
                                                         Front::kInitialize);
    if (precision.ok()) {
      scope.level = precision->level;
      if (scope.level != "O0") scope.low = precision->dtype;
      scope.low_operations = precision->lists.allow;
      scope.f32_operations = precision->lists.deny;
    } else {
      trace.Fail("amp::AutoCast: " + std::string(precision.status().message()));
    }
  }
  trace.EnterPrecision(std::move(scope));
}

AutoCast::~AutoCast() {
  if (traced_) {
    internal::Trace::Current()->LeavePrecision();
  } else {
    internal::CountUntracedScope(-1);
  }
}

}  // namespace mpc::amp
