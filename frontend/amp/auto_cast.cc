#include "frontend/amp/auto_cast.h"

#include "compiler/dialect/operation_names.h"
#include "frontend/graph/amp_options.h"
#include "frontend/graph/trace.h"

namespace mpc::amp {
namespace {

/// The mnemonics of the operations that a list names. Fails the trace for an entry that is no operation.
std::vector<std::string> Operations(const char* list, const std::vector<std::string>& entries,
                                    mpc::internal::Trace& trace) {
  std::vector<std::string> operations;
  for (const std::string& entry : entries) {
    const std::vector<std::string> called = operationsCalled(entry);
    if (called.empty()) {
      trace.Fail("amp::AutoCast: '" + entry + "' in " + list + " is no operation; the nearest is '" +
                 nearestOperation(entry) + "'. A Cell has ToFloat");
    }
    operations.insert(operations.end(), called.begin(), called.end());
  }
  return operations;
}

}  // namespace

AutoCast::AutoCast(const AutoCastOptions& options) : traced_(mpc::internal::Trace::Current() != nullptr) {
  if (!traced_) {
    mpc::internal::CountUntracedScope(1);
    return;
  }
  mpc::internal::Trace& trace = *mpc::internal::Trace::Current();
  mpc::internal::PrecisionScope scope{.level = "O0"};
  if (options.enabled) {
    absl::StatusOr<Precision> precision = ResolveOptions({.level = options.level.empty() ? "O1" : options.level,
                                                          .dtype = options.dtype,
                                                          .allow_add = options.allow_add,
                                                          .deny_add = options.deny_add},
                                                         Front::kInitialize);
    if (precision.ok()) {
      scope.level = precision->level;
      if (scope.level != "O0") scope.low = precision->dtype;
      scope.low_operations = Operations("allow_add", precision->lists.allow, trace);
      scope.f32_operations = Operations("deny_add", precision->lists.deny, trace);
    } else {
      trace.Fail("amp::AutoCast: " + std::string(precision.status().message()));
    }
  }
  trace.cells().EnterPrecision(std::move(scope));
}

AutoCast::~AutoCast() {
  if (traced_) {
    mpc::internal::Trace::Current()->cells().LeavePrecision();
  } else {
    mpc::internal::CountUntracedScope(-1);
  }
}

}  // namespace mpc::amp
