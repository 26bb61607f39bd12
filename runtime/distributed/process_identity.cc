#include "runtime/distributed/process_identity.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace mpc::distributed {
namespace {

struct ProcessStatus {
  char state = ' ';
  std::uint64_t start = 0;
};

/// Of /proc/PID/stat the fields 3 and 22. They stand behind the name, which may hold spaces and parentheses.
std::optional<ProcessStatus> ReadStatus(std::int32_t pid) {
  constexpr std::size_t kStartAfterName = 19;
  std::array<char, 64> path;
  std::snprintf(path.data(), path.size(), "/proc/%d/stat", pid);
  const int file = ::open(path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::array<char, 1024> text;
  const ssize_t bytes = ::read(file, text.data(), text.size());
  ::close(file);
  if (bytes <= 0) return std::nullopt;
  absl::string_view fields(text.data(), static_cast<std::size_t>(bytes));
  const std::size_t name_end = fields.rfind(')');
  if (name_end == absl::string_view::npos || name_end + 2 >= fields.size()) return std::nullopt;
  const std::vector<absl::string_view> after = absl::StrSplit(fields.substr(name_end + 2), ' ');
  ProcessStatus status;
  if (after.size() <= kStartAfterName || after[0].empty()) return std::nullopt;
  if (!absl::SimpleAtoi(after[kStartAfterName], &status.start)) return std::nullopt;
  status.state = after[0][0];
  return status;
}

}  // namespace

ProcessIdentity ThisProcess() {
  ProcessIdentity self;
  self.pid = ::getpid();
  if (const std::optional<ProcessStatus> status = ReadStatus(self.pid)) self.start = status->start;
  struct stat found {};
  if (::stat("/proc/self/ns/pid", &found) == 0) self.namespace_id = found.st_ino;
  return self;
}

bool MayRun(const ProcessIdentity& process, const ProcessIdentity& self) {
  if (process.namespace_id == 0 || process.namespace_id != self.namespace_id) return true;
  if (::kill(process.pid, 0) != 0 && errno == ESRCH) return false;
  const std::optional<ProcessStatus> status = ReadStatus(process.pid);
  if (!status.has_value()) return true;
  if (status->state == 'Z' || status->state == 'X') return false;
  return process.start == 0 || status->start == process.start;
}

}  // namespace mpc::distributed
