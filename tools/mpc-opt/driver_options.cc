#include "tools/mpc-opt/driver_options.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CommandLine.h"
#include "tools/support/amp_flags.h"
#include "tools/support/byte_size.h"

using namespace llvm;

namespace mpc::opt {

static cl::OptionCategory category("mpc: models, stages and reports");
static cl::extrahelp passes_help(
    "\nA file is treated as mlir-opt treats it. Passes are flags too, such as --mpc-amp=level=O2: --list-passes lists\n"
    "them, docs/passes.md describes mpc's. --help-hidden adds the options of passes, MLIR and LLVM to this text.\n");

static cl::opt<std::string> model_name(
    "model",
    cl::desc("Print the IR of a model: bert, bert-tiny, bnnet, dcgan-discriminator, dcgan-generator, faint, gpt2, "
             "gpt2-tiny, lenet5, mlp, resnet18, resnet18-cifar, resnet18-imagenet, resnet50-imagenet"),
    cl::cat(category));
static cl::opt<bool> train("train", cl::desc("The training step, not the forward function"), cl::cat(category));
static cl::opt<int64_t> batch("batch", cl::desc("Samples a step (32)"), cl::init(32), cl::cat(category));
static cl::opt<std::string> stage_name(
    "stage",
    cl::desc("traced, amp, grad, final, scheduled or program; left out: traced without "
             "--amp-level, else grad; with --report and no passes, program; with "
             "--explain and --diff, final"),
    cl::cat(category));
static cl::opt<std::string> device("device", cl::desc("What the model is compiled for: cpu (default) or cuda"),
                                   cl::init("cpu"), cl::cat(category));
static cl::opt<std::string> arch("arch",
                                 cl::desc("With --device=cuda: sm_80 or sm_90, whatever device is here, if any"),
                                 cl::cat(category));
static cl::opt<bool> fusion("fusion", cl::desc("Compute neighbouring operations of the model in one generated kernel"),
                            cl::cat(category));
static cl::opt<std::string> memory_budget(
    "memory-budget",
    cl::desc("What the program may plan for arena, state and constants, such as 512MiB: a language model's head is "
             "computed in chunks and values are computed again in the backward pass until it fits"),
    cl::cat(category));
static cl::opt<int64_t> head_chunks("head-chunks",
                                    cl::desc("Chunks of rows that a language model's head is computed in (1)"),
                                    cl::init(1), cl::cat(category));
static cl::opt<bool> allow_conv_statistics(
    "allow-conv-statistics",
    cl::desc("With --device=cuda: let f16 convolutions compute the statistics of the batch normalisation behind them"),
    cl::cat(category));
static cl::opt<bool> tune("tune", cl::desc("Choose the Program's kernels by timing them here, not by rules"),
                          cl::cat(category));
static cl::opt<bool> allow_winograd("allow-winograd",
                                    cl::desc("Let f32 convolutions with 3x3 windows use Winograd's algorithm, which is "
                                             "faster and rounds more"),
                                    cl::cat(category));
static cl::opt<std::string> choice_cache("choice-cache",
                                         cl::desc("File of kernel choices of earlier runs, read and written (none)"),
                                         cl::cat(category));
static cl::opt<std::string> report("report", cl::ValueOptional,
                                   cl::desc("Print the precision report as text (default) or json"), cl::cat(category));
static cl::opt<std::string> explain("explain",
                                    cl::desc("Print why an operation (conv2d), an ordinal of the report (#3) or a Cell "
                                             "path (lenet5/conv1) has its precision"),
                                    cl::cat(category));
static cl::opt<std::string> diff("diff", cl::desc("Print what changes between two levels of a model: O0,O2"),
                                 cl::cat(category));
static cl::opt<bool> list_operations("list-operations",
                                     cl::desc("Print what is known of every operation of the dialect: its precision "
                                              "class, traits, interfaces, and the lists of the passes"),
                                     cl::cat(category));
static cl::opt<std::string> emit("emit", cl::desc("Output form: ir (default) or dot (Graphviz)"), cl::init("ir"),
                                 cl::cat(category));
static cl::opt<std::string> function_name("function",
                                          cl::desc("The function that --emit=dot, --explain and --diff show"),
                                          cl::cat(category));

// The flags of amp::Options, those of mpc-train. Lists: their last value is not the only one.
class AmpOptions {
 public:
  AmpOptions() {
    for (const tools::AmpFlag& flag : tools::AmpFlags()) {
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
  absl::Status Read(amp::Options& options) const {
    for (const auto& flag : flags_) {
      for (const std::string& value : *flag) {
        absl::Status status = tools::SetAmpFlag(flag->ArgStr.str(), value.empty() ? "true" : value, options);
        if (!status.ok()) return status;
      }
    }
    return absl::OkStatus();
  }

 private:
  std::vector<std::unique_ptr<cl::list<std::string>>> flags_;
};
static AmpOptions amp_options;

// Options that say something about a model.
static cl::Option* const kModelOptions[] = {
    &train,       &batch,         &device, &arch,           &fusion,       &stage_name,           &diff,
    &head_chunks, &memory_budget, &tune,   &allow_winograd, &choice_cache, &allow_conv_statistics};
// Those of them that a Program alone can follow, with the reason.
struct ProgramOption {
  const cl::Option* option;
  const char* reason;
  bool schedules = false;  ///< the order that is lowered depends on it
};
static const ProgramOption kProgramOptions[] = {{&memory_budget, "only a program has a memory plan"},
                                                {&tune, "only a program has kernels"},
                                                {&allow_winograd, "only they depend on kernels", /*schedules=*/true},
                                                {&choice_cache, "only a program has kernels"}};
static cl::Option* const kOtherOptions[] = {&model_name, &report, &explain, &list_operations, &emit, &function_name};

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
  return any_of(kModelOptions, given) || any_of(kOtherOptions, given) || !amp_options.first().empty();
}

template <typename... Parts>
static absl::Status Error(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

static absl::StatusOr<Output> ReadOutput() {
  SmallVector<std::pair<const char*, Output>> chosen;
  if (Given(report)) chosen.push_back({"--report", report == "json" ? Output::kReportJson : Output::kReport});
  if (emit == "dot") chosen.push_back({"--emit=dot", Output::kDot});
  if (Given(explain)) chosen.push_back({"--explain", Output::kExplanation});
  if (Given(diff)) chosen.push_back({"--diff", Output::kDifference});
  if (list_operations) chosen.push_back({"--list-operations", Output::kOperations});
  if (chosen.size() > 1) return Error(chosen[0].first, " and ", chosen[1].first, " exclude each other");
  if (emit != "ir" && emit != "dot") return Error("unknown --emit '", emit.getValue(), "'; choose ir or dot");
  if (Given(report) && !report.empty() && report != "text" && report != "json")
    return Error("unknown --report '", report.getValue(), "'; choose text or json");
  Output output = chosen.empty() ? Output::kIr : chosen[0].second;
  bool takes_function = output == Output::kDot || output == Output::kExplanation || output == Output::kDifference;
  if (Given(function_name) && !takes_function) return Error("--function needs --emit=dot, --explain or --diff");
  return output;
}

static absl::Status CheckStage(Output output) {
  static constexpr StringLiteral kStages[] = {"traced", "amp", "grad", "final", "scheduled", "program"};
  if (Given(stage_name) && !is_contained(kStages, stage_name.getValue()))
    return Error("unknown stage '", stage_name.getValue(), "'; choose traced, amp, grad, final, scheduled or program");
  if (stage_name != "program") return absl::OkStatus();
  if (output == Output::kDot) return Error("a program has no graph; choose another --stage for --emit=dot");
  if (output == Output::kExplanation || output == Output::kDifference)
    return Error("a program has no operations to explain or compare; choose another --stage");
  return absl::OkStatus();
}

// What is printed is a Program, or a report of one.
static bool PrintsProgram() {
  if (Given(diff) || Given(explain) || emit == "dot") return false;
  return Given(stage_name) ? stage_name == "program" : Given(report);
}

static absl::Status CheckProgramOptions() {
  for (const ProgramOption& each : kProgramOptions) {
    if (!Given(*each.option) || PrintsProgram() || (each.schedules && stage_name == "scheduled")) continue;
    return Error("--", each.option->ArgStr.str(), " needs ", each.schedules ? "--stage=scheduled, " : "",
                 "--stage=program or --report: ", each.reason);
  }
  return absl::OkStatus();
}

static absl::StatusOr<std::vector<std::string>> ReadLevels() {
  SmallVector<StringRef> words;
  StringRef(diff).split(words, ',');
  if (words.size() != 2) return Error("--diff takes two levels, as in --diff=O0,O2, got '", diff.getValue(), "'");
  if (amp_options.given("amp-level")) return Error("--diff names its levels; leave out --amp-level");
  return std::vector<std::string>{words[0].str(), words[1].str()};
}

// A file has no use for what describes a model.
static absl::Status CheckFile() {
  std::string unused = amp_options.first();
  for (cl::Option* option : kModelOptions)
    if (Given(*option)) unused = option->ArgStr.str();
  if (unused.empty()) return absl::OkStatus();
  return Error("--", unused, " needs --model; for a file, choose passes");
}

absl::StatusOr<DriverOptions> ReadOptions(StringRef input) {
  DriverOptions options;
  absl::StatusOr<Output> output = ReadOutput();
  if (!output.ok()) return output.status();
  options.output = *output;
  options.function = function_name;
  options.explain = explain;
  options.has_model = Given(model_name);
  if (options.output == Output::kOperations && (options.has_model || input != "-"))
    return Error("--list-operations prints what holds in every graph; leave out ",
                 options.has_model ? "--model" : "the file");
  if (!options.has_model) {
    absl::Status status = CheckFile();
    return status.ok() ? absl::StatusOr<DriverOptions>(options) : status;
  }
  if (input != "-") return Error("--model and the file '", input.str(), "' exclude each other");
  if (absl::Status status = CheckStage(*output); !status.ok()) return status;
  if (absl::Status status = CheckProgramOptions(); !status.ok()) return status;
  options.stage = stage_name;
  options.has_level = amp_options.given("amp-level");
  options.model.model = model_name;
  options.model.train = train;
  options.model.batch = batch;
  options.model.device = device;
  options.model.arch = arch;
  if (fusion.getNumOccurrences() > 0) options.model.fusion = fusion;
  options.model.allow_conv_statistics = allow_conv_statistics;
  options.model.tune = tune;
  options.model.allow_winograd = allow_winograd;
  options.model.choice_cache = choice_cache;
  if (Given(memory_budget)) {
    absl::StatusOr<std::int64_t> bytes = tools::ParseByteSize(memory_budget.getValue());
    if (!bytes.ok()) return Error("--memory-budget: ", bytes.status().message());
    options.model.memory_budget = *bytes;
  }
  const bool ends_early = Given(stage_name) ? !is_contained({"final", "scheduled", "program"}, stage_name.getValue())
                                            : !Given(report) && !Given(explain) && !Given(diff);
  constexpr char kStages[] =
      " needs --stage=final, --stage=scheduled, --stage=program, --report, --explain or --diff: ";
  if (Given(allow_conv_statistics) && ends_early) {
    return Error("--allow-conv-statistics", kStages, "convolutions take statistics behind the backward graph");
  }
  if (Given(fusion) && ends_early) return Error("--fusion", kStages, "regions are made of the finished graph");
  if (Given(head_chunks)) {
    if (ends_early) return Error("--head-chunks", kStages, "the head is cut behind the backward graph");
    options.model.head_chunks = head_chunks;
  }
  options.model.amp.verbosity = 0;
  if (absl::Status status = amp_options.Read(options.model.amp); !status.ok()) return status;
  if (Given(diff)) {
    absl::StatusOr<std::vector<std::string>> levels = ReadLevels();
    if (!levels.ok()) return levels.status();
    options.levels = *std::move(levels);
  }
  return options;
}

}  // namespace mpc::opt
