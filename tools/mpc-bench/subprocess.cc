#include "tools/mpc-bench/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/descriptor.h"

extern char** environ;

namespace mpc::tools {
namespace {

/// Pointers to the texts, and a null behind them, as exec takes them.
std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> EnvironmentWith(const std::vector<std::string>& added) {
  std::vector<std::string> variables = added;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const absl::string_view text = *variable;
    const absl::string_view name = text.substr(0, text.find('=') + 1);
    const auto replaces = [&name](const std::string& other) { return absl::StartsWith(other, name); };
    if (std::none_of(added.begin(), added.end(), replaces)) variables.emplace_back(text);
  }
  return variables;
}

/// What messages call a command: its program, or the command line of this program itself.
std::string NameOf(const std::vector<std::string>& words) {
  if (words[0] != "/proc/self/exe") return words[0];
  return absl::StrCat("mpc-bench ", absl::StrJoin(words.begin() + 1, words.end(), " "));
}

/// A program that runs until the object goes.
class RunningProgram {
 public:
  static absl::StatusOr<RunningProgram> Start(const Command& command);
  RunningProgram(RunningProgram&& other) noexcept
      : name_(std::move(other.name_)),
        child_(std::exchange(other.child_, 0)),
        pipe_(std::move(other.pipe_)),
        output_(std::move(other.output_)) {}
  RunningProgram& operator=(RunningProgram&&) = delete;
  ~RunningProgram() {
    if (child_ == 0) return;
    ::kill(child_, SIGKILL);
    WaitForEnd();
  }

  int pipe() const { return pipe_.get(); }
  std::string& output() { return output_; }
  /// Reads what is there. Where the program has closed its output, waits for its end and returns how it ended.
  std::optional<absl::Status> Read();

 private:
  RunningProgram(std::string name, pid_t child, runtime::Descriptor pipe)
      : name_(std::move(name)), child_(child), pipe_(std::move(pipe)) {}
  int WaitForEnd();

  std::string name_;
  pid_t child_;  ///< 0: it has ended
  runtime::Descriptor pipe_;
  std::string output_;
};

absl::StatusOr<RunningProgram> RunningProgram::Start(const Command& command) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return absl::InternalError(absl::StrCat("no pipe: ", std::strerror(errno)));
  runtime::Descriptor from(ends[0]);
  const runtime::Descriptor to(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to.get(), STDOUT_FILENO);
  const std::vector<std::string> variables = EnvironmentWith(command.environment);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, command.words[0].c_str(), &actions, nullptr, Pointers(command.words).data(),
                                   Pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return absl::NotFoundError(absl::StrCat("cannot run '", command.words[0], "': ", std::strerror(error)));
  }
  return RunningProgram(NameOf(command.words), child, std::move(from));
}

int RunningProgram::WaitForEnd() {
  int status = 0;
  while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) {
  }
  child_ = 0;
  return status;
}

std::optional<absl::Status> RunningProgram::Read() {
  char buffer[4096];
  const ssize_t count = ::read(pipe_.get(), buffer, sizeof(buffer));
  if (count > 0) output_.append(buffer, static_cast<std::size_t>(count));
  if (count > 0 || (count < 0 && errno == EINTR)) return std::nullopt;
  pipe_.Close();
  const int status = WaitForEnd();
  if (WIFSIGNALED(status)) {
    return absl::InternalError(absl::StrCat("'", name_, "' was ended by signal ", WTERMSIG(status)));
  }
  if (WEXITSTATUS(status) != 0) {
    return absl::InternalError(absl::StrCat("'", name_, "' ended with status ", WEXITSTATUS(status)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> RunTogether(const std::vector<Command>& commands) {
  std::vector<RunningProgram> programs;
  for (const Command& command : commands) {
    absl::StatusOr<RunningProgram> program = RunningProgram::Start(command);
    if (!program.ok()) return program.status();
    programs.push_back(*std::move(program));
  }
  std::vector<pollfd> pipes;
  for (const RunningProgram& program : programs)
    pipes.push_back({.fd = program.pipe(), .events = POLLIN, .revents = 0});
  for (std::size_t running = programs.size(); running > 0;) {
    if (::poll(pipes.data(), pipes.size(), -1) < 0) continue;  // a signal
    for (std::size_t i = 0; i < programs.size(); ++i) {
      if (pipes[i].fd < 0 || pipes[i].revents == 0) continue;
      const std::optional<absl::Status> end = programs[i].Read();
      if (!end.has_value()) continue;
      if (!end->ok()) return *end;
      pipes[i].fd = -1;  // poll leaves it out
      --running;
    }
  }
  std::vector<std::string> outputs;
  for (RunningProgram& program : programs) outputs.push_back(std::move(program.output()));
  return outputs;
}

absl::StatusOr<std::string> RunAndCapture(const std::vector<std::string>& command) {
  absl::StatusOr<std::vector<std::string>> outputs = RunTogether({{.words = command}});
  if (!outputs.ok()) return outputs.status();
  return std::move(outputs->front());
}

}  // namespace mpc::tools
