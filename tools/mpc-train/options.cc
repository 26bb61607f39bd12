#include "tools/mpc-train/options.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "models/registry.h"
#include "mpc/data.h"
#include "tools/mpc-train/file_options.h"
#include "tools/mpc-train/flag_readers.h"
#include "tools/mpc-train/frontier.h"
#include "tools/mpc-train/optimizer.h"
#include "tools/mpc-train/picture_options.h"
#include "tools/mpc-train/process_options.h"
#include "tools/mpc-train/text_options.h"
#include "tools/support/amp_flags.h"
#include "tools/support/digit_data.h"
#include "tools/support/flag_set.h"

namespace mpc::tools {
namespace {

/// As the flags give them, before they are checked against each other.
struct Given {
  std::string data;
  std::string optimizer;
  GivenText text;
  bool trace_steps = false;
  std::optional<std::int64_t> epochs, steps, image_size, tokens;
  std::optional<std::int64_t> shift;
  std::optional<double> learning_rate;
  std::optional<double> momentum;
  std::optional<double> weight_decay;
  std::optional<double> clip_norm;
  std::optional<double> clip_value;
};

bool IsClassifier(const std::string& model) {
  const std::vector<std::string> names = models::ClassifierNames();
  return std::find(names.begin(), names.end(), model) != names.end();
}

/// "10-12" or "10".
absl::Status ParseTraceSteps(const std::string& value, TrainOptions& options) {
  const std::pair<std::string, std::string> ends = absl::StrSplit(value, absl::MaxSplits('-', 1));
  const std::string last = absl::StrContains(value, '-') ? ends.second : ends.first;
  if (!absl::SimpleAtoi(ends.first, &options.trace_first) || !absl::SimpleAtoi(last, &options.trace_last) ||
      options.trace_first < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", value, "' is no range of steps FIRST-LAST, which count from 1: 10-12"));
  }
  if (options.trace_first > options.trace_last) {
    return absl::InvalidArgumentError(absl::StrCat("'", value, "': the first step comes after the last one"));
  }
  return absl::OkStatus();
}

absl::Status CheckProfilePath(const std::string& path) {
  const bool known =
      path.empty() || absl::EndsWith(path, ".txt") || absl::EndsWith(path, ".json") || absl::EndsWith(path, ".svg");
  return known ? absl::OkStatus() : absl::InvalidArgumentError(absl::StrCat("'", path, "' is no .txt, .json or .svg"));
}

FlagSet MakeFlags(TrainOptions& options, Given& given) {
  FlagSet flags(
      "mpc-train", absl::StrJoin(models::TrainedNames(), "|") + " [flags]",
      "Trains a network on handwritten digits or a folder of pictures, with a test after each epoch, or on synthetic\n"
      "data. The compiled "
      "step holds forward, backward, loss scaling and optimizer; --amp-level chooses its precision.");
  for (const AmpFlag& flag : AmpFlags()) flags.Add(flag, options.amp);
  flags.Choice(
      "data", {"digits", "mnist", "pictures", "synthetic", "text"},
      absl::StrCat("digits comes with mpc (1,437 + 360 rows); mnist needs --data-dir, and of t10k files alone\n"
                   "it trains on four fifths and tests on the last one; ",
                   PicturesHelp(),
                   ";\nsynthetic: random batches of the network's shapes, without a test; text: windows of bytes, for "
                   "gpt2 and gpt2-tiny.\n"
                   "Default: digits, synthetic where a network does not take digits."),
      &given.data);
  flags.Text("data-dir", "FOLDER",
             "Holds digits.csv.gz, MNIST's IDX files, or train/ and test/ of pictures. Default: MPC_DATA_DIR, then "
             "mpc's own data.",
             &options.data_directory);
  flags.Integer(
      "epochs", 0, kNoLimit,
      "Passes over the training data; 0 only tests. Default: 15 for digits, 5 for mnist and pictures, else 1.",
      &given.epochs);
  flags.Integer("steps", 1, kNoLimit, "Steps of an epoch of synthetic data or text. Default: 100, 400 for text.",
                &given.steps);
  flags.Integer("image-size", 1, 1 << 14, "Side of photographs (resnet18-imagenet, resnet50, vit_*_224). Default: 224.",
                &given.image_size);
  flags.Integer("tokens", 1, 1 << 20,
                "Tokens of a row (bert, gpt2). Default: 128 of bert, else the network's context, 64 for gpt2 on text.",
                &given.tokens);
  AddPictureFlags(flags, options);
  AddTextFlags(flags, given.text);
  flags.Integer("batch-size", 1, kNoLimit, "Rows a step; the last batch of an epoch may be smaller.",
                &options.batch_size);
  flags.Switch("drop-remainder", "Leaves out the rows of an epoch that fill no batch, as mpc-run does.",
               &options.drop_remainder);
  flags.Integer("shift", 0, 16,
                "Moves training images at random by up to N pixels. Default: 2 for digits, 0 for mnist.", &given.shift);
  flags.Integer("accumulation", 1, 1 << 20, "Batches whose gradients' mean makes one step: those of each process.",
                &options.accumulation);
  flags.Choice("optimizer",
               {"momentum", "sgd", "adam", "adamw", "torch-adamw", "rmsprop", "lion", "adagrad", "lamb", "lars"},
               "adamw is AdamWeightDecay, torch-adamw is AdamW, with bias correction; lars is LARS around Momentum.\n"
               "Default: momentum, torch-adamw for text.",
               &given.optimizer);
  flags.Number(
      "lr", 0,
      "Learning rate at the start, of one-cycle the highest one. Default: 0.03 for momentum, 0.1 for sgd, 1 for lars,\n"
      "0.0001 for lion, 0.001 for the others, 0.003 for text.",
      &given.learning_rate);
  flags.Choice("lr-schedule", {"cosine", "constant", "exponential", "one-cycle", "restarts"},
               "cosine: falls to 0 over the epochs, changed after each; on text to a tenth, changed after each step,\n"
               "as by all that follow. exponential: falls to a hundredth, on text to a tenth. one-cycle: rises from a\n"
               "25th, then falls to a 250,000th. restarts: three cosines, each twice as long as the one before it.",
               &options.schedule);
  flags.Integer("warmup-steps", 0, kNoLimit,
                "Steps over which the learning rate rises, before cosine (which then changes after each step),\n"
                "exponential or restarts. Default: 0, on text a tenth of all steps.",
                &given.text.warmup_steps);
  flags.Number("momentum", 0, "Of momentum and lars (default 0.9) and sgd (default 0).", &given.momentum);
  flags.Number("weight-decay", 0, "Default: 0, 0.1 for text, of matrices and tables alone.", &given.weight_decay);
  flags.Number("clip-norm", 0,
               "Scales gradients down whose global norm is larger; 0: leaves them. Default: 0, 1 for text.",
               &given.clip_norm);
  flags.Number("clip-value", 0,
               "Cuts each element of the gradients off at this size, before --clip-norm; 0: leaves them. Default: 0.",
               &given.clip_value);
  flags.Integer("seed", 0, kNoLimit, "Of initial values and row order: equal seeds give equal bits.", &options.seed);
  flags.Integer(
      "threads", 0, 4096,
      "0: OMP_NUM_THREADS, else one for each usable processor. With --distributed OMP_NUM_THREADS is not read, "
      "and processes share the processors. Results are the same for any number.",
      &options.threads);
  AddDeviceFlags(flags, options);
  flags.Text("arch", "sm_80|sm_90", "What --emit compiles for with --device=cuda; no such device is needed.",
             &options.arch);
  flags.Text("load", "FILE", "Weights to begin from: any safetensors that fit.", &options.load_path);
  flags.Text("init", "FILE|FOLDER",
             "Published weights to begin from, with mpc's names or those of torchvision or transformers.",
             &options.init_path);
  flags.Integer("classes", 2, 1 << 20,
                "Classes of a ResNet or ViT; --init then leaves its head new. Default: the network's, or those of the "
                "pictures.",
                &options.classes);
  flags.Number("dropout", 0, "Rate at which bert, gpt2 and a ViT drop elements in training, below 1. Default: 0.",
               &options.dropout);
  flags.Text("freeze", "PATH,...", "Does not train the parameters below these paths: conv1,bn1,layer1.",
             &options.freeze);
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
  flags.Text(
      "emit", "FILE.mpcx",
      "Writes the compiled Programs for batches of --batch-size, for mpc-run, in place of training. Weights are\n"
      "not in it. Every network of mpc-bench and mpc-opt can be written.",
      &options.emit_path);
  flags.Switch("force", "--emit writes over a file that is there.", &options.force);
  flags.Text("summary", "FILE", "Writes the results as JSON.", &options.summary_path);
  flags.Custom("plot", "FILE.svg",
               "Draws loss, test results, learning rate and loss scale over the steps, after each epoch.",
               /*is_switch=*/false, [&options](const std::string& value) {
                 options.plot_path = value;
                 const bool known = absl::EndsWith(value, ".svg");
                 return known ? absl::OkStatus() : absl::InvalidArgumentError(absl::StrCat("'", value, "' is no .svg"));
               });
  flags.Integer("max-consecutive-skips", 0, kNoLimit,
                "Skipped steps in a row, at a loss scale that cannot shrink, that end the run; 0: none do.",
                &options.max_consecutive_skips);
  flags.Switch("diagnose-overflow",
               "Replays the first step of a run of overflows and names the first value that is not finite.",
               &options.diagnose_overflow);
  flags.Text("capsule", "FILE",
             "Writes the first bad step with its batch and all state, for `mpc-run --replay` and `mpc-opt --replay`.",
             &options.capsule_path);
  flags.Integer("capsule-at", 1, kNoLimit, "Writes this step of the run to --capsule, bad or not; the first is 1.",
                &options.capsule_at);
  flags.Text("record-hashes", "FILE",
             "Writes a hash of the state after each step, a line a step. `mpc-bisect` finds where two runs part.",
             &options.record_hashes_path);
  flags.Custom("profile-precision", "FILE",
               "Prints which exponents activations and gradients need and what the low type loses of them; writes\n"
               "FILE too: .txt, .json (for --amp-profile) or .svg.",
               /*is_switch=*/true, [&options](const std::string& value) {
                 options.profile_precision = value != "false";
                 options.profile_path = value == "true" || value == "false" ? "" : value;
                 return CheckProfilePath(options.profile_path);
               });
  flags.Text("amp-profile", "FILE",
             "A profile of the low type, written as JSON: Cells that lose more than 1 % of their values stay in f32.",
             &options.amp_profile_path);
  flags.Text("check-precision", "FILE",
             "Trains only where the step has the precision of this lock; what differs is an error, by Cell.",
             &options.check_precision_path);
  flags.Text("lock-precision", "FILE",
             "Writes the precision of the step as a lock before training; one that says the same stays as it is.",
             &options.lock_precision_path);
  AddFrontierFlags(flags, options);
  flags.Text("trace", "FILE",
             "Writes when each instruction of the steps of --trace-steps ran, for Perfetto or chrome://tracing.",
             &options.trace_path);
  flags.Custom("trace-steps", "FIRST-LAST", "Steps of this run, from 1. Default: 10-12.", /*is_switch=*/false,
               [&](const std::string& value) {
                 given.trace_steps = true;
                 return ParseTraceSteps(value, options);
               });
  flags.Switch("timing", "Prints seconds and shares of compiling's phases and passes, and of steps' waits for data.",
               &options.timing);
  flags.Switch("report", "Prints why each operation of the training step has its precision.", &options.report);
  flags.Text("report-html", "FILE",
             "Writes the same with casts, regions and memory as a page for a browser, which needs no network.",
             &options.report_html_path);
  flags.Switch("quiet", "Prints the results only, no progress.", &options.quiet);
  AddProcessFlags(flags, options);
  LimitFlags(flags);
  return flags;
}

double DefaultLearningRate(const std::string& optimizer) {
  if (optimizer == "momentum") return 0.03;
  if (optimizer == "lion") return 1e-4;
  if (optimizer == "lars") return 1;
  return optimizer == "sgd" ? 0.1 : 0.001;
}

absl::Status CheckModel(const std::vector<std::string>& arguments, TrainOptions& options) {
  const std::vector<std::string> names = models::TrainedNames();
  const std::string choices = absl::StrJoin(names, ", ");
  if (arguments.empty()) return absl::InvalidArgumentError(absl::StrCat("which model? choose ", choices));
  if (arguments.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("one model, not ", arguments.size(), ": '", absl::StrJoin(arguments, "', '"), "'"));
  }
  options.model = arguments[0];
  if (std::find(names.begin(), names.end(), options.model) != names.end()) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("unknown model '", options.model, "'; choose ", choices));
}

/// The DCGAN has its own data, optimizers and report. Errors: another value than it takes.
absl::Status CheckDcgan(const Given& given, TrainOptions& options) {
  const bool other_optimizer = !given.optimizer.empty() && given.optimizer != "adam";
  for (const auto& [refused, what] : {std::pair{options.data != "digits", "--data: it learns digits"},
                                      std::pair{other_optimizer, "--optimizer: both networks have adam"},
                                      std::pair{options.amp.num_losses != 1, "--num-losses: it has three"},
                                      std::pair{given.epochs == 0, "--epochs=0: it has no test without training"}}) {
    if (refused) return absl::InvalidArgumentError(absl::StrCat("dcgan takes no ", what));
  }
  if (options.amp.level.empty()) options.amp.level = "O0";
  options.optimizer = "adam";
  options.learning_rate = given.learning_rate.value_or(2e-4);
  options.epochs = given.epochs.value_or(20);
  return amp::ResolveOptions(options.amp, amp::Front::kInitialize).status();
}

/// After CheckData. Errors: momentum for an optimizer that has none; a number that f32 does not hold.
absl::Status CheckOptimizer(const Given& given, TrainOptions& options) {
  const bool text = options.data == kText;
  options.optimizer = !given.optimizer.empty() ? given.optimizer : std::string(text ? "torch-adamw" : "momentum");
  const bool is_sgd = options.optimizer == "sgd";
  const bool has_momentum = is_sgd || options.optimizer == "momentum" || options.optimizer == "lars";
  if (given.momentum.has_value() && !has_momentum) {
    return absl::InvalidArgumentError(
        absl::StrCat("--momentum: ", options.optimizer, " has none; choose momentum, sgd or lars"));
  }
  options.learning_rate = given.learning_rate.value_or(text ? 0.003 : DefaultLearningRate(options.optimizer));
  options.momentum = given.momentum.value_or(has_momentum && !is_sgd ? 0.9 : 0.0);
  options.weight_decay = given.weight_decay.value_or(text ? 0.1 : 0.0);
  options.clip_norm = given.clip_norm.value_or(text ? 1.0 : 0.0);
  options.clip_value = given.clip_value.value_or(0.0);
  return CheckNumbersOfUpdates(options);
}

/// Errors: flags of checkpoints that say where nothing goes.
absl::Status CheckCheckpoints(const FlagSet& flags, const TrainOptions& options) {
  if (options.save_every > 0 && options.save_path.empty()) {
    return absl::InvalidArgumentError("--save-every needs --save: it does not say where to");
  }
  if (flags.Given("keep") && !SavesToFolder(options)) {
    return absl::InvalidArgumentError("--keep needs --save=FOLDER/: a file has one state, which is written over");
  }
  if (options.epochs == 0 && SavesToFolder(options)) {
    return absl::InvalidArgumentError(absl::StrCat("--save=", options.save_path, " and --epochs=0 contradict each ",
                                                   "other: a folder gets files while training goes on; name a file"));
  }
  if (options.resume && options.resume_path.empty() && options.save_path.empty()) {
    return absl::InvalidArgumentError("--resume needs a checkpoint: --resume=FILE, or --save to say where they are");
  }
  if (options.resume && !options.load_path.empty()) {
    return absl::InvalidArgumentError("--load and --resume both say what to begin from; give one of them");
  }
  if (!options.init_path.empty() && (options.resume || !options.load_path.empty())) {
    return absl::InvalidArgumentError(absl::StrCat("--init and ", options.resume ? "--resume" : "--load",
                                                   " both say what to begin from; give one of them"));
  }
  return absl::OkStatus();
}

/// Errors: measuring with --emit for a GPU that is not here.
absl::Status CheckEmit(const TrainOptions& options) {
  if (options.emit_path.empty() || options.arch.empty()) return absl::OkStatus();
  const char* const flag = options.tune ? "--tune" : options.choice_cache_is_given ? "--choice-cache" : nullptr;
  if (flag == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--emit trains nothing and takes no ", flag, " with --arch: mpc-run takes it, on the GPU itself"));
}

/// Fills in what pictures need. Errors: data that the network does not take, with those that it does.
absl::Status CheckNetworkTakesData(TrainOptions& options) {
  if (options.data == kSynthetic) return absl::OkStatus();
  if (options.data == kPictures) return ResolvePictures(options);
  if (options.data == kText) {
    if (models::PredictsNextToken(options.model)) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("--data=text has windows of bytes, which ", options.model,
                                                   " does not take; gpt2 and gpt2-tiny do"));
  }
  if (options.classes > 0 && options.classes < kDigitClasses) {
    return absl::InvalidArgumentError(absl::StrCat("--classes=", options.classes, ": --data=", options.data, " has ",
                                                   kDigitClasses, " classes; give as many or more"));
  }
  if (IsClassifier(options.model)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--data=", options.data,
                                                 " has images of one channel and 32x32 pixels in ten classes, which ",
                                                 options.model, " does not take; --data=synthetic has its shapes"));
}

/// What the flags ask for, and else what the network takes.
std::string ChosenData(const Given& given, const std::string& model) {
  if (!given.data.empty()) return given.data;
  if (model == kDcgan) return "digits";
  if (!given.text.path.empty()) return std::string(kText);
  return IsClassifier(model) ? "digits" : std::string(kSynthetic);
}

/// Errors: a warm-up before a rate that has none.
absl::Status CheckWarmup(const TrainOptions& options) {
  if (options.warmup_steps == 0 || (options.schedule != "constant" && options.schedule != "one-cycle")) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--warmup-steps=", options.warmup_steps, " and --lr-schedule=", options.schedule, " contradict each other: ",
      options.schedule == "constant" ? "a constant rate does not rise" : "one-cycle rises by itself"));
}

std::int64_t DefaultEpochs(const std::string& data) {
  if (data == "digits") return 15;
  return data == "mnist" || data == kPictures ? 5 : 1;
}

/// Sizes of the data, and how long to train on them. Errors: a size that the network does not take.
absl::Status ResolveData(const Given& given, TrainOptions& options) {
  options.steps = given.steps.value_or(options.data == kText ? 400 : 100);
  options.image_size = given.image_size.value_or(0);
  options.tokens = given.tokens.value_or(0);
  options.layers = given.text.layers.value_or(0);
  options.width = given.text.width.value_or(0);
  options.heads = given.text.heads.value_or(0);
  options.shift = given.shift.value_or(DefaultShift(options.data));
  options.warmup_steps = given.text.warmup_steps.value_or(0);
  if (absl::Status status = CheckWarmup(options); !status.ok()) return status;
  if (options.data == kText) {
    if (absl::Status status = ResolveText(given.text, options); !status.ok()) return status;
  }
  return models::CheckWorkload(options.model, SizesOf(options), FlagText);
}

/// Errors: steps to trace without a file to write them to.
absl::Status CheckTrace(const Given& given, const TrainOptions& options) {
  if (given.trace_steps && options.trace_path.empty()) {
    return absl::InvalidArgumentError("--trace-steps needs --trace=FILE: it does not say where to");
  }
  return absl::OkStatus();
}

/// Errors: a step without the file that it is written to.
absl::Status CheckCapsule(const TrainOptions& options) {
  if (options.capsule_at == 0 || !options.capsule_path.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--capsule-at=", options.capsule_at, " needs --capsule=FILE, which the step is written to"));
}

/// Errors: flags that say what is written, and contradict each other.
absl::Status CheckWritten(const FlagSet& flags, const TrainOptions& options) {
  absl::Status status = CheckCheckpoints(flags, options);
  if (status.ok()) status = CheckCapsule(options);
  if (status.ok()) status = CheckEmit(options);
  return status.ok() ? CheckFiles(options) : status;
}

}  // namespace

bool SavesToFolder(const TrainOptions& options) {
  std::error_code ignored;
  return !options.save_path.empty() &&
         (options.save_path.back() == '/' || std::filesystem::is_directory(options.save_path, ignored));
}

std::int64_t TotalSteps(const TrainOptions& options) {
  const std::int64_t epochs = std::max<std::int64_t>(options.epochs, 1);
  if (epochs > kNoLimit / options.steps) return kNoLimit;
  // Where processes train together, an epoch has complete steps alone.
  const std::int64_t of_all = options.ranks * options.accumulation;
  const std::int64_t steps =
      options.distributed ? epochs * (options.steps / of_all) : epochs * options.steps / options.accumulation;
  return std::max<std::int64_t>(steps, 1);
}

absl::Status SetRanks(std::int64_t ranks, TrainOptions& options) {
  options.ranks = ranks;
  if (options.data != kText) return absl::OkStatus();
  ResolveValidation(options);
  return ResolveWarmup(options);
}

models::WorkloadSizes SizesOf(const TrainOptions& options) {
  models::WorkloadSizes sizes{.image_size = options.image_size,
                              .classes = options.classes,
                              .tokens = options.tokens,
                              .width = options.width,
                              .layers = options.layers,
                              .heads = options.heads,
                              .dropout = options.dropout};
  if (options.data == kText) {
    sizes.vocabulary = data::kByteVocabulary;
    sizes.context = options.tokens;
  }
  return sizes;
}

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
  if (absl::Status status = CheckTrace(given, options); !status.ok()) return status;
  options.data = ChosenData(given, options.model);
  options.epochs = given.epochs.value_or(DefaultEpochs(options.data));
  const bool dcgan = options.model == kDcgan;
  if (absl::Status status = CheckFrontier(options); !status.ok()) return status;
  absl::Status status =
      dcgan ? CheckDcgan(given, options) : amp::ResolveOptions(options.amp, amp::Front::kModel).status();
  if (status.ok() && !dcgan) status = CheckNetworkTakesData(options);
  if (status.ok()) status = CheckFlagsAreRead(flags, options);
  if (status.ok()) status = CheckWritten(flags, options);
  if (status.ok()) status = CheckProcessFlags(flags, options);
  if (status.ok()) status = CheckDeviceFlags(options);
  if (status.ok() && !dcgan) status = ResolveData(given, options);
  if (status.ok() && !dcgan) status = CheckOptimizer(given, options);
  if (status.ok()) status = FinishPrecision(options);
  if (!status.ok()) return status;
  return line;
}

}  // namespace mpc::tools
