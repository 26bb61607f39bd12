#include "tools/mpc-bench/rank_processes.h"

#include "absl/strings/str_cat.h"
#include "runtime/distributed/socket.h"
#include "tools/mpc-bench/subprocess.h"

namespace mpc::tools {
namespace {

constexpr char kLoopback[] = "127.0.0.1";

absl::StatusOr<int> FreePort() {
  const absl::StatusOr<runtime::Descriptor> socket = runtime::Listen(kLoopback, 0);
  if (!socket.ok()) return socket.status();
  return runtime::BoundPort(*socket);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> RunRanks(const std::vector<std::string>& command, std::int64_t ranks) {
  const absl::StatusOr<int> port = FreePort();
  if (!port.ok()) return port.status();
  std::vector<Command> commands;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    commands.push_back({.words = command,
                        .environment = {absl::StrCat("RANK=", rank), absl::StrCat("WORLD_SIZE=", ranks),
                                        absl::StrCat("LOCAL_RANK=", rank), absl::StrCat("LOCAL_WORLD_SIZE=", ranks),
                                        absl::StrCat("MASTER_ADDR=", kLoopback), absl::StrCat("MASTER_PORT=", *port),
                                        "TORCHELASTIC_USE_AGENT_STORE=False"}});
  }
  return RunTogether(commands);
}

absl::StatusOr<RunResult> MeasureRanks(const std::vector<std::string>& command, std::int64_t ranks) {
  const absl::StatusOr<std::vector<std::string>> outputs =
      ranks == 1 ? RunTogether({{.words = command}}) : RunRanks(command, ranks);
  if (!outputs.ok()) return outputs.status();
  std::vector<RunResult> results;
  for (const std::string& output : *outputs) {
    absl::StatusOr<RunResult> result = RunFromJson(output);
    if (!result.ok()) return result.status();
    results.push_back(*std::move(result));
  }
  return MergeRanks(results);
}

}  // namespace mpc::tools
