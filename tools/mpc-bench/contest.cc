#include "tools/mpc-bench/contest.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/mpc-bench/child_processes.h"
#include "tools/mpc-bench/peer.h"
#include "tools/mpc-bench/rank_processes.h"
#include "tools/mpc-bench/scratch_folder.h"
#include "tools/mpc-bench/subprocess.h"

namespace mpc::tools {
namespace {

/// The command line of this program with the flags that select the row's step.
std::vector<std::string> OwnCommand(const BenchOptions& row) {
  std::vector<std::string> command = {"/proc/self/exe", row.model, absl::StrCat("--batch=", row.batch),
                                      absl::StrCat("--amp-level=", row.amp_level),
                                      absl::StrCat("--threads=", row.threads)};
  for (const SizeFlag& flag : SizeFlags()) {
    if (row.sizes.*flag.size > 0) command.push_back(absl::StrCat("--", flag.name, "=", row.sizes.*flag.size));
  }
  if (!row.dtype.empty()) command.push_back(absl::StrCat("--dtype=", row.dtype));
  if (!row.loss_scale.empty()) command.push_back(absl::StrCat("--loss-scale=", row.loss_scale));
  for (std::string& flag : DeviceArguments(row)) command.push_back(std::move(flag));
  return command;
}

absl::StatusOr<RunResult> MeasureOwn(const BenchOptions& row) {
  std::vector<std::string> command = OwnCommand(row);
  command.insert(command.end(), {"--single", absl::StrCat("--warmup=", row.warmup), absl::StrCat("--steps=", row.steps),
                                 absl::StrCat("--seconds=", row.seconds)});
  if (row.ranks > 1) command.push_back(absl::StrCat("--ranks=", row.ranks));
  return MeasureRanks(command, row.ranks);
}

absl::Status WriteStartInProcess(const BenchOptions& row, const std::string& folder) {
  std::vector<std::string> command = OwnCommand(row);
  command.push_back(absl::StrCat("--start=", folder));
  return RunAndCapture(command).status();
}

/// Where the processes of this one keep compiled code.
void UseCaches(const std::string& folder) {
  ::setenv("MPC_CACHE_DIR", absl::StrCat(folder, "/mpc").c_str(), /*overwrite=*/1);
  ::setenv("TORCHINDUCTOR_CACHE_DIR", absl::StrCat(folder, "/torch").c_str(), /*overwrite=*/1);
}

}  // namespace

absl::StatusOr<std::vector<Contestant>> MeasureRow(const BenchOptions& row) {
  const absl::StatusOr<ScratchFolder> scratch = ScratchFolder::Make();
  if (!scratch.ok()) return scratch.status();
  BenchOptions measured = row;
  std::map<std::string, std::string> layouts;
  if (std::any_of(row.peers.begin(), row.peers.end(), IsTorch)) {
    if (absl::Status status = CheckTorch(row); !status.ok()) return status;
    UseCaches(scratch->Subfolder("trial"));
    measured.start_folder = scratch->Subfolder("start");
    if (absl::Status status = WriteStartInProcess(row, measured.start_folder); !status.ok()) return status;
    for (const std::string& peer : row.peers) {
      if (!IsTorch(peer)) continue;
      absl::StatusOr<std::string> layout = ChoosePeerLayout(measured, peer);
      if (!layout.ok()) return layout.status();
      layouts[peer] = *std::move(layout);
    }
  }
  UseCaches(scratch->Subfolder("cache"));
  std::vector<Contestant> contestants = {{.name = "mpc", .runs = {}}};
  for (const std::string& peer : row.peers) contestants.push_back({.name = peer, .runs = {}});
  const auto measure = [&](const std::string& name) -> absl::StatusOr<RunResult> {
    if (name == "mpc") return MeasureOwn(row);
    if (!IsTorch(name)) return MeasureOwn(OwnPeerRow(row, name));
    BenchOptions peer = measured;
    peer.peer_layout = layouts[name];
    return MeasureTorch(peer, name);
  };
  const absl::StatusOr<ChildProcesses> busy = ChildProcesses::StartBusy(row.busy);
  if (!busy.ok()) return busy.status();
  for (std::int64_t run = 0; run < row.runs; ++run) {
    for (Contestant& contestant : contestants) {
      absl::StatusOr<RunResult> result = measure(contestant.name);
      if (!result.ok()) return result.status();
      contestant.runs.push_back(*std::move(result));
    }
  }
  return contestants;
}

}  // namespace mpc::tools
