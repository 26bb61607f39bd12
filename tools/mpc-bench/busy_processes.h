// Other work for the machine: processes that keep a processor each busy.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace mpc::tools {

/// They compute in registers until the object goes, or this process ends.
class BusyProcesses {
 public:
  /// Errors: the system starts no process; those before it have ended again.
  static absl::StatusOr<BusyProcesses> Start(std::int64_t count);
  BusyProcesses(BusyProcesses&& other) noexcept;
  BusyProcesses& operator=(BusyProcesses&&) = delete;
  ~BusyProcesses();

 private:
  BusyProcesses() = default;
  std::vector<pid_t> children_;
};

}  // namespace mpc::tools
