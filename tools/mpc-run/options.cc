#include "tools/mpc-run/options.h"

#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/executable.h"
#include "runtime/launch_limits.h"
#include "tools/support/flag_set.h"
#include "tools/support/path_flags.h"
#include "tools/support/text_data.h"

namespace mpc::tools {
namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

// What reads flags: data of one kind, and what is done, of which a run does one thing or more.
enum Reader : unsigned {
  kOfImages = 1,
  kOfText = 2,
  kOfSynthetic = 4,
  kData = kOfImages | kOfText | kOfSynthetic,
  kTrains = 8,
  kPredicts = 16,
  kDumps = 32,  // the state, without a step
  kDescribes = 64,
  kLoads = 128,    // the training step, without a step
  kReplays = 256,  // the step of a capsule
  kActions = kTrains | kPredicts | kDumps | kDescribes | kLoads | kReplays,
};

void LimitFlags(FlagSet& flags) {
  flags.Limit(kData, kOfImages, {"data-dir", "shift"});
  flags.Limit(kData, kOfText, {"text-file"});
  flags.Limit(kActions, kTrains, {"warmup", "shift", "print-every", "times"});
  flags.Limit(kActions, kTrains | kLoads, {"steps-per-launch"});
  flags.Limit(kActions, kTrains | kPredicts, {"data", "data-dir", "text-file"});
  flags.Limit(kActions, kTrains | kPredicts | kLoads, {"graph", "branches", "tune", "choice-cache", "allow-winograd"});
  flags.Limit(kActions, kTrains | kPredicts | kDumps | kLoads, {"device", "seed", "load-state", "json"});
  flags.Limit(kActions, kTrains | kPredicts | kDumps | kLoads | kReplays, {"threads"});
}

FlagSet MakeFlags(RunOptions& options) {
  FlagSet flags(
      "mpc-run", "FILE.mpcx [flags]",
      "Trains or tests with the Programs that `mpc-train MODEL --emit=FILE.mpcx` compiled. No compiler is in\n"
      "it. The batch size is the file's; rows of an epoch that fill no batch are left out.");
  flags.Integer("steps", 0, kNoLimit, "Training steps.", &options.steps);
  flags.Integer("warmup", 0, kNoLimit, "Training steps at the beginning that are not timed.", &options.warmup);
  flags.Choice("data", {"digits", "mnist", "synthetic", "text"},
               "digits (the default) comes with mpc; mnist needs --data-dir, and of t10k files alone "
               "it trains on four fifths and tests on the last one; synthetic: random numbers of any type and "
               "shape; text: bytes, for a language model.",
               &options.data);
  flags.Text("data-dir", "FOLDER",
             "Holds digits.csv.gz, or MNIST's IDX files. Default: MPC_DATA_DIR, then mpc's own data.",
             &options.data_directory);
  flags.Text("text-file", "FILE", kTextFileHelp, &options.text_path);
  flags.Integer("shift", 0, 16,
                "Moves training images at random by up to N pixels. Default: 2 for digits, 0 for mnist.",
                &options.shift);
  flags.Choice("device", {"cpu", "cuda"}, "Must be what the file was compiled for, which is the default.",
               &options.device);
  flags.Custom("graph", "on|off", "cuda: a step is one graph launch (default), or its kernels are started one by one.",
               /*is_switch=*/false, [&options](const std::string& value) {
                 if (value != "on" && value != "off") {
                   return absl::InvalidArgumentError(absl::StrCat("'", value, "' is not on or off"));
                 }
                 options.graph = value == "on";
                 return absl::OkStatus();
               });
  flags.Integer("steps-per-launch", 1, runtime::kMostStepsPerLaunch,
                "cuda: training steps that one graph launch makes.", &options.steps_per_launch);
  flags.Integer("branches", 1, runtime::kMostBranches,
                absl::StrCat("cuda: calls of a step's graph that may run at once. Default: ",
                             runtime::LoadOptions().branches, "."),
                &options.branches);
  flags.Switch("tune", "Kernels are chosen anew, by timing them here.", &options.tune);
  flags.Text("choice-cache", "FILE", "Kernels are chosen anew, from what earlier runs of --tune wrote there.",
             &options.choice_cache);
  flags.Switch(
      "allow-winograd",
      "cpu: kernels are chosen anew, and f32 convolutions with 3x3 windows may use Winograd's algorithm, which "
      "is faster and rounds more.",
      &options.allow_winograd);
  flags.Integer("seed", 0, kNoLimit, "Of initial values, random operations and row order. Default: the file's.",
                &options.seed);
  flags.Integer("threads", 0, 4096, "Of the CPU; 0: OMP_NUM_THREADS, else one for each usable processor.",
                &options.threads);
  flags.Integer("print-every", 0, kNoLimit, "Prints the loss of every N-th step.", &options.print_every);
  flags.Text("load-state", "FILE",
             "Begins from safetensors: every parameter by its name, other state where the file has it.",
             &options.load_state_path);
  flags.Text("dump-state", "FILE", "Writes all state at the end as safetensors; with --steps=0 the initial state.",
             &options.dump_state_path);
  flags.Custom("predict", "FILE", "Tests after training; writes the predictions as safetensors if FILE is given.",
               /*is_switch=*/true, [&options](const std::string& value) {
                 options.predict = value != "false";
                 options.predictions_path = value == "true" || value == "false" ? "" : value;
                 return absl::OkStatus();
               });
  flags.Text("json", "FILE", "Writes the results as JSON.", &options.json_path);
  flags.Text("times", "FILE", "Runs the timed steps instruction by instruction and writes the median of each as JSON.",
             &options.times_path);
  flags.Text(
      "replay", "FILE",
      "Repeats the step of a capsule that `mpc-train --capsule` wrote, in place of FILE.mpcx. Exit status: 0 where "
      "every bit is equal, 1 where not.",
      &options.replay_path);
  flags.Switch("describe", "Prints what the file holds.", &options.describe);
  flags.Switch("load-only",
               "Loads the training step on its device, prints the kernels in force and what loading took, and ends.",
               &options.load_only);
  LimitFlags(flags);
  return flags;
}

/// Errors: a flag of other data than those that were asked for; one that nothing of what is asked for reads.
absl::Status CheckReaders(const FlagSet& flags, const RunOptions& options) {
  const unsigned data = options.data == "text" ? kOfText : options.data == "synthetic" ? kOfSynthetic : kOfImages;
  if (const std::string unread = flags.FirstUnread(data); !unread.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(unread, " and --data=", options.data,
                                                   " contradict each other: ", unread, " is of ",
                                                   unread == "--text-file" ? "--data=text"
                                                   : data == kOfText       ? "images; --text-file names a text"
                                                                           : "images"));
  }
  const unsigned actions = (options.steps > 0 ? kTrains : 0u) | (options.predict ? kPredicts : 0u) |
                           (options.dump_state_path.empty() ? 0u : kDumps) | (options.describe ? kDescribes : 0u) |
                           (options.load_only ? kLoads : 0u);
  // Without an action there is nothing to do, which is an error of its own.
  const std::string unread = actions == 0 ? "" : flags.FirstUnread(actions);
  if (unread.empty()) return absl::OkStatus();
  const bool of_tests = flags.FirstUnread(kPredicts) != unread;
  return absl::InvalidArgumentError(absl::StrCat(unread, " is of training steps", of_tests ? " and tests" : "",
                                                 ", and nothing here would read it: give --steps=N",
                                                 of_tests ? " or --predict" : ""));
}

/// Errors: what has no use beside --replay.
absl::Status CheckReplay(const FlagSet& flags, const RunOptions& options, const std::vector<std::string>& files) {
  std::string other = files.empty() ? flags.FirstUnread(kReplays) : absl::StrCat("'", files.front(), "'");
  if (other.empty() && options.steps > 0) other = absl::StrCat("--steps=", options.steps);
  if (other.empty() && options.predict) other = "--predict";
  if (other.empty() && !options.dump_state_path.empty()) other = "--dump-state";
  if (other.empty() && options.describe) other = "--describe";
  if (other.empty() && options.load_only) other = "--load-only";
  if (other.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--replay and ", other,
                   " contradict each other: a capsule holds all of the one step; --threads is all it takes"));
}

/// Errors: what is run beside --load-only.
absl::Status CheckLoadOnly(const RunOptions& options) {
  if (!options.load_only) return absl::OkStatus();
  const std::string other = options.steps > 0                  ? absl::StrCat("--steps=", options.steps)
                            : options.predict                  ? "--predict"
                            : !options.dump_state_path.empty() ? "--dump-state"
                                                               : "";
  if (other.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--load-only and ", other, " contradict each other: --load-only ends when the step is loaded"));
}

absl::Status Check(const RunOptions& options) {
  if (absl::Status status = CheckLoadOnly(options); !status.ok()) return status;
  if (options.warmup > 0 && options.warmup >= options.steps) {
    return absl::InvalidArgumentError(
        absl::StrCat("--warmup=", options.warmup, " leaves no step of --steps=", options.steps, " to time"));
  }
  if (!options.times_path.empty() && options.steps == 0) {
    return absl::InvalidArgumentError("--times needs steps to time: give --steps=N");
  }
  if (!options.times_path.empty() && options.steps_per_launch > 1) {
    return absl::InvalidArgumentError(absl::StrCat("--times and --steps-per-launch=", options.steps_per_launch,
                                                   " contradict each other: the steps are run one by one"));
  }
  if (options.steps_per_launch > 1 && !options.graph.value_or(true)) {
    return absl::InvalidArgumentError(absl::StrCat("--steps-per-launch=", options.steps_per_launch,
                                                   " and --graph=off contradict each other: several steps are one ",
                                                   "launch only as a graph"));
  }
  if (options.branches && !options.graph.value_or(true)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--branches=", *options.branches, " and --graph=off contradict each other: only a graph has branches"));
  }
  return absl::OkStatus();
}

/// Errors: two flags that name one file, of which one is written. --dump-state may name the file of --load-state.
absl::Status CheckFiles(const RunOptions& options) {
  const bool written = true;
  return CheckPathsDiffer({{"FILE.mpcx", options.path},
                           {"--text-file", options.text_path},
                           {"--load-state", options.load_state_path},
                           {"--choice-cache", options.choice_cache, written},
                           {"--dump-state", options.dump_state_path, written},
                           {"--predict", options.predictions_path, written},
                           {"--json", options.json_path, written},
                           {"--times", options.times_path, written}},
                          {{"--dump-state", "--load-state"}});
}

}  // namespace

absl::StatusOr<RunCommandLine> ParseRunCommandLine(int argc, const char* const* argv) {
  RunCommandLine line;
  FlagSet flags = MakeFlags(line.options);
  absl::StatusOr<std::vector<std::string>> arguments = flags.Parse(argc, argv);
  if (!arguments.ok()) return arguments.status();
  if (flags.help_requested()) {
    line.help = flags.Help();
    return line;
  }
  if (!line.options.replay_path.empty()) {
    if (absl::Status status = CheckReplay(flags, line.options, *arguments); !status.ok()) return status;
    return line;
  }
  if (arguments->size() != 1) {
    return absl::InvalidArgumentError(
        arguments->empty()
            ? std::string("which file? `mpc-train MODEL --emit=FILE.mpcx` makes one")
            : absl::StrCat("one file, not ", arguments->size(), ": '", absl::StrJoin(*arguments, "', '"), "'"));
  }
  line.options.path = arguments->front();
  RunOptions& options = line.options;
  if (options.data.empty()) options.data = options.text_path.empty() ? "digits" : "text";
  if (absl::Status status = Check(options); !status.ok()) return status;
  if (absl::Status status = CheckReaders(flags, options); !status.ok()) return status;
  if (absl::Status status = CheckFiles(options); !status.ok()) return status;
  return line;
}

}  // namespace mpc::tools
