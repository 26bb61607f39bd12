#include "tools/mpc-opt/driver_options.h"

#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CommandLine.h"
#include "tools/mpc-opt/model_ranges.h"
#include "tools/support/amp_flags.h"
#include "tools/support/device_flags.h"
#include "tools/support/path_flags.h"

using namespace llvm;

namespace mpc::opt {

static cl::OptionCategory category("mpc: models, stages and reports");
static cl::extrahelp passes_help(
    "\nA file is treated as mlir-opt treats it. Passes are flags too, such as --mpc-amp=level=O2: --list-passes lists\n"
    "them, docs/passes.md describes mpc's. --help-hidden adds the options of passes, MLIR and LLVM to this text.\n");

static const std::string kModelHelp = "Print the IR of a model: " + ModelNames();
static cl::opt<std::string> model_name("model", cl::desc(kModelHelp), cl::cat(category));
static cl::opt<bool> train("train", cl::desc("The training step, not the forward function"), cl::cat(category));
static cl::opt<int64_t> batch("batch", cl::desc("Samples a step (32)"), cl::init(32), cl::cat(category));
static cl::opt<std::string> stage_name(
    "stage",
    cl::desc("traced, amp, grad, final, scheduled or program; left out: traced without "
             "--amp-level, else grad; with --report and no passes, program; with "
             "--explain and --diff, final"),
    cl::cat(category));
static cl::opt<std::string> report("report", cl::ValueOptional,
                                   cl::desc("Print the precision report as text (default) or json"), cl::cat(category));
static cl::opt<std::string> explain("explain",
                                    cl::desc("Print why an operation (conv2d), an ordinal of the report (#3) or a Cell "
                                             "path (lenet5/conv1) has its precision"),
                                    cl::cat(category));
static cl::opt<std::string> diff("diff", cl::desc("Print what changes between two levels of a model: O0,O2"),
                                 cl::cat(category));
static cl::opt<std::string> lock_path(
    "lock", cl::desc("Write the precision of a model to this file: types, reasons, casts and bytes by Cell"),
    cl::value_desc("file"), cl::cat(category));
static cl::opt<std::string> check_path("check", cl::desc("Compare the precision of a model with such a file"),
                                       cl::value_desc("file"), cl::cat(category));
static cl::opt<bool> update("update",
                            cl::desc("With --lock or --check: write the file anew where it says something else"),
                            cl::cat(category));
static cl::opt<bool> ranges("ranges",
                            cl::desc("Print which 16-bit tensors of a step cannot, may or will overflow or vanish, "
                                     "and the loss scale that follows"),
                            cl::cat(category));
static cl::opt<std::string> data_range("data-range", cl::desc("With --ranges: the interval of floating inputs, as 0,1"),
                                       cl::value_desc("low,high"), cl::cat(category));
static cl::opt<std::string> weights_path(
    "weights", cl::desc("With --ranges: the checkpoint or safetensors file that a model's parameters are taken from"),
    cl::value_desc("file"), cl::cat(category));
static cl::opt<std::string> replay_path(
    "replay",
    cl::desc("Compile the step of a capsule anew, run it, and print whether it is finite and where it is not"),
    cl::value_desc("file"), cl::cat(category));
static cl::list<std::string> what_if(
    "what-if",
    cl::desc("With --replay: O0 to O3, auto, f16, bf16, scale=1024, deny=CELL or device=cpu in place of what it was"),
    cl::value_desc("change"), cl::CommaSeparated, cl::cat(category));
static cl::opt<bool> trace("trace",
                           cl::desc("With --replay: the ranges of the values that lead to the first one that is not "
                                    "finite"),
                           cl::cat(category));
static cl::opt<bool> list_operations("list-operations",
                                     cl::desc("Print what is known of every operation of the dialect: its precision "
                                              "class, traits, interfaces, and the lists of the passes"),
                                     cl::cat(category));
static cl::opt<std::string> emit("emit", cl::desc("Output form: ir (default), dot (Graphviz) or html (a page)"),
                                 cl::init("ir"), cl::cat(category));
static cl::opt<std::string> function_name("function",
                                          cl::desc("The function that --emit=dot, --explain and --diff show"),
                                          cl::cat(category));

// Flags that other tools have, too. Lists: their last value is not the only one.
template <typename Options>
class SharedFlags {
 public:
  template <typename Keep>
  SharedFlags(const std::vector<tools::OptionFlag<Options>>& flags, const Keep& keep) : known_(flags) {
    for (const tools::OptionFlag<Options>& flag : flags) {
      if (!keep(flag)) continue;
      flags_.push_back(std::make_unique<cl::list<std::string>>(StringRef(flag.name), cl::desc(flag.help),
                                                               cl::value_desc(flag.placeholder), cl::cat(category),
                                                               flag.is_switch ? cl::ValueOptional : cl::ValueRequired));
    }
  }
  bool given(StringRef name) const {
    return any_of(flags_, [&](const auto& flag) { return flag->ArgStr == name && flag->getNumOccurrences() > 0; });
  }
  /// The first flag that was given; empty if none was.
  std::string first() const {
    for (const auto& flag : flags_)
      if (flag->getNumOccurrences() > 0) return flag->ArgStr.str();
    return "";
  }
  absl::Status Read(Options& options) const {
    for (const auto& flag : flags_) {
      for (const std::string& value : *flag) {
        absl::Status status =
            tools::SetOption(known_, flag->ArgStr.str(), value.empty() && IsSwitch(*flag) ? "true" : value, options);
        if (!status.ok()) return status;
      }
    }
    return absl::OkStatus();
  }

 private:
  static bool IsSwitch(const cl::Option& flag) { return flag.getValueExpectedFlag() == cl::ValueOptional; }

  const std::vector<tools::OptionFlag<Options>>& known_;
  std::vector<std::unique_ptr<cl::list<std::string>>> flags_;
};
static SharedFlags<amp::Options> amp_flags(tools::AmpFlags(), [](const auto&) { return true; });
static SharedFlags<tools::DeviceOptions> device_flags(tools::DeviceFlags(),
                                                      [](const auto& flag) { return !tools::IsOfRunning(flag.name); });

// Options that say something about a model.
static cl::Option* const kModelOptions[] = {&train,     &batch,      &stage_name, &diff,
                                            &lock_path, &check_path, &update,     &weights_path};
// Flags of the device that only a later stage shows, with the reason.
struct StagedFlag {
  const char* name;
  const char* reason;
};
// Those that a Program alone can follow, or the order that is lowered.
static const StagedFlag kProgramFlags[] = {{"tune", "only a program has kernels"},
                                           {"choice-cache", "only a program has kernels"}};
static const StagedFlag kScheduleFlags[] = {{"allow-winograd", "only they depend on kernels"},
                                            {"allow-tf32", "only they depend on kernels"}};
static const StagedFlag kFinalFlags[] = {
    {"allow-conv-statistics", "convolutions take statistics behind the backward graph"},
    {"fusion", "regions are made of the finished graph"},
    {"head-chunks", "the head is cut behind the backward graph"},
    {"pad-classes", "the head is padded behind the backward graph"},
    {"memory-budget", "what it recomputes is chosen for the finished graph"}};
static cl::Option* const kOtherOptions[] = {&model_name,
                                            &report,
                                            &explain,
                                            &list_operations,
                                            &emit,
                                            &function_name,
                                            &ranges,
                                            &data_range,
                                            &weights_path,
                                            &replay_path,
                                            static_cast<cl::Option*>(std::addressof(what_if)),
                                            &trace};

static bool Given(const cl::Option& option) { return option.getNumOccurrences() > 0; }

void HideForeignOptions() {
  static constexpr StringLiteral kKept[] = {"help", "help-hidden", "version", "o", "list-passes"};
  for (auto& [name, option] : cl::getRegisteredOptions()) {
    if (is_contained(option->Categories, &category) || is_contained(kKept, name)) continue;
    if (option->getOptionHiddenFlag() == cl::NotHidden) option->setHiddenFlag(cl::Hidden);
  }
}

bool HasOwnOptions() {
  auto given = [](cl::Option* option) { return Given(*option); };
  return any_of(kModelOptions, given) || any_of(kOtherOptions, given) || !amp_flags.first().empty() ||
         !device_flags.first().empty();
}

template <typename... Parts>
static absl::Status Error(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// The flags that were given of those that say what is printed.
static SmallVector<std::pair<const char*, Output>> GivenOutputs() {
  SmallVector<std::pair<const char*, Output>> chosen;
  if (Given(report)) chosen.push_back({"--report", report == "json" ? Output::kReportJson : Output::kReport});
  if (emit == "dot") chosen.push_back({"--emit=dot", Output::kDot});
  if (emit == "html") chosen.push_back({"--emit=html", Output::kPage});
  if (Given(explain)) chosen.push_back({"--explain", Output::kExplanation});
  if (Given(diff)) chosen.push_back({"--diff", Output::kDifference});
  if (Given(lock_path)) chosen.push_back({"--lock", Output::kLock});
  if (Given(check_path)) chosen.push_back({"--check", Output::kLock});
  if (ranges) chosen.push_back({"--ranges", Output::kRanges});
  if (Given(replay_path)) chosen.push_back({"--replay", Output::kReplay});
  if (list_operations) chosen.push_back({"--list-operations", Output::kOperations});
  return chosen;
}

static absl::StatusOr<Output> ReadOutput() {
  SmallVector<std::pair<const char*, Output>> chosen = GivenOutputs();
  if (chosen.size() > 1) return Error(chosen[0].first, " and ", chosen[1].first, " exclude each other");
  if (emit != "ir" && emit != "dot" && emit != "html")
    return Error("unknown --emit '", emit.getValue(), "'; choose ir, dot or html");
  if (Given(report) && !report.empty() && report != "text" && report != "json")
    return Error("unknown --report '", report.getValue(), "'; choose text or json");
  if (Given(explain) && explain.empty())
    return Error("--explain needs an operation, an ordinal or a Cell path: conv2d, #3, lenet5/conv1");
  Output output = chosen.empty() ? Output::kIr : chosen[0].second;
  bool takes_function = output == Output::kDot || output == Output::kExplanation || output == Output::kDifference ||
                        output == Output::kRanges;
  if (Given(function_name) && !takes_function)
    return Error("--function needs --emit=dot, --explain, --diff or --ranges");
  for (const auto* option : {&data_range, &weights_path})
    if (Given(*option) && output != Output::kRanges) return Error("--", option->ArgStr.str(), " needs --ranges");
  return output;
}

static absl::StatusOr<LockRequest> ReadLock() {
  if (update && !Given(lock_path) && !Given(check_path)) return Error("--update needs --lock or --check");
  for (const auto* path : {&lock_path, &check_path})
    if (Given(*path) && path->empty()) return Error("--", path->ArgStr.str(), " needs a file: precision.lock");
  return LockRequest{Given(lock_path) ? lock_path : check_path, Given(lock_path), update};
}

// The interval of --data-range; none where it was not given.
static absl::StatusOr<compiler::RangeAssumptions> ReadRanges() {
  compiler::RangeAssumptions assumptions;
  if (!Given(data_range)) return assumptions;
  auto [low, high] = StringRef(data_range).split(',');
  compiler::KnownRange inputs;
  if (low.getAsDouble(inputs.low) || high.getAsDouble(inputs.high) || !(inputs.low <= inputs.high) ||
      !std::isfinite(inputs.low) || !std::isfinite(inputs.high))
    return Error("--data-range takes the smallest and the largest input, as in --data-range=0,1, got '",
                 data_range.getValue(), "'");
  // Of numbers that are spread evenly.
  inputs.typical = std::sqrt((inputs.low * inputs.low + inputs.low * inputs.high + inputs.high * inputs.high) / 3);
  assumptions.inputs = inputs;
  return assumptions;
}

static absl::StatusOr<ReplayRequest> ReadReplay(StringRef input) {
  const char* unread = Given(what_if) ? "--what-if" : Given(trace) ? "--trace" : nullptr;
  if (!Given(replay_path))
    return unread ? Error(unread, " needs --replay") : absl::StatusOr<ReplayRequest>(ReplayRequest{});
  if (replay_path.empty()) return Error("--replay needs a file: capsule.mpcap");
  std::string other = amp_flags.first().empty() ? device_flags.first() : amp_flags.first();
  for (cl::Option* option : kModelOptions)
    if (Given(*option)) other = option->ArgStr.str();
  if (Given(model_name)) other = "model";
  if (!other.empty())
    return Error("--replay and --", other, " exclude each other: a capsule holds its step; --what-if changes it");
  if (input != "-") return Error("--replay and the file '", input.str(), "' exclude each other");
  return ReplayRequest{replay_path, what_if, trace};
}

static absl::Status CheckStage(Output output) {
  static constexpr StringLiteral kStages[] = {"traced", "amp", "grad", "final", "scheduled", "program"};
  if (Given(stage_name) && !is_contained(kStages, stage_name.getValue()))
    return Error("unknown stage '", stage_name.getValue(), "'; choose traced, amp, grad, final, scheduled or program");
  if (output == Output::kLock && Given(stage_name))
    return Error("a lock holds the precision of the stage final; leave out --stage");
  if (output == Output::kRanges && Given(stage_name) && stage_name != "grad" && stage_name != "final")
    return Error("--ranges follows a step at the stage grad or final; got '", stage_name.getValue(), "'");
  if (output == Output::kPage && Given(stage_name) && stage_name != "program")
    return Error("a page shows the step as it runs, which is the stage program; leave out --stage");
  if (stage_name != "program") return absl::OkStatus();
  if (output == Output::kDot) return Error("a program has no graph; choose another --stage for --emit=dot");
  if (output == Output::kExplanation || output == Output::kDifference)
    return Error("a program has no operations to explain or compare; choose another --stage");
  return absl::OkStatus();
}

// What is printed is a Program, or a report of one.
static bool PrintsProgram() {
  if (Given(diff) || Given(explain) || Given(lock_path) || Given(check_path) || emit == "dot") return false;
  if (emit == "html") return true;
  return Given(stage_name) ? stage_name == "program" : Given(report);
}

static absl::Status CheckFlagsOfStage() {
  const auto refuse = [](ArrayRef<StagedFlag> flags, const char* stages) -> absl::Status {
    for (const StagedFlag& flag : flags)
      if (device_flags.given(flag.name)) return Error("--", flag.name, " needs ", stages, ": ", flag.reason);
    return absl::OkStatus();
  };
  const bool compares = Given(report) || Given(explain) || Given(diff) || emit == "html";
  const bool ends_early =
      Given(stage_name) ? !is_contained({"final", "scheduled", "program"}, stage_name.getValue()) : !compares;
  absl::Status status;
  if (!PrintsProgram()) status = refuse(kProgramFlags, "--stage=program or --report");
  if (status.ok() && !PrintsProgram() && stage_name != "scheduled")
    status = refuse(kScheduleFlags, "--stage=scheduled, --stage=program or --report");
  if (status.ok() && ends_early)
    status = refuse(kFinalFlags, "--stage=final, --stage=scheduled, --stage=program, --report, --explain or --diff");
  return status;
}

static absl::StatusOr<std::vector<std::string>> ReadLevels() {
  SmallVector<StringRef> words;
  StringRef(diff).split(words, ',');
  if (words.size() != 2) return Error("--diff takes two levels, as in --diff=O0,O2, got '", diff.getValue(), "'");
  if (amp_flags.given("amp-level")) return Error("--diff names its levels; leave out --amp-level");
  return std::vector<std::string>{words[0].str(), words[1].str()};
}

// A file has no use for what describes a model.
static absl::Status CheckFile(Output output) {
  if (output == Output::kPage)
    return Error("--emit=html needs --model: a page shows memory, which is planned for a compiled step");
  std::string unused = amp_flags.first().empty() ? device_flags.first() : amp_flags.first();
  for (cl::Option* option : kModelOptions)
    if (Given(*option)) unused = option->ArgStr.str();
  if (unused.empty()) return absl::OkStatus();
  return Error("--", unused, " needs --model; for a file, choose passes");
}

// Errors: a value of a flag; limits of a loss scale that is not dynamic. What contradicts itself is refused where the
// model is made; with --diff each of its levels is.
static absl::Status ReadPrecision(amp::Options& options) {
  options.verbosity = 0;
  if (absl::Status status = amp_flags.Read(options); !status.ok()) return status;
  const absl::StatusOr<amp::Precision> precision = amp::ResolveOptions(options, amp::Front::kModel);
  return precision.ok() && !Given(diff) ? tools::CheckScaleLimits(options, *precision) : absl::OkStatus();
}

// The first loss scale of the model, and the parameters of --weights.
static absl::Status ReadRangesOfModel(DriverOptions& options) {
  const absl::StatusOr<amp::Precision> precision = amp::ResolveOptions(options.model.amp, amp::Front::kModel);
  if (!precision.ok()) return precision.status();
  if (precision->loss_scale.mode != LossScaleConfig::Mode::kNone)
    options.ranges.loss_scale = precision->loss_scale.init;
  options.derives_scale = options.model.amp.loss_scale.text() == "derived";
  if (!Given(weights_path)) return absl::OkStatus();
  absl::StatusOr<std::map<std::string, compiler::KnownRange>> state = RangesOfWeights(model_name, weights_path);
  if (!state.ok()) return state.status();
  options.ranges.state = *std::move(state);
  return absl::OkStatus();
}

absl::Status CheckFiles(StringRef output) {
  return tools::CheckPathsDiffer({{"--replay", replay_path},
                                  {"--weights", weights_path},
                                  {"--check", check_path, update},
                                  {"--lock", lock_path, true},
                                  {"-o", output == "-" ? "" : output.str(), true}});
}

absl::StatusOr<DriverOptions> ReadOptions(StringRef input) {
  DriverOptions options;
  absl::StatusOr<Output> output = ReadOutput();
  if (!output.ok()) return output.status();
  options.output = *output;
  options.function = function_name;
  options.explain = explain;
  if (absl::StatusOr<compiler::RangeAssumptions> assumptions = ReadRanges(); assumptions.ok())
    options.ranges = *std::move(assumptions);
  else
    return assumptions.status();
  options.has_model = Given(model_name);
  absl::StatusOr<ReplayRequest> replay = ReadReplay(input);
  if (!replay.ok()) return replay.status();
  options.replay = *std::move(replay);
  if (options.output == Output::kOperations && (options.has_model || input != "-"))
    return Error("--list-operations prints what holds in every graph; leave out ",
                 options.has_model ? "--model" : "the file");
  if (!options.has_model) {
    absl::Status status = CheckFile(*output);
    return status.ok() ? absl::StatusOr<DriverOptions>(options) : status;
  }
  if (input != "-") return Error("--model and the file '", input.str(), "' exclude each other");
  if (absl::Status status = CheckStage(*output); !status.ok()) return status;
  if (absl::Status status = CheckFlagsOfStage(); !status.ok()) return status;
  options.stage = stage_name;
  options.has_level = amp_flags.given("amp-level");
  options.model.model = model_name;
  options.model.train = train;
  options.model.batch = batch;
  if (absl::Status status = device_flags.Read(options.model.device); !status.ok()) return status;
  if (absl::Status status = ReadPrecision(options.model.amp); !status.ok()) return status;
  if (*output == Output::kRanges) {
    if (absl::Status status = ReadRangesOfModel(options); !status.ok()) return status;
  }
  if (Given(diff)) {
    absl::StatusOr<std::vector<std::string>> levels = ReadLevels();
    if (!levels.ok()) return levels.status();
    options.levels = *std::move(levels);
  }
  absl::StatusOr<LockRequest> lock = ReadLock();
  if (!lock.ok()) return lock.status();
  options.lock = *std::move(lock);
  return options;
}

}  // namespace mpc::opt
