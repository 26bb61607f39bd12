#include "tools/mpc-bench/child_processes.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mpc::tools {

absl::StatusOr<ChildProcesses> ChildProcesses::Start(std::int64_t count,
                                                     const std::function<int(std::int64_t index)>& body,
                                                     const std::string& what) {
  ChildProcesses processes;
  const pid_t parent = ::getpid();
  for (std::int64_t i = 0; i < count; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      // A parent that has ended before this line sends no signal.
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::_exit(::getppid() == parent ? body(i) : 0);
    }
    if (child < 0) {
      return absl::ResourceExhaustedError(
          absl::StrCat(what, ": no process beside ", i, " others: ", std::strerror(errno)));
    }
    processes.children_.push_back(child);
  }
  return processes;
}

absl::StatusOr<ChildProcesses> ChildProcesses::StartBusy(std::int64_t count) {
  const auto compute = [](std::int64_t) -> int {
    for (volatile std::uint64_t number = 1;;) number = number * 6364136223846793005u + 1;
  };
  return Start(count, compute, "--busy");
}

ChildProcesses::ChildProcesses(ChildProcesses&& other) noexcept : children_(std::exchange(other.children_, {})) {}

ChildProcesses::~ChildProcesses() {
  for (const pid_t child : children_) ::kill(child, SIGKILL);
  for (const pid_t child : children_) {
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

}  // namespace mpc::tools
