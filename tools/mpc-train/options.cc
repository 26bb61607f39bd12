#include "tools/mpc-train/options.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/precision_profile.h"
#include "models/registry.h"
#include "runtime/executable.h"
#include "tools/support/amp_flags.h"
#include "tools/support/flag_set.h"

namespace mpc::tools {
namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

/// As the flags give them, before they are checked against each other.
struct Given {
  std::optional<std::int64_t> epochs;
  std::optional<std::int64_t> shift;
  std::optional<double> learning_rate;
  std::optional<double> momentum;
  std::optional<double> weight_decay;
};

std::vector<std::string> ModelNames() {
  std::vector<std::string> names = models::ClassifierNames();
  names.emplace_back(kDcgan);
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status CheckProfilePath(const std::string& path) {
  const bool known =
      path.empty() || absl::EndsWith(path, ".txt") || absl::EndsWith(path, ".json") || absl::EndsWith(path, ".svg");
  return known ? absl::OkStatus() : absl::InvalidArgumentError(absl::StrCat("'", path, "' is no .txt, .json or .svg"));
}

FlagSet MakeFlags(TrainOptions& options, Given& given) {
  FlagSet flags("mpc-train", absl::StrJoin(ModelNames(), "|") + " [flags]",
                "Trains a network on handwritten digits and tests it. The compiled step holds forward, backward, loss\n"
                "scaling and optimizer; --amp-level chooses its precision.");
  for (const AmpFlag& flag : AmpFlags()) {
    flags.Custom(flag.name, flag.placeholder, flag.help, flag.is_switch,
                 [&flag, &options](const std::string& value) { return flag.set(value, options.amp); });
  }
  flags.Choice("data", {"digits", "mnist"}, "digits comes with mpc (1,437 + 360 rows); mnist needs --data-dir.",
               &options.data);
  flags.Text("data-dir", "FOLDER",
             "Holds digits.csv.gz, or MNIST's IDX files. Default: MPC_DATA_DIR, then mpc's own data.",
             &options.data_directory);
  flags.Integer("epochs", 0, kNoLimit,
                "Passes over the training data; 0 only tests. Default: 15 for digits, 5 for mnist.", &given.epochs);
  flags.Integer("batch-size", 1, kNoLimit, "Rows a step; the last batch of an epoch may be smaller.",
                &options.batch_size);
  flags.Integer("shift", 0, 16,
                "Moves training images at random by up to N pixels. Default: 2 for digits, 0 for mnist.", &given.shift);
  flags.Choice("optimizer", {"momentum", "sgd", "adam", "adamw"}, "adamw is AdamWeightDecay.", &options.optimizer);
  flags.Number("lr", 0,
               "Learning rate at the start. Default: 0.03 for momentum, 0.1 for sgd, 0.001 for adam and adamw.",
               &given.learning_rate);
  flags.Choice("lr-schedule", {"cosine", "constant"}, "cosine: falls to 0 over the epochs, changed after each.",
               &options.schedule);
  flags.Number("momentum", 0, "Of momentum (default 0.9) and sgd (default 0).", &given.momentum);
  flags.Number("weight-decay", 0, "Default 0.", &given.weight_decay);
  flags.Integer("seed", 0, kNoLimit, "Of initial values and row order: equal seeds and threads give equal bits.",
                &options.seed);
  flags.Integer("threads", 0, 4096, "0: OMP_NUM_THREADS, else one a core. Results depend on it in their last bits.",
                &options.threads);
  flags.Text("device", "cpu", "Where to run.", &options.device);
  flags.Text("load", "FILE", "Weights to begin from: any safetensors that fit.", &options.load_path);
  flags.Text("save", "FILE|FOLDER/",
             "Writes the training as safetensors: a file at the end; in a folder a file every epoch and at the end.",
             &options.save_path);
  flags.Integer("save-every", 0, kNoLimit, "Saves after every N steps instead.", &options.save_every);
  flags.Integer("keep", 0, kNoLimit, "The newest N files of --save=FOLDER/ stay; 0: all.", &options.keep);
  flags.Custom("resume", "FILE|FOLDER",
               "Goes on from a checkpoint, or from the newest of a folder, of --save if none is named, as if training\n"
               "had never stopped; --epochs counts from its beginning.",
               /*is_switch=*/true, [&options](const std::string& value) {
                 options.resume = value != "false";
                 options.resume_path = value == "true" || value == "false" ? "" : value;
                 return absl::OkStatus();
               });
  flags.Text("summary", "FILE", "Writes the results as JSON.", &options.summary_path);
  flags.Switch("diagnose-overflow",
               "Replays the first step of a run of overflows and names the first value that is not finite.",
               &options.diagnose_overflow);
  flags.Custom("profile-precision", "FILE",
               "Prints which exponents activations and gradients need and what the low type loses of them; writes\n"
               "FILE too: .txt, .json (for --amp-profile) or .svg.",
               /*is_switch=*/true, [&options](const std::string& value) {
                 options.profile_precision = value != "false";
                 options.profile_path = value == "true" || value == "false" ? "" : value;
                 return CheckProfilePath(options.profile_path);
               });
  flags.Custom("amp-profile", "FILE",
               "A profile written as JSON: Cells that lose more than 1 % of their values are kept in f32.",
               /*is_switch=*/false, [&options](const std::string& value) {
                 absl::StatusOr<std::vector<std::string>> cells = LossyCellsOfProfile(value);
                 if (!cells.ok()) return cells.status();
                 options.amp.deny_add.insert(options.amp.deny_add.end(), cells->begin(), cells->end());
                 return absl::OkStatus();
               });
  flags.Switch("timing", "Prints where compiling spent its time: phases and passes with seconds and share.",
               &options.timing);
  flags.Switch("report", "Prints why each operation of the training step has its precision.", &options.report);
  flags.Switch("quiet", "Prints the results only, no progress.", &options.quiet);
  return flags;
}

double DefaultLearningRate(const std::string& optimizer) {
  if (optimizer == "momentum") return 0.03;
  return optimizer == "sgd" ? 0.1 : 0.001;
}

absl::Status CheckModel(const std::vector<std::string>& arguments, TrainOptions& options) {
  const std::string choices = absl::StrJoin(ModelNames(), ", ");
  if (arguments.empty()) return absl::InvalidArgumentError(absl::StrCat("which model? choose ", choices));
  if (arguments.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("one model, not ", arguments.size(), ": '", absl::StrJoin(arguments, "', '"), "'"));
  }
  options.model = arguments[0];
  const std::vector<std::string> names = ModelNames();
  if (std::find(names.begin(), names.end(), options.model) != names.end()) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("unknown model '", options.model, "'; choose ", choices));
}

/// The DCGAN has its own data, optimizers and report. Errors: a flag that does not apply.
absl::Status CheckDcgan(const Given& given, TrainOptions& options) {
  const bool other_optimizer = options.optimizer != TrainOptions().optimizer && options.optimizer != "adam";
  const std::vector<std::pair<bool, const char*>> refused = {
      {options.data != "digits", "--data: it learns digits"},
      {given.shift.has_value(), "--shift"},
      {other_optimizer, "--optimizer: both networks have adam"},
      {given.momentum.has_value(), "--momentum"},
      {given.weight_decay.has_value(), "--weight-decay"},
      {!options.load_path.empty(), "--load"},
      {options.amp.num_losses != 1, "--num-losses: it has three"},
      {options.diagnose_overflow, "--diagnose-overflow"},
      {options.profile_precision, "--profile-precision"},
      {options.timing, "--timing"},
      {options.report, "--report"}};
  for (const auto& [given_here, flag] : refused) {
    if (given_here) return absl::InvalidArgumentError(absl::StrCat("dcgan takes no ", flag));
  }
  if (options.amp.level.empty()) options.amp.level = "O0";
  options.optimizer = "adam";
  options.learning_rate = given.learning_rate.value_or(2e-4);
  options.epochs = given.epochs.value_or(20);
  return amp::ResolveOptions(options.amp, amp::Front::kInitialize).status();
}

absl::Status CheckOptimizer(const Given& given, TrainOptions& options) {
  const bool has_momentum = options.optimizer == "momentum" || options.optimizer == "sgd";
  if (given.momentum.has_value() && !has_momentum) {
    return absl::InvalidArgumentError(
        absl::StrCat("--momentum: ", options.optimizer, " has none; choose momentum or sgd"));
  }
  options.learning_rate = given.learning_rate.value_or(DefaultLearningRate(options.optimizer));
  options.momentum = given.momentum.value_or(options.optimizer == "momentum" ? 0.9 : 0.0);
  options.weight_decay = given.weight_decay.value_or(0.0);
  return absl::OkStatus();
}

absl::Status CheckCheckpoints(const TrainOptions& options) {
  if (options.save_every > 0 && options.save_path.empty()) {
    return absl::InvalidArgumentError("--save-every needs --save: it does not say where to");
  }
  if (options.resume && options.resume_path.empty() && options.save_path.empty()) {
    return absl::InvalidArgumentError("--resume needs a checkpoint: --resume=FILE, or --save to say where they are");
  }
  if (options.resume && !options.load_path.empty()) {
    return absl::InvalidArgumentError("--load and --resume both say what to begin from; give one of them");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv) {
  CommandLine line;
  TrainOptions& options = line.options;
  Given given;
  FlagSet flags = MakeFlags(options, given);
  absl::StatusOr<std::vector<std::string>> arguments = flags.Parse(argc, argv);
  if (!arguments.ok()) return arguments.status();
  if (flags.help_requested()) {
    line.help = flags.Help();
    return line;
  }
  if (absl::Status status = CheckModel(*arguments, options); !status.ok()) return status;
  if (options.model == kDcgan) {
    absl::Status status = CheckDcgan(given, options);
    status.Update(CheckCheckpoints(options));
    status.Update(runtime::GetDevice(options.device).status());
    if (!status.ok()) return status;
    return line;
  }
  if (absl::Status status = amp::ResolveOptions(options.amp, amp::Front::kModel).status(); !status.ok()) return status;
  if (absl::Status status = CheckOptimizer(given, options); !status.ok()) return status;
  if (absl::Status status = CheckCheckpoints(options); !status.ok()) return status;
  if (absl::Status status = runtime::GetDevice(options.device).status(); !status.ok()) return status;
  options.shift = given.shift.value_or(options.data == "mnist" ? 0 : 2);
  options.epochs = given.epochs.value_or(options.data == "mnist" ? 5 : 15);
  return line;
}

}  // namespace mpc::tools
