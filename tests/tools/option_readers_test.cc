// Every option of mpc-train, mpc-run and mpc-bench in every mode: it is read, or refused by its name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <regex>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "frontend/graph/context_fields.h"
#include "runtime/file_content.h"
#include "tools/mpc-bench/options.h"
#include "tools/mpc-run/options.h"
#include "tools/mpc-train/options.h"
#include "tools/support/amp_flags.h"

namespace mpc::tools {
namespace {

using Words = std::vector<std::string>;

/// What a tool does with one command line.
struct Mode {
  const char* name;
  Words arguments;
  /// The code that runs: "training.cc", or one function of a file, "main.cc#Run".
  Words code;
};

struct Tool {
  std::string folder;
  /// The help where it is asked for.
  std::function<absl::StatusOr<std::string>(int argc, const char* const* argv)> parse;
  std::set<std::string> selectors;  ///< options that choose the mode
  std::vector<Mode> modes;
};

const std::vector<Tool>& Tools() {
  static const auto* const tools = new std::vector<Tool>{
      {"mpc-train",
       [](int argc, const char* const* argv) -> absl::StatusOr<std::string> {
         const absl::StatusOr<CommandLine> line = ParseCommandLine(argc, argv);
         return line.ok() ? absl::StatusOr<std::string>(line->help) : line.status();
       },
       {"emit", "data", "text-file"},
       {{"images",
         {"lenet5"},
         {"training.cc", "frontier.cc", "checkpoints.cc", "epoch_recorder.cc", "initial_weights.cc", "optimizer.cc",
          "main.cc#Main", "main.cc#JoinProcesses", "process_options.cc#TransportOf",
          "process_options.cc#ParallelOptionsOf"}},
        {"synthetic data",
         {"bert-tiny"},
         {"training.cc", "frontier.cc", "checkpoints.cc", "epoch_recorder.cc", "initial_weights.cc", "optimizer.cc",
          "main.cc#Main", "main.cc#JoinProcesses", "process_options.cc#TransportOf",
          "process_options.cc#ParallelOptionsOf", "options.cc#SizesOf"}},
        {"photographs",
         {"resnet50"},
         {"training.cc", "frontier.cc", "checkpoints.cc", "epoch_recorder.cc", "initial_weights.cc", "optimizer.cc",
          "main.cc#Main", "main.cc#JoinProcesses", "process_options.cc#TransportOf",
          "process_options.cc#ParallelOptionsOf", "options.cc#SizesOf"}},
        {"pictures",
         {"resnet50", "--data=pictures", "--data-dir=f"},
         {"training.cc", "frontier.cc", "checkpoints.cc", "epoch_recorder.cc", "initial_weights.cc", "optimizer.cc",
          "main.cc#Main", "main.cc#JoinProcesses", "process_options.cc#TransportOf",
          "process_options.cc#ParallelOptionsOf", "options.cc#SizesOf"}},
        {"text",
         {"gpt2", "--data=text"},
         {"training.cc", "frontier.cc", "checkpoints.cc", "epoch_recorder.cc", "initial_weights.cc", "optimizer.cc",
          "main.cc#Main", "main.cc#JoinProcesses", "process_options.cc#TransportOf",
          "process_options.cc#ParallelOptionsOf", "options.cc#SizesOf"}},
        {"a test alone",
         {"lenet5", "--epochs=0"},
         {"training.cc#Create", "training.cc#MakeModel", "training.cc#LoadDigits", "training.cc#DataOptions",
          "training.cc#Run", "training.cc#LockPrecision", "frontier.cc#CheckFrontier", "frontier.cc#TakePrecision",
          "checkpoints.cc#Resume", "initial_weights.cc#LoadInitialWeights", "optimizer.cc", "main.cc#Main"}},
        {"the frontier of precision",
         {"lenet5", "--precision-frontier=2"},
         {"training.cc#Create", "training.cc#MakeModel", "training.cc#LoadDigits", "training.cc#DataOptions",
          "training.cc#FindFrontier", "training.cc#LockPrecision", "frontier.cc", "initial_weights.cc", "optimizer.cc",
          "main.cc#Main"}},
        {"the DCGAN", {"dcgan"}, {"dcgan.cc", "checkpoints.cc", "main.cc#MainOfDcgan", "options.cc#CheckDcgan"}},
        {"--emit",
         {"lenet5", "--emit=f"},
         {"emit.cc", "initial_weights.cc#Freeze", "optimizer.cc", "flag_readers.cc#CheckEmitted", "main.cc#Main"}},
        {"--emit of text",
         {"gpt2", "--data=text", "--emit=f"},
         {"emit.cc", "initial_weights.cc#Freeze", "optimizer.cc", "options.cc#SizesOf", "options.cc#TotalSteps",
          "main.cc#Main"}},
        {"--emit of the DCGAN",
         {"dcgan", "--emit=f"},
         {"emit.cc", "dcgan.cc#PackageDcgan", "dcgan.cc#Gan", "options.cc#CheckDcgan", "main.cc#Main"}}}},
      {"mpc-run",
       [](int argc, const char* const* argv) -> absl::StatusOr<std::string> {
         const absl::StatusOr<RunCommandLine> line = ParseRunCommandLine(argc, argv);
         return line.ok() ? absl::StatusOr<std::string>(line->help) : line.status();
       },
       {"steps", "predict", "dump-state", "describe", "load-only", "data", "text-file", "replay"},
       {{"steps on images",
         {"f", "--steps=9"},
         {"session.cc#Open", "session.cc#CheckDevice", "session.cc#Load", "session.cc#Start", "session.cc#Train",
          "session.cc#seed", "batches.cc", "main.cc#Run", "results.cc"}},
        {"steps on text",
         {"f", "--steps=9", "--data=text"},
         {"session.cc#Open", "session.cc#CheckDevice", "session.cc#Load", "session.cc#Start", "session.cc#Train",
          "session.cc#seed", "batches.cc", "main.cc#Run", "results.cc"}},
        {"steps on synthetic data",
         {"f", "--steps=9", "--data=synthetic"},
         {"session.cc#Open", "session.cc#CheckDevice", "session.cc#Load", "session.cc#Start", "session.cc#Train",
          "session.cc#seed", "main.cc#Run", "results.cc"}},
        {"a test",
         {"f", "--predict"},
         {"session.cc#Open", "session.cc#CheckDevice", "session.cc#Load", "session.cc#Predict", "session.cc#seed",
          "batches.cc#DataOptions", "main.cc#Run"}},
        {"the initial state",
         {"f", "--dump-state=g"},
         {"session.cc#Open", "session.cc#CheckDevice", "session.cc#DumpState", "main.cc#Run"}},
        {"a load",
         {"f", "--load-only"},
         {"session.cc#Open", "session.cc#CheckDevice", "session.cc#Load", "main.cc#Run"}},
        {"a description", {"f", "--describe"}, {"describe.cc"}},
        {"the step of a capsule", {"--replay=f"}, {"replay.cc", "main.cc#Main"}}}},
      {"mpc-bench",
       [](int argc, const char* const* argv) -> absl::
                                                 StatusOr<std::string> {
                                                   const absl::StatusOr<BenchCommandLine> line =
                                                       ParseBenchCommandLine(argc, argv);
                                                   return line.ok() ? absl::StatusOr<std::string>(line->help)
                                                                    : line.status();
                                                 },
       {"op", "single", "profile", "start", "data", "all-reduce"},
       {{"times of networks", {"bert-tiny"}, {"contest.cc", "peer.cc", "main.cc#MeasureNetworks"}},
        {"times of photographs", {"resnet50"}, {"contest.cc", "peer.cc", "main.cc#MeasureNetworks"}},
        {"--single", {"bert-tiny", "--single"}, {"measure.cc", "bench_model.cc", "rank_group.cc"}},
        {"--all-reduce",
         {"--all-reduce"},
         {"reduction_bench.cc", "main.cc#MeasureSums", "rank_options.cc#FinishReductions"}},
        {"--profile", {"bert-tiny", "--profile"}, {"step_profile.cc", "bench_model.cc", "main.cc#ProfileNetworks"}},
        {"--start", {"bert-tiny", "--start=f"}, {"start.cc", "bench_model.cc"}},
        {"--op", {"--op=relu"}, {"op_bench.cc", "main.cc#MeasureOperations", "options.cc#MakeOps"}},
        {"--data", {"--data"}, {"data_contest.cc", "data_peer.cc", "data_pipeline.cc", "main.cc#MeasurePictures"}},
        {"--data beside torchvision",
         {"--data", "--peer=torchvision"},
         {"data_contest.cc", "data_peer.cc", "data_pipeline.cc", "main.cc#MeasurePictures"}}}}};
  return *tools;
}

// A value that is accepted, where the help's placeholder does not give one, and other options that the value needs.
const std::map<std::string, std::pair<std::string, Words>>& Values() {
  static const auto* const values = new std::map<std::string, std::pair<std::string, Words>>{
      {"amp-level", {"O2", {}}},
      {"dtype", {"bf16", {"--amp-level=O2"}}},
      {"keep-batchnorm-fp32", {"true", {"--amp-level=O2"}}},
      {"master-weights", {"true", {"--amp-level=O2"}}},
      {"loss-scale", {"128", {"--amp-level=O2"}}},
      {"min-loss-scale", {"1", {"--amp-level=O2"}}},
      {"max-loss-scale", {"1024", {"--amp-level=O2"}}},
      {"cast-model-outputs", {"f32", {"--amp-level=O2"}}},
      {"allow-add", {"exp", {"--amp-level=O1"}}},
      {"deny-add", {"exp", {"--amp-level=O1"}}},
      {"infer-add", {"exp", {"--amp-level=O1"}}},
      {"clear-add", {"exp", {"--amp-level=O1"}}},
      {"patch-torch-functions", {"true", {"--amp-level=O1"}}},
      {"data", {"synthetic", {}}},
      {"image-size", {"64", {}}},
      {"tokens", {"8", {}}},
      {"width", {"64", {"--heads=4"}}},
      {"heads", {"4", {"--width=64"}}},
      {"context", {"64", {"--tokens=8"}}},
      {"vocabulary", {"512", {}}},
      {"warmup", {"1", {}}},
      {"warmup-steps", {"1", {}}},
      {"plot", {"f.svg", {}}},
      {"optimizer", {"adam", {}}},
      {"classes", {"12", {}}},
      {"dropout", {"0.1", {}}},
      {"normalize", {"half", {}}},
      {"momentum", {"0.5", {"--optimizer=sgd"}}},
      {"lr-schedule", {"constant", {}}},
      {"memory-budget", {"1GiB", {}}},
      {"device", {"cpu", {}}},
      {"graph", {"on", {"--device=cuda"}}},
      {"steps-per-launch", {"2", {"--device=cuda"}}},
      {"pad-classes", {"true", {"--device=cuda"}}},
      {"allow-tf32", {"true", {"--device=cuda"}}},
      {"allow-conv-statistics", {"true", {"--device=cuda"}}},
      {"arch", {"sm_90", {"--device=cuda"}}},
      {"save-every", {"1", {"--save=f"}}},
      {"keep", {"1", {"--save=f/"}}},
      {"resume", {"f", {}}},
      {"profile-precision", {"f.txt", {}}},
      {"amp-profile", {"f", {}}},
      {"capsule-at", {"1", {"--capsule=f"}}},
      {"trace-steps", {"1-2", {"--trace=f"}}},
      {"temperature", {"1", {"--sample=1"}}},
      {"prompt", {"a", {"--sample=1"}}},
      {"peer", {"mpc-unfused", {}}},
      {"svg", {"f", {"--peer=mpc-unfused"}}},
      {"peer-layout", {"nchw", {"--peer=torch"}}},
      {"python", {"f", {"--peer=torch"}}},
      {"peer-script", {"f", {"--peer=torch"}}},
      {"transport", {"shared", {"--distributed"}}},
      {"loss-weight", {"elements", {"--distributed"}}},
      {"communication-dtype", {"bf16", {"--distributed"}}},
      {"reduction", {"fast", {"--distributed"}}},
      {"bucket-mib", {"1", {"--distributed"}}},
      {"ranks", {"2", {}}},
      {"elements", {"8", {}}},
      {"slot", {"64KiB", {}}},
      {"shape", {"8x8", {}}},
      {"batch", {"1", {}}},
  };
  return *values;
}

// What code calls an option, where that is not its name.
std::string NameInCode(const Tool& tool, const std::string& option) {
  static const std::map<std::string, std::string> names = {{"lr", "learning_rate"},
                                                           {"lr-schedule", "schedule"},
                                                           {"data-dir", "data_directory"},
                                                           {"normalize", "mean"},
                                                           {"text-file", "text_path"},
                                                           {"sample", "sample_bytes"},
                                                           {"init", "init_path"},
                                                           {"load", "load_path"},
                                                           {"save", "save_path"},
                                                           {"emit", "emit_path"},
                                                           {"summary", "summary_path"},
                                                           {"trace", "trace_path"},
                                                           {"capsule", "capsule_path"},
                                                           {"record-hashes", "record_hashes_path"},
                                                           {"trace-steps", "trace_first"},
                                                           {"amp-profile", "amp"},
                                                           {"json", "json_path"},
                                                           {"svg", "svg_path"},
                                                           {"times", "times_path"},
                                                           {"load-state", "load_state_path"},
                                                           {"peer", "peers"},
                                                           {"start", "start_folder"}};
  for (const AmpFlag& flag : AmpFlags()) {
    if (flag.name == option) return "amp";
  }
  for (const SizeFlag& flag : SizeFlags()) {
    if (tool.folder == "mpc-bench" && flag.name == option) return "sizes";
  }
  const auto found = names.find(option);
  return found != names.end() ? found->second : absl::StrReplaceAll(option, {{"-", "_"}});
}

/// A file of tools/, or the definitions of a function in it.
std::string CodeOf(const std::string& tool, const std::string& place) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(place, absl::MaxSplits('#', 1));
  const std::string path =
      absl::StrCat(MPC_TOOLS, "/", absl::StartsWith(place, "support/") ? "" : tool + "/", parts.first);
  const absl::StatusOr<std::vector<std::uint8_t>> bytes = runtime::ReadFileContent(path);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  const std::string text(bytes->begin(), bytes->end());
  if (parts.second.empty()) return text;
  std::string code;
  // From the line that names it to the brace in the first column; a function of one line brings its neighbour with it.
  const std::regex head("(^|\\n)[A-Za-z][^\\n;]*\\b" + parts.second + "\\b[^;]*?\\{(\\n| return )");
  for (std::sregex_iterator at(text.begin(), text.end(), head), end; at != end; ++at) {
    const auto begin = static_cast<std::size_t>(at->position());
    code += text.substr(begin, text.find("\n}", begin + 1) - begin);
  }
  EXPECT_NE(code, "") << path << " has no " << parts.second;
  return code;
}

bool IsNamedIn(const std::string& code, const std::string& name) {
  return std::regex_search(code, std::regex("\\b" + name + "(_|\\b)"));
}

/// Whether the code takes all flags of the device together, and the option is one of them.
bool IsTakenWithTheDevice(const std::string& code, const std::string& option) {
  const auto is_option = [&](const OptionFlag<DeviceOptions>& flag) { return flag.name == option; };
  return std::any_of(DeviceFlags().begin(), DeviceFlags().end(), is_option) &&
         (absl::StrContains(code, "ContextOf(") || absl::StrContains(code, "DeviceArguments("));
}

absl::StatusOr<std::string> Parse(const Tool& tool, const Words& arguments) {
  std::vector<const char*> argv = {tool.folder.c_str()};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  return tool.parse(static_cast<int>(argv.size()), argv.data());
}

/// Options by name, with what the help calls their value.
std::map<std::string, std::string> OptionsOf(const Tool& tool) {
  std::map<std::string, std::string> options;
  const std::string help = Parse(tool, {"--help"}).value();
  const std::regex line("\\n  --([a-z0-9-]+)=?([^\\n]*)");
  for (std::sregex_iterator at(help.begin(), help.end(), line), end; at != end; ++at) options[(*at)[1]] = (*at)[2];
  options.erase("help");
  options.erase("version");
  return options;
}

std::string ValueOf(const std::string& option, const std::string& placeholder) {
  const auto known = Values().find(option);
  if (known != Values().end()) return known->second.first;
  if (placeholder.empty() || placeholder == "true|false") return "true";
  if (placeholder == "N" || placeholder == "X") return "1";
  return absl::StrCat("f-", option);
}

bool Names(absl::string_view message, const std::string& option) {
  return absl::StrContains(message, "--" + option) ||
         absl::StrContains(message, absl::StrReplaceAll(option, {{"-", "_"}}) + " = ");
}

TEST(Options, AreReadOrRefusedByNameInEveryMode) {
  for (const Tool& tool : Tools()) {
    const std::map<std::string, std::string> options = OptionsOf(tool);
    EXPECT_GT(options.size(), 20u);
    for (const Mode& mode : tool.modes) {
      ASSERT_TRUE(Parse(tool, mode.arguments).ok()) << mode.name << ": " << Parse(tool, mode.arguments).status();
      std::string code;
      for (const std::string& place : mode.code) code += CodeOf(tool.folder, place);
      for (const auto& [option, placeholder] : options) {
        SCOPED_TRACE(absl::StrCat(tool.folder, ", ", mode.name, ": --", option));
        if (tool.selectors.count(option) > 0) continue;
        Words needed;
        if (const auto known = Values().find(option); known != Values().end()) needed = known->second.second;
        Words arguments = mode.arguments;
        arguments.insert(arguments.end(), needed.begin(), needed.end());
        arguments.push_back(absl::StrCat("--", option, "=", ValueOf(option, placeholder)));
        const absl::Status status = Parse(tool, arguments).status();
        // Where no GPU is, an option of GPUs comes as far as the check for one.
        if (status.ok() || absl::StrContains(status.message(), "device \"cuda\"")) {
          const std::string name = NameInCode(tool, option);
          EXPECT_TRUE(IsNamedIn(code, name) || IsTakenWithTheDevice(code, option))
              << "accepted, but nothing that runs names " << name;
          continue;
        }
        bool named = Names(status.message(), option);
        for (const std::string& other : needed) {
          named = named || Names(status.message(), other.substr(2, other.find('=') - 2));
        }
        EXPECT_TRUE(named) << "refused, but not by name: " << status.message();
      }
    }
  }
}

std::string TextOf(const amp::OptionValue& option) { return option.text(); }
std::string TextOf(const std::vector<std::string>& option) { return absl::StrJoin(option, ","); }
template <typename Option>
std::string TextOf(const Option& option) {
  return absl::StrCat(option);
}

TEST(AmpFlags, SetTheirOptionAndNoOther) {
  const std::map<std::string, std::string> given = {
      {"level", "O2"}, {"enabled", "false"}, {"num_losses", "3"}, {"verbosity", "0"}};
  const amp::Options defaults;
  amp::VisitOptions(defaults, [&](const amp::OptionInfo& changed, const auto&) {
    const auto found = given.find(changed.name);
    const std::string value = found == given.end() ? "f16" : found->second;
    amp::Options options;
    EXPECT_TRUE(SetOption(AmpFlags(), changed.flag, value, options).ok()) << changed.flag;
    std::map<std::string, std::string> before, after;
    amp::VisitOptions(defaults,
                      [&](const amp::OptionInfo& info, const auto& option) { before[info.name] = TextOf(option); });
    amp::VisitOptions(options,
                      [&](const amp::OptionInfo& info, const auto& option) { after[info.name] = TextOf(option); });
    EXPECT_NE(after[changed.name], before[changed.name]) << changed.flag;
    after[changed.name] = before[changed.name];
    EXPECT_EQ(after, before) << changed.flag;
  });
}

// A value of a flag of the device other than its default.
std::string UnlikeDefault(const OptionFlag<DeviceOptions>& flag) {
  const std::string value = flag.name == "device" ? "cuda" : ValueOf(flag.name, flag.placeholder);
  return flag.placeholder == "N" ? "2" : value;
}

std::map<std::string, std::string> TextsOf(const ContextOptions& options) {
  std::map<std::string, std::string> texts;
  for (const ContextValue& value : ContextValues(options)) texts[value.field.name] = value.text;
  return texts;
}

TEST(DeviceFlags, SetTheirFieldAndNoOther) {
  EXPECT_EQ(DeviceFlags().size(), 13u);
  for (const OptionFlag<DeviceOptions>& flag : DeviceFlags()) {
    DeviceOptions options;
    EXPECT_TRUE(SetOption(DeviceFlags(), flag.name, UnlikeDefault(flag), options).ok()) << flag.name;
    // What is not given does not follow from the user's folder here.
    options.choice_cache_is_given = true;
    std::map<std::string, std::string> before = TextsOf({}), after = TextsOf(ContextOf(options, /*threads=*/0));
    const std::string field = absl::StrReplaceAll(flag.name, {{"-", "_"}});
    EXPECT_NE(after[field], before[field]) << flag.name;
    after[field] = before[field];
    EXPECT_EQ(after, before) << flag.name;
  }
}

TEST(DeviceFlags, ComeBackFromTheArgumentsOfAnotherProcess) {
  for (const OptionFlag<DeviceOptions>& flag : DeviceFlags()) {
    for (const std::string& value : {UnlikeDefault(flag), std::string(flag.is_switch ? "false" : "")}) {
      DeviceOptions options;
      if (!SetOption(DeviceFlags(), flag.name, value, options).ok()) continue;
      DeviceOptions read;
      for (const std::string& argument : DeviceArguments(options)) {
        const std::pair<std::string, std::string> parts = absl::StrSplit(argument, absl::MaxSplits('=', 1));
        EXPECT_EQ(parts.first, "--" + flag.name);
        const std::string given = absl::StrContains(argument, '=') ? parts.second : "true";
        EXPECT_TRUE(SetOption(DeviceFlags(), parts.first.substr(2), given, read).ok()) << argument;
      }
      EXPECT_EQ(TextsOf(read), TextsOf(options)) << flag.name << "=" << value;
      EXPECT_EQ(read.choice_cache_is_given, options.choice_cache_is_given) << flag.name << "=" << value;
    }
  }
  EXPECT_EQ(DeviceArguments({}), Words());
}

TEST(DeviceFlags, AreNamedWhereTheyContradictTheDevice) {
  for (const ContextValue& value : ContextValues({})) {
    if (*value.field.only_on == '\0') continue;
    const std::string flag = absl::StrReplaceAll(value.field.name, {{"_", "-"}});
    DeviceOptions options;
    options.device = std::string(value.field.only_on) == "cpu" ? "cuda" : "cpu";
    const bool is_number = std::string(value.field.placeholder) == "N";
    EXPECT_TRUE(SetOption(DeviceFlags(), flag, is_number ? "2" : ValueOf(flag, value.field.placeholder), options).ok())
        << flag;
    const std::string message(CheckDeviceFlags(options).message());
    EXPECT_THAT(message, ::testing::StartsWith("--" + flag));
    EXPECT_THAT(message,
                ::testing::HasSubstr(absl::StrCat(" and --device=", options.device, " contradict each other")));
  }
}

}  // namespace
}  // namespace mpc::tools
