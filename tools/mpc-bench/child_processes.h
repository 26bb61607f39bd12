// Copies of this process that work beside it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace mpc::tools {

/// They run until the object goes, or this process ends.
class ChildProcesses {
 public:
  /// Child i calls body(i), and then ends with what it returns as exit status. This process has not used OpenMP.
  /// Errors: the system starts no process, with `what` for what asked for it; those before it have ended again.
  static absl::StatusOr<ChildProcesses> Start(std::int64_t count, const std::function<int(std::int64_t index)>& body,
                                              const std::string& what);
  /// Other work for the machine: `count` processes that compute in registers and keep a processor each busy.
  static absl::StatusOr<ChildProcesses> StartBusy(std::int64_t count);
  ChildProcesses(ChildProcesses&& other) noexcept;
  ChildProcesses& operator=(ChildProcesses&&) = delete;
  ~ChildProcesses();

 private:
  ChildProcesses() = default;
  std::vector<pid_t> children_;
};

}  // namespace mpc::tools
