#include "tools/mpc-bench/options.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "frontend/amp/options.h"
#include "tools/mpc-bench/bench_model.h"
#include "tools/support/flag_set.h"

namespace mpc::tools {
namespace {

constexpr std::int64_t kMaxSteps = 10'000'000;
constexpr std::int64_t kMaxBatch = 1 << 20;

/// Lists between commas: every combination is a row.
struct Lists {
  std::vector<std::int64_t> batches = {BenchOptions().batch};
  std::vector<std::string> levels = {BenchOptions().amp_level};
};

const std::map<std::string, std::string>& PeerScripts() {
  static const auto* const scripts = new std::map<std::string, std::string>{{"lenet5", "torch_lenet5.py"},
                                                                            {"resnet50", "torch_resnet50.py"},
                                                                            {"resnet50-imagenet", "torch_resnet50.py"},
                                                                            {"gpt2", "torch_gpt2.py"}};
  return *scripts;
}

absl::Status ParseBatches(const std::string& value, std::vector<std::int64_t>& batches) {
  batches.clear();
  for (const absl::string_view part : absl::StrSplit(value, ',')) {
    std::int64_t batch = 0;
    if (!absl::SimpleAtoi(part, &batch) || batch < 1 || batch > kMaxBatch) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", value, "' is no list of whole numbers from 1 to ", kMaxBatch));
    }
    batches.push_back(batch);
  }
  return absl::OkStatus();
}

FlagSet MakeFlags(BenchOptions& options, Lists& lists) {
  FlagSet flags(
      "mpc-bench", absl::StrJoin(BenchModelNames(), "|") + "... [flags]",
      "Times the compiled training step of networks on made-up batches: forward, backward, loss scaling, optimizer\n"
      "and the copy of the inputs. Each run is a process of its own; a peer's runs alternate with mpc's. Several\n"
      "networks, batch sizes or levels give a table for each combination.");
  flags.Custom("batch", "N,...", "Rows a step. Default 32.", /*is_switch=*/false,
               [&lists](const std::string& value) { return ParseBatches(value, lists.batches); });
  flags.Custom("amp-level", "O0|O1|O2|O3|auto,...", "Precision of the step. Default O0.", /*is_switch=*/false,
               [&lists](const std::string& value) {
                 lists.levels = absl::StrSplit(value, ',');
                 return absl::OkStatus();
               });
  flags.Text("dtype", "f16|bf16", "The low type of O2 and O3. Default f16.", &options.dtype);
  flags.Integer("image-size", 0, 1 << 14, "Side of photographs (resnet50); 0: 224.", &options.image_size);
  flags.Integer("tokens", 0, 1 << 20, "Tokens of a row (gpt2); 0: the network's context.", &options.tokens);
  flags.Integer("threads", 1, 4096, "Threads of mpc and of the peer.", &options.threads);
  AddDeviceFlags(flags, options);
  flags.Integer("warmup", 0, kMaxSteps, "Steps of a run before the measured ones.", &options.warmup);
  flags.Integer("steps", 1, kMaxSteps, "Measured steps of a run.", &options.steps);
  flags.Integer("runs", 1, 10'000, "Runs.", &options.runs);
  flags.Text("json", "FILE", "Writes runs, percentiles and ratios as JSON.", &options.json_path);
  flags.Choice("peer", {"torch"}, "Runs PyTorch's step of the same network beside it (lenet5, resnet50, gpt2).",
               &options.peer);
  flags.Choice("peer-mode", {"eager", "graph", "compile", "max-autotune"},
               "graph: the whole step captured by hand as one CUDA graph (lenet5); the others: torch.compile.",
               &options.peer_mode);
  flags.Text("python", "PROGRAM", "The interpreter that has PyTorch.", &options.python);
  flags.Text("peer-script", "FILE", "The peer's program. Default: the network's of mpc's tools.", &options.peer_script);
  flags.Text("weights", "FILE", "Writes the initial weights, for a peer that begins from the same.",
             &options.weights_path);
  flags.Switch("single", "Measures one run in this process and prints its samples as JSON.", &options.single);
  return flags;
}

absl::Status CheckRow(const BenchOptions& row) {
  if (absl::Status status = CheckBenchModel(row); !status.ok()) return status;
  if (!row.dtype.empty() && !row.low_type().has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("--dtype: '", row.dtype, "' is not f16 or bf16"));
  }
  // An f32 row among others has no low type.
  const std::optional<DType> low = row.amp_level == "O0" ? std::nullopt : row.low_type();
  if (absl::Status status = amp::ResolveOptions({.level = row.amp_level, .dtype = low}, amp::Front::kModel).status();
      !status.ok()) {
    return status;
  }
  if (row.peer.empty()) return absl::OkStatus();
  const std::string script = PeerScriptOf(row.model);
  if (script.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--peer=", row.peer, " knows lenet5, resnet50 and gpt2 only, not ", row.model));
  }
  if (row.peer_mode == "graph" && (row.model != "lenet5" || row.device != "cuda")) {
    return absl::InvalidArgumentError(absl::StrCat("--peer-mode=graph is of lenet5 with --device=cuda, not of ",
                                                   row.model, " with --device=", row.device));
  }
  return absl::OkStatus();
}

}  // namespace

std::string PeerScriptOf(const std::string& model) {
  const auto found = PeerScripts().find(model);
  return found == PeerScripts().end() ? "" : found->second;
}

absl::StatusOr<BenchCommandLine> ParseBenchCommandLine(int argc, const char* const* argv) {
  BenchCommandLine line;
  BenchOptions options;
  Lists lists;
  FlagSet flags = MakeFlags(options, lists);
  absl::StatusOr<std::vector<std::string>> models = flags.Parse(argc, argv);
  if (!models.ok()) return models.status();
  if (flags.help_requested()) {
    line.help = flags.Help();
    return line;
  }
  if (models->empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("which model? choose among ", absl::StrJoin(BenchModelNames(), ", ")));
  }
  if (absl::Status status = CheckDeviceFlags(options); !status.ok()) return status;
  for (const std::string& model : *models) {
    for (const std::string& level : lists.levels) {
      for (const std::int64_t batch : lists.batches) {
        BenchOptions& row = line.rows.emplace_back(options);
        row.model = model;
        row.amp_level = level;
        row.batch = batch;
        if (level == "O0" && lists.levels.size() > 1) row.dtype.clear();
        if (absl::Status status = CheckRow(row); !status.ok()) return status;
      }
    }
  }
  if (options.single && line.rows.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--single measures one row, the command line asks for ", line.rows.size()));
  }
  return line;
}

}  // namespace mpc::tools
