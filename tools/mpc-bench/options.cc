#include "tools/mpc-bench/options.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/amp/options.h"
#include "models/registry.h"
#include "tools/support/flag_set.h"

namespace mpc::tools {
namespace {

constexpr std::int64_t kMaxSteps = 10'000'000;

FlagSet MakeFlags(BenchOptions& options) {
  FlagSet flags(
      "mpc-bench", absl::StrJoin(models::ClassifierNames(), "|") + " [flags]",
      "Times the compiled training step of a network on made-up images: forward, backward, loss scaling, optimizer\n"
      "and the copy of the inputs. Each run is a process of its own; a peer's runs alternate with mpc's.");
  flags.Integer("batch", 1, 1 << 20, "Rows a step.", &options.batch);
  flags.Text("amp-level", "O0|O1|O2|O3|auto", "Precision of the step.", &options.amp_level);
  flags.Text("dtype", "f16|bf16", "The low type of O2 and O3. Default f16.", &options.dtype);
  flags.Integer("threads", 1, 4096, "Threads of mpc and of the peer.", &options.threads);
  flags.Integer("warmup", 0, kMaxSteps, "Steps of a run before the measured ones.", &options.warmup);
  flags.Integer("steps", 1, kMaxSteps, "Measured steps of a run.", &options.steps);
  flags.Integer("runs", 1, 10'000, "Runs.", &options.runs);
  flags.Text("json", "FILE", "Writes runs, percentiles and ratios as JSON.", &options.json_path);
  flags.Choice("peer", {"torch"}, "Runs PyTorch's eager step of the same network beside it (lenet5).", &options.peer);
  flags.Text("python", "PROGRAM", "The interpreter that has PyTorch.", &options.python);
  flags.Text("peer-script", "FILE", "The peer's program. Default: torch_lenet5.py of mpc's tools.",
             &options.peer_script);
  flags.Switch("single", "Measures one run in this process and prints its samples as JSON.", &options.single);
  return flags;
}

}  // namespace

absl::StatusOr<BenchCommandLine> ParseBenchCommandLine(int argc, const char* const* argv) {
  BenchCommandLine line;
  BenchOptions& options = line.options;
  FlagSet flags = MakeFlags(options);
  absl::StatusOr<std::vector<std::string>> arguments = flags.Parse(argc, argv);
  if (!arguments.ok()) return arguments.status();
  if (flags.help_requested()) {
    line.help = flags.Help();
    return line;
  }
  if (arguments->size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "which model? choose one of ", absl::StrJoin(models::ClassifierNames(), ", "), "; got ", arguments->size()));
  }
  options.model = arguments->front();
  if (absl::Status status = models::MakeClassifier(options.model).status(); !status.ok()) return status;
  if (!options.dtype.empty() && !options.low_type().has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("--dtype: '", options.dtype, "' is not f16 or bf16"));
  }
  if (absl::Status status =
          amp::ResolveOptions({.level = options.amp_level, .dtype = options.low_type()}, amp::Front::kModel).status();
      !status.ok()) {
    return status;
  }
  if (!options.peer.empty() && options.model != "lenet5") {
    return absl::InvalidArgumentError(absl::StrCat("--peer=", options.peer, " knows lenet5 only, not ", options.model));
  }
  return line;
}

}  // namespace mpc::tools
