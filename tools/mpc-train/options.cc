#include "tools/mpc-train/options.h"

#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/registry.h"
#include "runtime/executable.h"
#include "tools/support/flag_set.h"

namespace mpc::tools {
namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

/// As the flags give them, before they are checked against each other.
struct Given {
  std::string dtype;
  std::optional<std::int64_t> epochs;
  std::optional<std::int64_t> shift;
  std::optional<double> learning_rate;
  std::optional<double> momentum;
  std::optional<double> weight_decay;
};

FlagSet MakeFlags(TrainOptions& options, Given& given) {
  FlagSet flags("mpc-train", absl::StrJoin(models::ClassifierNames(), "|") + " [flags]",
                "Trains a network on handwritten digits and tests it. The compiled step holds forward, backward, loss\n"
                "scaling and optimizer; --amp-level chooses its precision.");
  flags.Text("amp-level", "O0|O2|O3",
             "O0: f32. O2: low precision, f32 norms, loss scaling. O3: low precision throughout.", &options.amp_level);
  flags.Text("dtype", "f16|bf16", "The low type of O2 and O3. Default f16.", &given.dtype);
  flags.Switch("keep-batchnorm-fp32", "Batch normalisation in f32. Default: true at O0 and O2, false at O3.",
               &options.keep_batchnorm_fp32);
  flags.Text("loss-scale", "dynamic|none|NUMBER",
             "Default: dynamic at O2 with f16, 1 with skipping at O2 with bf16, else none.", &options.loss_scale);
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
  flags.Text("load", "FILE", "A checkpoint to begin from.", &options.load_path);
  flags.Text("save", "FILE", "Writes the trained network as safetensors.", &options.save_path);
  flags.Text("summary", "FILE", "Writes the results as JSON.", &options.summary_path);
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

absl::Status CheckPrecision(const std::string& dtype, TrainOptions& options) {
  if (!dtype.empty()) {
    options.dtype = ParseDType(dtype);
    if (!options.dtype.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat("--dtype: '", dtype, "' is not f16 or bf16"));
    }
  }
  absl::StatusOr<amp::Precision> precision =
      amp::ParsePrecision(options.amp_level, options.dtype, options.keep_batchnorm_fp32);
  if (!precision.ok()) return precision.status();
  options.precision = *std::move(precision);
  if (options.loss_scale.empty()) return absl::OkStatus();
  absl::StatusOr<LossScaleConfig> config = amp::ParseLossScale(options.loss_scale);
  if (!config.ok()) return config.status();
  options.loss_scale_config = *config;
  return absl::OkStatus();
}

absl::Status CheckModel(const std::vector<std::string>& arguments, TrainOptions& options) {
  const std::string choices = absl::StrJoin(models::ClassifierNames(), ", ");
  if (arguments.empty()) return absl::InvalidArgumentError(absl::StrCat("which model? choose ", choices));
  if (arguments.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("one model, not ", arguments.size(), ": '", absl::StrJoin(arguments, "', '"), "'"));
  }
  options.model = arguments[0];
  return models::MakeClassifier(options.model).status();
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
  if (absl::Status status = CheckPrecision(given.dtype, options); !status.ok()) return status;
  if (absl::Status status = CheckOptimizer(given, options); !status.ok()) return status;
  if (absl::Status status = runtime::GetDevice(options.device).status(); !status.ok()) return status;
  options.shift = given.shift.value_or(options.data == "mnist" ? 0 : 2);
  options.epochs = given.epochs.value_or(options.data == "mnist" ? 5 : 15);
  return line;
}

}  // namespace mpc::tools
