#include "tools/mpc-bench/peer.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/mpc-bench/rank_processes.h"
#include "tools/mpc-bench/report.h"
#include "tools/mpc-bench/start.h"
#include "tools/mpc-bench/subprocess.h"
#include "tools/support/percentiles.h"

namespace mpc::tools {
namespace {

/// Names of PyTorch's peers and what their scripts call them.
const std::map<std::string, std::string>& TorchModes() {
  static const auto* const modes = new std::map<std::string, std::string>{{"torch", "eager"},
                                                                          {"torch-compile", "compile"},
                                                                          {"torch-ddp", "eager"},
                                                                          {"torch-max-autotune", "max-autotune"},
                                                                          {"torch-graph", "graph"}};
  return *modes;
}

constexpr char kOwnF32[] = "mpc-f32";
constexpr char kOwnUnscaled[] = "mpc-unscaled";
constexpr char kOwnUnfused[] = "mpc-unfused";
constexpr char kOwnOneThread[] = "mpc-one-thread";
constexpr char kOwnRankAlone[] = "mpc-rank-alone";
constexpr char kOwnOneProcess[] = "mpc-one-process";
constexpr char kTorchDdp[] = "torch-ddp";

bool NeedsRanks(const std::string& peer) {
  return peer == kTorchDdp || peer == kOwnRankAlone || peer == kOwnOneProcess;
}

/// The flags that make the step of one of mpc's own peers the row's step; empty if it is another step.
std::string SameStep(const BenchOptions& row, const std::string& peer, bool scales) {
  if (peer == kOwnUnfused) return row.fuses() ? "" : "--fusion=false";
  if (peer == kOwnOneThread) return row.threads > 1 ? "" : "--threads=1";
  if (NeedsRanks(peer)) return "";
  if (row.amp_level == "O0") return "--amp-level=O0";
  return peer == kOwnUnscaled && !scales ? absl::StrCat(ModeName(row), ", which scales no loss,") : "";
}

/// A network's script.
struct Script {
  std::string name;
  bool has_layouts = true;  ///< takes --layout
  bool has_graph = false;   ///< takes --mode=graph
  std::vector<std::string> flags;
};

const std::map<std::string, Script>& Scripts() {
  static const auto* const scripts = new std::map<std::string, Script>{
      {"bert", {.name = "torch_bert.py", .has_layouts = false}},
      {"bert-tiny", {.name = "torch_bert.py", .has_layouts = false}},
      {"bnnet", {.name = "torch_bnnet.py", .has_graph = true}},
      {"gpt2", {.name = "torch_gpt2.py", .has_layouts = false}},
      {"gpt2-tiny", {.name = "torch_gpt2.py", .has_layouts = false}},
      {"lenet5", {.name = "torch_lenet5.py", .has_graph = true}},
      {"mlp", {.name = "torch_mlp.py", .has_layouts = false, .has_graph = true}},
      {"resnet18", {.name = "torch_resnet18.py", .flags = {"--channels=1"}}},
      {"resnet18-cifar", {.name = "torch_resnet18.py", .flags = {"--channels=3"}}},
      {"resnet50", {.name = "torch_resnet50.py"}},
      {"resnet50-imagenet", {.name = "torch_resnet50.py"}},
  };
  return *scripts;
}

const Script* FindScript(const std::string& model) {
  const auto found = Scripts().find(model);
  return found == Scripts().end() ? nullptr : &found->second;
}

absl::StatusOr<std::string> ScriptPath(const BenchOptions& row) {
  return PeerScript(FindScript(row.model)->name, row.peer_script);
}

/// The flags that say what network it is.
std::vector<std::string> NetworkFlags(const BenchOptions& row) {
  std::vector<std::string> flags = FindScript(row.model)->flags;
  if (row.sizes.image_size > 0) flags.push_back(absl::StrCat("--image-size=", row.sizes.image_size));
  if (const std::optional<models::WorkloadSizes> sizes = models::TokenSizesOf(row.model, row.sizes)) {
    flags.push_back(absl::StrCat("--tokens=", sizes->tokens));
    flags.push_back(absl::StrCat("--context=", sizes->context));
    flags.push_back(absl::StrCat("--vocabulary=", sizes->vocabulary));
    flags.push_back(absl::StrCat("--layers=", sizes->layers));
    flags.push_back(absl::StrCat("--width=", sizes->width));
    flags.push_back(absl::StrCat("--heads=", sizes->heads));
  }
  return flags;
}

bool ChoosesLayout(const BenchOptions& row) { return FindScript(row.model)->has_layouts; }

}  // namespace

std::vector<std::string> PeerNames() {
  std::vector<std::string> names;
  for (const auto& [name, mode] : TorchModes()) names.push_back(name);
  names.insert(names.end(), {kOwnF32, kOwnUnscaled, kOwnUnfused, kOwnOneThread});
  for (std::string& name : RankPeerNames()) names.push_back(std::move(name));
  return names;
}

std::vector<std::string> RankPeerNames() { return {kOwnRankAlone, kOwnOneProcess}; }

bool IsTorch(const std::string& peer) { return TorchModes().count(peer) > 0; }

absl::Status CheckPeer(const BenchOptions& row, const std::string& peer, bool scales) {
  const std::vector<std::string> names = PeerNames();
  if (std::find(names.begin(), names.end(), peer) == names.end()) {
    return absl::InvalidArgumentError(absl::StrCat("--peer: '", peer, "' is not one of ", absl::StrJoin(names, ", ")));
  }
  if (NeedsRanks(peer) && row.ranks == 1) {
    return absl::InvalidArgumentError(absl::StrCat("--peer=", peer, " is of several processes: it needs --ranks=N"));
  }
  if (!NeedsRanks(peer) && row.ranks > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--peer=", peer, " and --ranks=", row.ranks,
                     " contradict each other: processes that train together stand beside ", kTorchDdp, ", ",
                     absl::StrJoin(RankPeerNames(), ", ")));
  }
  if (!IsTorch(peer)) {
    const std::string reason = SameStep(row, peer, scales);
    if (reason.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("--peer=", peer, " and ", reason, " would measure the same step twice"));
  }
  const Script* const script = FindScript(row.model);
  if (script == nullptr) {
    const auto name = [](std::string* out, const auto& entry) { out->append(entry.first); };
    return absl::InvalidArgumentError(
        absl::StrCat("--peer=", peer, " knows ", absl::StrJoin(Scripts(), ", ", name), " only, not ", row.model));
  }
  if (peer == "torch-graph" && (!script->has_graph || row.device != "cuda")) {
    return absl::InvalidArgumentError(absl::StrCat("--peer=torch-graph is of lenet5, mlp and bnnet with ",
                                                   "--device=cuda, not of ", row.model, " with --device=", row.device));
  }
  return absl::OkStatus();
}

BenchOptions OwnPeerRow(const BenchOptions& row, const std::string& peer) {
  BenchOptions own = row;
  if (peer == kOwnF32) {
    own.amp_level = "O0";
    own.dtype.clear();
    own.loss_scale.clear();
  } else if (peer == kOwnUnscaled) {
    own.loss_scale = "none";
  } else if (peer == kOwnOneThread) {
    own.threads = 1;
  } else if (peer == kOwnRankAlone) {
    own.batch /= row.ranks;
    own.ranks = 1;
  } else if (peer == kOwnOneProcess) {
    own.threads *= row.ranks;
    own.ranks = 1;
  } else {
    own.fusion = false;
  }
  return own;
}

absl::StatusOr<std::string> PeerScript(const std::string& script, const std::string& given) {
  std::vector<std::string> places;
  std::error_code error;
  if (!given.empty()) {
    places = {given};
  } else {
    const std::filesystem::path executable = std::filesystem::read_symlink("/proc/self/exe", error);
    places.push_back((executable.parent_path().parent_path() / "share/mpc/peers" / script).string());
    places.push_back((std::filesystem::path(MPC_SOURCE_DIR) / "tools/peers" / script).string());
  }
  for (const std::string& place : places) {
    if (std::filesystem::is_regular_file(place, error)) return place;
  }
  return absl::NotFoundError(absl::StrCat("the peer's script is missing; tried ", absl::StrJoin(places, ", "),
                                          "; name it with --peer-script=FILE"));
}

absl::Status CheckModules(const std::string& python, const std::string& modules, const std::string& what) {
  const absl::StatusOr<std::string> found = RunAndCapture(
      {python, "-c",
       absl::StrCat("try:\n  import ", modules, "; print('ok')\nexcept Exception as error:\n  print(error)")});
  if (found.ok() && *found == "ok\n") return absl::OkStatus();
  std::string reason(found.ok() ? *found : std::string(found.status().message()));
  reason = reason.substr(0, reason.find('\n'));
  return absl::NotFoundError(
      absl::StrCat("no ", what, " for '", python, "' (", reason,
                   "); name an interpreter that has it with --python=PROGRAM, or leave --peer out"));
}

absl::Status CheckTorch(const BenchOptions& row) {
  if (absl::Status status = ScriptPath(row).status(); !status.ok()) return status;
  return CheckModules(row.python, "torch", "PyTorch");
}

absl::StatusOr<RunResult> MeasureTorch(const BenchOptions& row, const std::string& peer) {
  absl::StatusOr<std::string> script = ScriptPath(row);
  if (!script.ok()) return script.status();
  std::vector<std::string> command = {row.python,
                                      *script,
                                      absl::StrCat("--batch=", row.batch),
                                      absl::StrCat("--threads=", row.threads),
                                      absl::StrCat("--warmup=", row.warmup),
                                      absl::StrCat("--steps=", row.steps),
                                      absl::StrCat("--seconds=", row.seconds),
                                      absl::StrCat("--device=", row.device),
                                      absl::StrCat("--mode=", TorchModes().at(peer)),
                                      absl::StrCat("--amp-level=", row.amp_level),
                                      absl::StrCat("--weights=", WeightsIn(row.start_folder)),
                                      absl::StrCat("--data=", BatchesIn(row.start_folder))};
  for (std::string& flag : NetworkFlags(row)) command.push_back(std::move(flag));
  if (ChoosesLayout(row) && row.peer_layout != "auto") command.push_back(absl::StrCat("--layout=", row.peer_layout));
  if (row.allow_tf32) command.emplace_back("--allow-tf32");
  if (!row.dtype.empty()) command.push_back(absl::StrCat("--dtype=", row.dtype));
  if (row.ranks > 1) command.push_back(absl::StrCat("--ranks=", row.ranks));
  return MeasureRanks(command, row.ranks);
}

absl::StatusOr<std::string> ChoosePeerLayout(const BenchOptions& row, const std::string& peer) {
  if (!ChoosesLayout(row) || row.peer_layout != "auto") return row.peer_layout;
  constexpr std::int64_t kSteps = 20;
  std::string best;
  double least = 0;
  for (const char* layout : {"nchw", "nhwc"}) {
    BenchOptions trial = row;
    trial.peer_layout = layout;
    trial.warmup = std::min(row.warmup, kSteps);
    trial.steps = std::min(row.steps, kSteps);
    const absl::StatusOr<RunResult> result = MeasureTorch(trial, peer);
    if (!result.ok()) return result.status();
    const double seconds = PercentilesOf(result->step_seconds).median;
    if (best.empty() || seconds < least) {
      best = layout;
      least = seconds;
    }
  }
  return best;
}

}  // namespace mpc::tools
