#include "tools/mpc-bench/options.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "mpc/amp.h"
#include "tools/mpc-bench/bench_model.h"
#include "tools/mpc-bench/op_graphs.h"
#include "tools/mpc-bench/peer.h"
#include "tools/support/flag_set.h"
#include "tools/support/path_flags.h"

namespace mpc::tools {
namespace {

constexpr std::int64_t kMaxSteps = 10'000'000;
constexpr std::int64_t kMaxBatch = 1 << 20;
constexpr std::int64_t kMaxBusy = 4096;

// What mpc-bench does, one of them at a time.
enum Mode : unsigned {
  kTimes = 1,    // of networks, in processes of their own
  kSingle = 2,   // one such process
  kProfile = 4,  // of instructions
  kStart = 8,    // files
  kOps = 16,
  kData = 32,
  kReductions = 64,
  kModes = kTimes | kSingle | kProfile | kStart | kOps | kData | kReductions,
};

/// What the flags say before it is made into rows.
struct Given {
  BenchOptions row;
  std::vector<std::int64_t> batches = {BenchOptions().batch};
  std::vector<std::string> levels = {BenchOptions().amp_level};
  std::vector<std::int64_t> busy;  ///< empty: not given
  OpOptions ops;
  bool data = false;
  std::optional<double> seconds;
};

/// The whole numbers of `value` between `separator`s.
absl::Status ParseNumbers(const std::string& value, char separator, std::int64_t least, std::int64_t most,
                          std::vector<std::int64_t>& numbers) {
  numbers.clear();
  for (const absl::string_view part : absl::StrSplit(value, separator)) {
    std::int64_t number = 0;
    if (!absl::SimpleAtoi(part, &number) || number < least || number > most) {
      return absl::InvalidArgumentError(absl::StrCat("'", value, "' is no list of whole numbers from ", least, " to ",
                                                     most, " with '", std::string(1, separator), "' between them"));
    }
    numbers.push_back(number);
  }
  return absl::OkStatus();
}

void LimitFlags(FlagSet& flags) {
  flags.Limit(kModes, kTimes | kSingle | kProfile | kStart, {"amp-level", "loss-scale"});
  for (const auto& flag : DeviceFlags()) {
    const bool is_of_ops = flag.name == "device" || flag.name == "fusion";
    if (flag.name == "arch") continue;
    flags.Limit(kModes, kTimes | kSingle | kProfile | kStart | (is_of_ops ? kOps : 0u), {flag.name});
  }
  flags.Limit(kModes, kTimes | kSingle | kProfile | kStart | kData, {"batch"});
  flags.Limit(kModes, kTimes | kSingle | kProfile | kStart | kOps | kReductions, {"dtype"});
  flags.Limit(kModes, kTimes | kSingle | kProfile | kStart | kOps | kData, {"threads"});
  flags.Limit(kModes, kTimes | kSingle | kReductions, {"ranks"});
  flags.Limit(kModes, kReductions, {"all-reduce", "elements", "slot"});
  for (const SizeFlag& flag : SizeFlags()) flags.Limit(kModes, kTimes | kSingle | kProfile | kStart, {flag.name});
  flags.Limit(kModes, kTimes | kSingle | kProfile | kData, {"warmup", "steps"});
  flags.Limit(kModes, kTimes | kSingle | kProfile | kOps | kReductions, {"seconds"});
  flags.Limit(kModes, kTimes, {"busy", "svg", "peer-layout"});
  flags.Limit(kModes, kTimes | kData, {"runs", "peer", "python", "peer-script"});
  flags.Limit(kModes, kTimes | kProfile | kOps | kData | kReductions, {"json"});
  flags.Limit(kModes, kData, {"data"});
  flags.Limit(kModes, kOps, {"op", "shape", "buffers", "choices"});
  flags.Limit(kModes, kSingle, {"single"});
  flags.Limit(kModes, kProfile, {"profile"});
  flags.Limit(kModes, kStart, {"start"});
}

FlagSet MakeFlags(BenchCommandLine& line, Given& given) {
  BenchOptions& row = given.row;
  FlagSet flags(
      "mpc-bench",
      absl::StrCat(absl::StrJoin(models::TrainedNames(), "|"),
                   "[:BATCH]... [flags]\n       mpc-bench --op=NAME,... [flags]\n"
                   "       mpc-bench --data [flags]\n       mpc-bench --all-reduce [flags]"),
      "Times the compiled training step of networks on made-up batches: forward, backward, loss scaling, optimizer\n"
      "and the copy of the inputs. Each run is a process of its own; a peer's runs alternate with mpc's. Several\n"
      "networks, batch sizes or levels give a table for each combination. With --op: operations on their own, beside\n"
      "what the machine can do. With --data: how many pictures a second are read from files, beside torchvision.\n"
      "With --all-reduce: how long sums over processes take.");
  flags.Custom("batch", "N,...", "Rows a step, of networks that are given without. Default 32.", /*is_switch=*/false,
               [&given](const std::string& value) { return ParseNumbers(value, ',', 1, kMaxBatch, given.batches); });
  flags.Custom("amp-level", "O0|O1|O2|O3|auto,...", "Precision of the step. Default O0.", /*is_switch=*/false,
               [&given](const std::string& value) {
                 given.levels = absl::StrSplit(value, ',');
                 return absl::OkStatus();
               });
  flags.Text("dtype", "f16|bf16|f32",
             "The low type of O2 and O3, default f16; with --op and --all-reduce every type, default f32.", &row.dtype);
  flags.Text("loss-scale", "dynamic|none|X", "Default: the level's.", &row.loss_scale);
  for (const SizeFlag& flag : SizeFlags()) {
    flags.Integer(flag.name, 0, flag.most, flag.help, &(row.sizes.*flag.size));
  }
  flags.Integer("threads", 1, 4096, "Threads of mpc and of the peer; with --ranks of each rank, then 1 by default.",
                &row.threads);
  flags.Custom("ranks", "N",
               "Processes of this machine that train together, a power of two; each takes an equal part of the batch. "
               "Runs of one rank's part alone, and of the batch in one process on all threads, take turns with them.",
               /*is_switch=*/false, [&given](const std::string& value) { return ParseRanks(value, given.row.ranks); });
  AddDeviceFlags(flags, row);
  flags.Integer("warmup", 0, kMaxSteps, "Steps of a run before the measured ones.", &row.warmup);
  flags.Integer("steps", 1, kMaxSteps, "Measured steps of a run.", &row.steps);
  flags.Number("seconds", 0,
               "CPU: fewer steps, but three, where a run's take longer than this, and a third of it for warming up; 0: "
               "no limit. With --op and --all-reduce: of measuring each. Default 20, with these 1.",
               &given.seconds);
  flags.Integer("runs", 1, 10'000, "Runs.", &row.runs);
  flags.Text("json", "FILE", "Writes medians, percentiles, ratios, memory and compile time as JSON.", &line.json_path);
  flags.Text("svg", "FILE", "Draws the ratios as a bar chart.", &line.svg_path);
  flags.Custom("peer", absl::StrJoin(PeerNames(), "|") + ",...",
               "Runs other steps of the same network beside it, in turn: PyTorch's, from the same weights and batches, "
               "or mpc's in f32, without loss scale, without fusion, on one thread. With --ranks: torch-ddp.",
               /*is_switch=*/false, [&row](const std::string& value) {
                 row.peers = absl::StrSplit(value, ',');
                 return absl::OkStatus();
               });
  flags.Custom("busy", "N,...",
               "Processes beside the runs that keep a processor each busy; a table for each number. Default 0.",
               /*is_switch=*/false,
               [&given](const std::string& value) { return ParseNumbers(value, ',', 0, kMaxBusy, given.busy); });
  flags.Choice("peer-layout", {"auto", "nchw", "nhwc"},
               "Of PyTorch's images; auto: the one that is faster in a short run with each.", &row.peer_layout);
  flags.Text("python", "PROGRAM", "The interpreter that has PyTorch.", &row.python);
  flags.Text("peer-script", "FILE", "The peer's program. Default: the network's of mpc's tools.", &row.peer_script);
  flags.Text("start", "FOLDER", "Writes the initial weights and the batches there, and ends.", &row.start_folder);
  flags.Switch("profile",
               "Runs steps instruction by instruction, in this process, and says where their time goes: by kernel, and "
               "what loss scale, overflow check and skip cost.",
               &row.profile);
  flags.Switch("single", "Measures one run in this process and prints its samples as JSON.", &row.single);
  flags.Custom("op", absl::StrJoin(OpGraphNames(), "|") + ",...", "Measures these graphs of operations.",
               /*is_switch=*/false, [&given](const std::string& value) {
                 given.ops.names = absl::StrSplit(value, ',');
                 return absl::OkStatus();
               });
  flags.Custom("shape", "NxM...", "With --op: its sizes. Default: some that no cache holds.", /*is_switch=*/false,
               [&given](const std::string& value) {
                 return ParseNumbers(value, 'x', 1, std::int64_t{1} << 40, given.ops.shape);
               });
  flags.Integer("buffers", 0, 1024,
                "With --op: sets of tensors that are used in turn; 1: what fits stays in the caches; 0: as many as "
                "together are twice the last-level cache.",
                &given.ops.buffers);
  flags.Switch("choices", "With --op: measures every kernel that --tune chooses among, each in a row of its own.",
               &given.ops.each_choice);
  flags.Switch(
      "data",
      "Measures how many pictures a second are read: JPEG files of 500 x 375, a random part of each resized to "
      "224 x 224, mirrored at random and normalised, in batches. --threads is the number of workers, --steps "
      "that of batches. --peer=torchvision: beside its DataLoader with 0, 1 and 2 workers.",
      &given.data);
  AddReductionFlags(flags, line.reductions);
  LimitFlags(flags);
  return flags;
}

/// Errors: a flag that the mode does not read, with what the mode does.
absl::Status CheckMode(const FlagSet& flags, const Given& given, bool all_reduce) {
  const BenchOptions& row = given.row;
  const auto refuse = [&flags](unsigned mode, const char* does) -> absl::Status {
    const std::string unread = flags.FirstUnread(mode);
    if (unread.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(does, ", without ", unread));
  };
  if (!given.ops.names.empty()) return refuse(kOps, "--op measures operations on their own");
  if (given.data) return refuse(kData, "--data measures how fast pictures are read");
  if (all_reduce) return refuse(kReductions, "--all-reduce measures sums over processes on their own");
  if (flags.Given("elements") || flags.Given("slot")) {
    return absl::InvalidArgumentError("--elements and --slot are of sums over processes: they need --all-reduce");
  }
  if (flags.Given("shape") || flags.Given("buffers") || flags.Given("choices")) {
    return absl::InvalidArgumentError("--shape, --buffers and --choices are of operations: they need --op=NAME");
  }
  if (row.profile) return refuse(kProfile, "--profile times instructions of mpc's own step");
  if (!row.start_folder.empty()) return refuse(kStart, "--start writes what a network begins from and ends");
  if (row.single) return refuse(kSingle, "--single measures one run and prints its samples");
  const bool torch = std::any_of(row.peers.begin(), row.peers.end(), IsTorch);
  for (const char* flag : {"peer-layout", "python", "peer-script"}) {
    if (flags.Given(flag) && !torch) {
      return absl::InvalidArgumentError(absl::StrCat("--", flag, " is of PyTorch: it needs --peer=torch"));
    }
  }
  if (flags.Given("svg") && row.peers.empty() && row.ranks == 1) {
    return absl::InvalidArgumentError("--svg draws the ratios to peers: it needs --peer");
  }
  return absl::OkStatus();
}

absl::Status CheckRow(const BenchOptions& row) {
  if (absl::Status status = CheckBenchModel(row); !status.ok()) return status;
  if (absl::Status status = CheckRanks(row); !status.ok()) return status;
  if (!row.dtype.empty() && row.dtype != "f16" && row.dtype != "bf16") {
    return absl::InvalidArgumentError(absl::StrCat("--dtype: '", row.dtype, "' is not f16 or bf16"));
  }
  const absl::StatusOr<amp::Precision> precision = amp::ResolveOptions(PrecisionOf(row), amp::Front::kModel);
  if (!precision.ok()) return precision.status();
  if (row.loss_scale == "derived") {
    return absl::InvalidArgumentError(
        "--loss-scale=derived is of mpc-train, which derives the scale before its first step; a benchmark takes "
        "dynamic, none or a number");
  }
  const bool scales = precision->loss_scale.mode != LossScaleConfig::Mode::kNone;
  for (const std::string& peer : row.peers) {
    if (absl::Status status = CheckPeer(row, peer, scales); !status.ok()) return status;
  }
  return absl::OkStatus();
}

/// Whether the network has this size.
bool Takes(const std::string& model, std::int64_t models::WorkloadSizes::*size) {
  if (size != &models::WorkloadSizes::image_size) return models::TokenSizesOf(model).has_value();
  return models::CheckWorkload(model, {.image_size = 32}).ok();
}

/// Among several networks a size is of those that have it.
void LeaveOutForeignSizes(std::vector<BenchOptions>& rows) {
  for (const SizeFlag& flag : SizeFlags()) {
    const auto takes = [&](const BenchOptions& row) { return Takes(row.model, flag.size); };
    if (std::none_of(rows.begin(), rows.end(), takes)) continue;
    for (BenchOptions& row : rows) {
      if (!takes(row)) row.sizes.*flag.size = 0;
    }
  }
}

absl::Status MakeRows(const Given& given, const std::vector<std::string>& models, std::vector<BenchOptions>& rows) {
  for (const std::string& text : models) {
    const std::pair<std::string, std::string> model = absl::StrSplit(text, absl::MaxSplits(':', 1));
    std::vector<std::int64_t> batches = given.batches;
    if (text.find(':') != std::string::npos) {
      if (absl::Status status = ParseNumbers(model.second, ',', 1, kMaxBatch, batches); !status.ok()) {
        return absl::InvalidArgumentError(absl::StrCat("the batch size of '", text, "': ", status.message()));
      }
    }
    for (const std::string& level : given.levels) {
      for (const std::int64_t batch : batches) {
        for (const std::int64_t busy : given.busy.empty() ? std::vector<std::int64_t>{0} : given.busy) {
          BenchOptions& row = rows.emplace_back(given.row);
          row.model = model.first;
          row.amp_level = level;
          row.batch = batch;
          row.busy = busy;
          if (given.seconds.has_value()) row.seconds = *given.seconds;
          if (level == "O0" && given.levels.size() > 1) row.dtype.clear();
        }
      }
    }
  }
  LeaveOutForeignSizes(rows);
  for (BenchOptions& row : rows) AddRankPeers(row);
  for (const BenchOptions& row : rows) {
    if (absl::Status status = CheckRow(row); !status.ok()) return status;
  }
  if ((given.row.single || !given.row.start_folder.empty()) && rows.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(given.row.single ? "--single measures" : "--start writes",
                                                   " one row, the command line asks for ", rows.size()));
  }
  return absl::OkStatus();
}

absl::StatusOr<OpOptions> MakeOps(const Given& given, const std::vector<std::string>& models) {
  if (!models.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("--op measures operations on their own, without '", models[0], "'"));
  }
  if (given.row.device != "cpu") {
    return absl::InvalidArgumentError(
        absl::StrCat("--op measures the CPU, not --device=", given.row.device, "; gpu_kernel_test measures a GPU"));
  }
  OpOptions ops = given.ops;
  ops.threads = given.row.threads;
  ops.fusion = given.row.fuses();
  if (given.seconds.has_value()) ops.seconds = *given.seconds;
  if (absl::Status status = ReadMeasuredType(given.row.dtype, ops.dtype); !status.ok()) return status;
  for (const std::string& name : ops.names) {
    if (absl::Status status = CheckOpGraph(name, ops.shape); !status.ok()) return status;
  }
  return ops;
}

absl::StatusOr<DataOptions> MakeData(const FlagSet& flags, const Given& given, const std::vector<std::string>& models) {
  if (!models.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--data measures how fast pictures are read, without '", models[0], "'"));
  }
  const BenchOptions& row = given.row;
  for (const std::string& peer : row.peers) {
    if (peer != "torchvision") {
      return absl::InvalidArgumentError(
          absl::StrCat("--peer=", peer, " and --data contradict each other: --data knows torchvision only"));
    }
  }
  for (const char* flag : {"python", "peer-script"}) {
    if (flags.Given(flag) && row.peers.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("--", flag, " is of torchvision: it needs --peer=torchvision"));
    }
  }
  if (given.batches.size() != 1) {
    return absl::InvalidArgumentError("--batch: --data measures batches of one size");
  }
  return DataOptions{.measured = true,
                     .batch = given.batches[0],
                     .threads = row.threads,
                     .warmup = row.warmup,
                     .steps = row.steps,
                     .runs = row.runs,
                     .peers = row.peers,
                     .python = row.python,
                     .peer_script = row.peer_script};
}

}  // namespace

const std::vector<SizeFlag>& SizeFlags() {
  using Sizes = models::WorkloadSizes;
  static const auto* const flags = new std::vector<SizeFlag>{
      {"image-size", "Side of photographs (resnet50); 0: 224.", 1 << 14, &Sizes::image_size},
      {"tokens", "Of a row (bert, gpt2); 0: 128 of bert, else the network's context.", 1 << 20, &Sizes::tokens},
      {"layers", "Of bert and gpt2; 0: as published. So are their other sizes.", 1 << 10, &Sizes::layers},
      {"width", "Of bert and gpt2.", 1 << 16, &Sizes::width},
      {"heads", "Of bert and gpt2.", 1 << 10, &Sizes::heads},
      {"context", "Of bert and gpt2: positions.", 1 << 20, &Sizes::context},
      {"vocabulary", "Of bert and gpt2.", 1 << 24, &Sizes::vocabulary},
  };
  return *flags;
}

double BenchOptions::seconds_limit() const {
  return seconds > 0 && device == "cpu" ? seconds : std::numeric_limits<double>::infinity();
}

absl::StatusOr<BenchCommandLine> ParseBenchCommandLine(int argc, const char* const* argv) {
  BenchCommandLine line;
  Given given;
  FlagSet flags = MakeFlags(line, given);
  absl::StatusOr<std::vector<std::string>> models = flags.Parse(argc, argv);
  if (!models.ok()) return models.status();
  if (flags.help_requested()) {
    line.help = flags.Help();
    return line;
  }
  if (absl::Status status = CheckMode(flags, given, line.reductions.measured); !status.ok()) return status;
  const absl::Status paths = CheckPathsDiffer({{"--peer-script", given.row.peer_script},
                                               {"--choice-cache", given.row.choice_cache, true},
                                               {"--json", line.json_path, true},
                                               {"--svg", line.svg_path, true}});
  if (!paths.ok()) return paths;
  if (!given.ops.names.empty()) {
    absl::StatusOr<OpOptions> ops = MakeOps(given, *models);
    if (!ops.ok()) return ops.status();
    line.ops = *std::move(ops);
    return line;
  }
  if (given.data) {
    absl::StatusOr<DataOptions> data = MakeData(flags, given, *models);
    if (!data.ok()) return data.status();
    line.data = *std::move(data);
    return line;
  }
  if (line.reductions.measured) {
    if (absl::Status status = FinishReductions(given.row, *models, line.reductions); !status.ok()) return status;
    if (given.seconds.has_value()) line.reductions.seconds = *given.seconds;
    return line;
  }
  if (given.row.ranks > 1 && !flags.Given("threads")) given.row.threads = 1;
  if (models->empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("which model? choose among ", absl::StrJoin(models::TrainedNames(), ", ")));
  }
  if (absl::Status status = CheckDeviceFlags(given.row); !status.ok()) return status;
  if (absl::Status status = MakeRows(given, *models, line.rows); !status.ok()) return status;
  return line;
}

}  // namespace mpc::tools
