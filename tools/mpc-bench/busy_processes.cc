#include "tools/mpc-bench/busy_processes.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mpc::tools {
namespace {

[[noreturn]] void Compute(pid_t parent) {
  // A parent that has ended before this line sends no signal.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);
  for (volatile std::uint64_t number = 1;;) number = number * 6364136223846793005u + 1;
}

}  // namespace

absl::StatusOr<BusyProcesses> BusyProcesses::Start(std::int64_t count) {
  BusyProcesses processes;
  const pid_t parent = ::getpid();
  for (std::int64_t i = 0; i < count; ++i) {
    const pid_t child = ::fork();
    if (child == 0) Compute(parent);
    if (child < 0) {
      return absl::ResourceExhaustedError(
          absl::StrCat("--busy: no process beside ", i, " busy ones: ", std::strerror(errno)));
    }
    processes.children_.push_back(child);
  }
  return processes;
}

BusyProcesses::BusyProcesses(BusyProcesses&& other) noexcept : children_(std::exchange(other.children_, {})) {}

BusyProcesses::~BusyProcesses() {
  for (const pid_t child : children_) ::kill(child, SIGKILL);
  for (const pid_t child : children_) {
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

}  // namespace mpc::tools
