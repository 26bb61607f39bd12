// What processes that train together must have in common before they wait for each other: rows and Programs.
#include <charconv>
#include <cstdlib>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "frontend/distributed/distributed.h"
#include "frontend/graph/context.h"
#include "frontend/graph/device_rates.h"
#include "frontend/train/model_impl.h"
#include "runtime/checksum.h"
#include "runtime/program_encoding.h"

namespace mpc {

using internal::CompiledStep;
using internal::TextMap;

namespace {

constexpr char kDumpVariable[] = "MPC_DUMP_PROGRAMS";
/// Longer texts are compared and named by their hash.
constexpr std::size_t kLongestText = 100;

std::string HashText(const void* bytes, std::size_t size) {
  runtime::Checksum checksum;
  checksum.Add(bytes, size);
  return absl::StrCat("hash ", checksum.Text());
}

std::string HashText(const std::string& text) { return HashText(text.data(), text.size()); }

/// The shortest text that no other number has.
std::string Exact(double value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

/// The type and the hash of each column of the first batch, or why there is none.
std::string DescribeFirstBatch(const data::Dataset& dataset) {
  absl::StatusOr<std::unique_ptr<data::DatasetIterator>> rows = dataset.NewIterator(0);
  if (!rows.ok()) return std::string(rows.status().message());
  data::Row row;
  const absl::StatusOr<bool> found = (*rows)->Next(&row);
  if (!found.ok()) return std::string(found.status().message());
  if (!*found) return "none";
  std::vector<std::string> columns;
  for (const Tensor& column : row) {
    columns.push_back(
        absl::StrCat(column.spec().ToString(), " ", HashText(column.bytes().data(), column.bytes().size())));
  }
  return absl::StrJoin(columns, ", ");
}

/// What Fit evaluates, when and by what.
void AddValidation(const internal::Validation& validation, std::vector<std::string>& settings) {
  const data::Dataset& dataset = validation.dataset();
  std::vector<std::string> metrics;
  for (const auto& [name, metric] : validation.metrics().entries()) {
    metrics.push_back(absl::StrCat(name, " = ", metric->Description()));
  }
  settings.push_back(absl::StrCat("valid_frequency: ", validation.frequency().Description()));
  settings.push_back(absl::StrCat("metrics: ", absl::StrJoin(metrics, ", ")));
  settings.push_back(absl::StrCat("batches of a validation: ", dataset.size().value_or(-1)));
  settings.push_back(absl::StrCat("columns of a validation: ", absl::StrJoin(dataset.column_names(), ", ")));
  settings.push_back(absl::StrCat("class names of a validation: ", absl::StrJoin(dataset.class_names(), ", ")));
  settings.push_back(absl::StrCat("first batch of a validation: ", DescribeFirstBatch(dataset)));
}

/// The learning rates that optimizers were made with. Those of now are state, which rank 0 may have from a file.
void AddRates(const std::vector<nn::Optimizer*>& optimizers, std::vector<std::string>& settings) {
  for (std::size_t i = 0; i < optimizers.size(); ++i) {
    for (std::size_t group = 0; group < optimizers[i]->num_groups(); ++group) {
      const nn::LearningRate& rate = optimizers[i]->configured_rate(group);
      settings.push_back(absl::StrCat(i == 0 ? "" : absl::StrCat("optimizer ", i + 1, " "),
                                      group == 0 ? "" : absl::StrCat("group ", group, " "),
                                      "learning_rate: ", rate.is_schedule() ? "a schedule" : Exact(rate.value())));
    }
  }
}

/// The scaling that scalers were made with. Its values of now are state, which rank 0 may have from a file.
void AddScaling(const std::vector<const LossScaler*>& scalers, std::vector<std::string>& settings) {
  for (std::size_t i = 0; i < scalers.size(); ++i) {
    const LossScaleConfig& config = scalers[i]->made_with();
    const std::string name = absl::StrCat("loss scale ", scalers.size() == 1 ? "" : absl::StrCat("of loss ", i, " "));
    settings.push_back(absl::StrCat(name, "at first: ", Exact(config.init)));
    if (config.mode != LossScaleConfig::Mode::kDynamic) continue;
    settings.push_back(absl::StrCat(name, "growth: ", Exact(config.growth)));
    settings.push_back(absl::StrCat(name, "backoff: ", Exact(config.backoff)));
    settings.push_back(absl::StrCat(name, "minimum: ", Exact(config.minimum)));
    settings.push_back(absl::StrCat(name, "maximum: ", Exact(config.maximum)));
    settings.push_back(absl::StrCat(name, "growth interval: ", config.growth_interval));
    settings.push_back(absl::StrCat(name, "backoff interval: ", config.backoff_interval));
  }
}

/// The options that decide the Program, by name. What a cache of choices is called decides nothing, and rates are
/// agreed on.
void AddOptions(const compiler::CompileOptions& options, TextMap& texts) {
  std::string name;
  const std::string key = compiler::programKey(options);
  for (const absl::string_view entry : absl::StrSplit(key, '|', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(entry, absl::MaxSplits('=', 1));
    // A value with a bar in it goes on in the next entry.
    const bool begins = absl::StrContains(entry, '=');
    if (begins) name = parts.first;
    if (name == "plan.choice_cache" || absl::StartsWith(name, "rates.")) continue;
    absl::StrAppend(&texts[absl::StrCat("compile option ", name)], begins ? parts.second : parts.first);
  }
}

/// Everything that decides a Program's bits. An error says the first name that differs, in alphabetical order. So
/// options come before choices of kernels, and these before the Program as a whole.
TextMap DescribeForComparison(const CompiledStep& step) {
  TextMap texts;
  AddOptions(step.compiled().options, texts);
  const runtime::Program& program = step.program();
  for (const auto& [kernel, choice] : program.choices) texts[absl::StrCat("kernel choice ", kernel)] = choice;
  for (auto& [name, text] : texts) {
    if (text.size() > kLongestText) text = HashText(text);
  }
  runtime::Package package;
  package.programs.push_back(program);
  std::string code;
  for (runtime::CodeBlob& blob : package.programs.front().code) {
    code.append(blob.bytes.begin(), blob.bytes.end());
    blob.bytes.clear();
  }
  const std::vector<std::uint8_t> tables = runtime::file::Encode(package);
  texts["program"] = HashText(tables.data(), tables.size());
  texts["program's generated code"] = HashText(code);
  return texts;
}

/// Writes what this process compares and has compiled, where the variable names a folder.
absl::Status Dump(const std::string& name, const TextMap& texts, const CompiledStep& step) {
  const char* const folder = std::getenv(kDumpVariable);
  if (folder == nullptr) return absl::OkStatus();
  const std::string path = absl::StrCat(folder, "/", name, ".txt");
  std::ofstream file(path);
  for (const auto& [key, text] : texts) file << key << ": " << text << "\n";
  file << step.compiled().final_ir.Print() << std::flush;
  return file.good() ? absl::OkStatus()
                     : absl::FailedPreconditionError(absl::StrCat(kDumpVariable, ": ", path, " cannot be written"));
}

}  // namespace

std::vector<std::string> Model::Impl::DescribeRun(std::int64_t epochs, const data::Dataset& dataset,
                                                  const internal::Validation* validation) const {
  std::vector<std::string> settings = {
      absl::StrCat("epochs: ", epochs),
      absl::StrCat("batches of an epoch: ", position.batches_per_epoch()),
      absl::StrCat("columns: ", absl::StrJoin(dataset.column_names(), ", ")),
      absl::StrCat("class names: ", absl::StrJoin(dataset.class_names(), ", ")),
      absl::StrCat("seed: ", GetSeed()),
      absl::StrCat("first batch of the data set: ", DescribeFirstBatch(dataset)),
      absl::StrCat("record_gradient_norm: ", options.record_gradient_norm),
      absl::StrCat("record_learning_rate: ", options.record_learning_rate),
      absl::StrCat("record_state_hash: ", options.record_state_hash),
      absl::StrCat("max_consecutive_skips: ", options.max_consecutive_skips),
      absl::StrCat("memory_budget: ", GetContext().memory_budget),
      absl::StrCat("capsule: ", options.capsule_path.empty() ? "none"
                                : options.capsule_at == 0    ? "of the first bad step"
                                                             : absl::StrCat("of step ", options.capsule_at))};
  if (validation != nullptr) AddValidation(*validation, settings);
  AddRates(cells.optimizers(), settings);
  AddScaling(scalers.all(), settings);
  return settings;
}

absl::StatusOr<compiler::DeviceRates> Model::Impl::AgreeOnRates(const compiler::DeviceRates& measured) const {
  if (processes.size() == 1) return measured;
  const std::string own = absl::StrJoin(amp::RateChoices(measured), "\n", absl::PairFormatter("="));
  const absl::StatusOr<std::string> first = distributed::internal::BytesOfFirst(
      absl::StrCat("rates of ", device(), " ", std::string(DTypeName(precision.dtype))), own);
  if (!first.ok()) return first.status();
  TextMap entries;
  for (const absl::string_view line : absl::StrSplit(*first, '\n')) {
    entries.insert(std::pair<std::string, std::string>(absl::StrSplit(line, absl::MaxSplits('=', 1))));
  }
  return amp::RatesFromChoices(entries).value_or(measured);
}

absl::Status Model::Impl::CompareProgram(const CompiledStep& step, const internal::StepOptions& step_options) {
  if (processes.size() == 1 || !step_options.training) return absl::OkStatus();
  const std::string signature = internal::ProgramSignature(step.program());
  // Programs of one step and one signature are compared in the order in which they are compiled. A signature that one
  // rank alone compiles, as of a shorter batch, has nothing to be compared with.
  const std::string place = absl::StrCat(step.program().name, ".run", internal::ProcessTraining::runs(), ".step",
                                         position.global_step(), ".", HashText(signature).substr(5));
  const std::string name = absl::StrCat(place, ".", compared_programs[place]++);
  const TextMap texts = DescribeForComparison(step);
  if (absl::Status status = Dump(absl::StrCat(name, ".rank", processes.rank()), texts, step); !status.ok()) {
    return status;
  }
  const absl::Status status = distributed::internal::CompareWithFirst(name, texts);
  if (!absl::IsInvalidArgument(status)) return status;
  return absl::InvalidArgumentError(absl::StrCat("Programs differ: ", signature, ": ", status.message(), ". With ",
                                                 kDumpVariable, "=FOLDER every process writes its own there"));
}

}  // namespace mpc
