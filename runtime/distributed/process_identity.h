// Which process another one is, and whether it still runs.
#pragma once

#include <cstdint>

namespace mpc::distributed {

/// A process among all that this machine has run. A process id alone comes again.
struct ProcessIdentity {
  std::int32_t pid = 0;
  std::uint64_t start = 0;         ///< when it began, in ticks since the machine did; 0 where that is not known
  std::uint64_t namespace_id = 0;  ///< its namespace of process ids; 0 where that is not known
};

/// The identity of this process.
ProcessIdentity ThisProcess();

/// False where `process` has surely ended. A process of another namespace of process ids, which `self` cannot see, is
/// taken to run. A process that has ended and that its parent has not waited for has ended.
bool MayRun(const ProcessIdentity& process, const ProcessIdentity& self);

}  // namespace mpc::distributed
