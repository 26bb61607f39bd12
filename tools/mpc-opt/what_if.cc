#include "tools/mpc-opt/what_if.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "compiler/driver/compiler.h"
#include "compiler/module/parse_module.h"
#include "compiler/options/option_texts.h"
#include "frontend/graph/element_conversion.h"
#include "frontend/inspect/overflow_diagnosis.h"
#include "frontend/inspect/value_statistics.h"
#include "frontend/state/capsule_layout.h"
#include "frontend/state/step_capsule.h"
#include "runtime/scaler_field.h"
#include "tools/mpc-opt/step_chain.h"

namespace mpc::opt {
namespace {

using compiler::CompileOptions;
using runtime::Executable;

constexpr absl::string_view kScale = "scale=";
constexpr absl::string_view kDeny = "deny=";
constexpr absl::string_view kDevice = "device=";

// What a change may be of.
constexpr char kLowType[] = "a low type";
constexpr char kScaleChange[] = "a scale";

bool IsScale(const std::string& entry) { return ScalerFieldOf(entry) == ScalerField::kScale; }

/// What the changes of a request make of a capsule.
class ChangedStep {
 public:
  static absl::StatusOr<ChangedStep> Make(const ReplayRequest& request) {
    absl::StatusOr<StepCapsule> capsule = ReadStepCapsule(request.path);
    if (!capsule.ok()) return capsule.status();
    if (capsule->traced.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat(request.path, " does not hold the traced step: `mpc-run --replay` repeats it as it is"));
    }
    absl::StatusOr<CompileOptions> options = compiler::parseOptionTexts(capsule->options);
    if (!options.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(request.path, ": ", options.status().message()));
    }
    absl::StatusOr<compiler::Module> module = compiler::ParseModule(capsule->traced);
    if (!module.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(request.path, ": its traced step is malformed: ", module.status().message()));
    }
    ChangedStep step(*std::move(capsule), *std::move(options), *std::move(module));
    for (const std::string& change : request.changes) {
      if (absl::Status status = step.Change(change); !status.ok()) return status;
    }
    if (absl::Status status = step.CheckLowType(); !status.ok()) return status;
    if (absl::Status status = step.CheckDenied(request.changes); !status.ok()) return status;
    return step;
  }

  const StepCapsule& capsule() const { return capsule_; }
  double scale() const { return scale_; }

  /// Compiles the step as it trains, and says whether it is finite. Errors: those of compiling, of the state and of the
  /// device.
  absl::StatusOr<bool> IsFinite() const {
    const absl::StatusOr<StepCapsule> step = Compile(options_);
    if (!step.ok()) return step.status();
    std::vector<StepCapsule::NamedTensors> records(static_cast<std::size_t>(step->runs));
    CapsuleWatch watch;
    watch.ended = [&](std::int64_t run, const Executable& executable) {
      const runtime::Program& program = executable.program();
      for (std::size_t i = 0; i < program.outputs.size(); ++i) {
        const absl::Span<const std::uint8_t> bytes = executable.output(i);
        const TensorSpec& spec = program.values[program.outputs[i].value].spec;
        records[static_cast<std::size_t>(run)].emplace_back(program.outputs[i].name,
                                                            Tensor::FromBytes(spec, bytes.data(), bytes.size()));
      }
      return absl::OkStatus();
    };
    if (absl::Status status = RunCapsule(*step, watch); !status.ok()) return status;
    StepCapsule::NamedTensors record;
    for (const StepCapsule::NamedTensors& of_run : records) record.insert(record.end(), of_run.begin(), of_run.end());
    return mpc::IsFinite(*step, record);
  }

  /// A run of the step that is compiled to be measured.
  struct Measured {
    runtime::Program program;
    std::vector<ValueStatistics> values;
    std::int64_t run = 0;  ///< the one in which a value that is not finite begins; else the last one
  };
  absl::StatusOr<Measured> Measure() const {
    CompileOptions options = options_;
    options.instrument = true;
    const absl::StatusOr<StepCapsule> step = Compile(options);
    if (!step.ok()) return step.status();
    std::vector<std::vector<ValueStatistics>> values(static_cast<std::size_t>(step->runs));
    CapsuleWatch watch;
    watch.ended = [&](std::int64_t run, const Executable& executable) {
      absl::StatusOr<std::vector<ValueStatistics>> read = internal::ReadStatistics(executable);
      if (!read.ok()) return read.status();
      values[static_cast<std::size_t>(run)] = *std::move(read);
      return absl::OkStatus();
    };
    if (absl::Status status = RunCapsule(*step, watch); !status.ok()) return status;
    const std::int64_t run = FirstBadRun(*step, values);
    return Measured{ProgramOfRun(*step, run), std::move(values[static_cast<std::size_t>(run)]), run};
  }

 private:
  /// The run in which what is not finite begins. What one rank makes reaches the others through their sums, which come
  /// late in a last micro-batch. So of the last ones that counts whose first bad value comes first.
  static std::int64_t FirstBadRun(const StepCapsule& step, const std::vector<std::vector<ValueStatistics>>& values) {
    constexpr std::size_t kNone = static_cast<std::size_t>(-1);
    std::size_t earliest = kNone;
    std::int64_t first = step.runs - 1;
    for (std::int64_t run = 0; run < step.runs; ++run) {
      const std::vector<ValueStatistics>& of_run = values[static_cast<std::size_t>(run)];
      const auto bad = std::find_if(of_run.begin(), of_run.end(),
                                    [](const ValueStatistics& value) { return value.not_finite() > 0; });
      if (bad == of_run.end()) continue;
      const bool exchanges = step.ranks > 1 && (run + 1) % (step.runs / step.ranks) == 0;
      if (!exchanges) return run;
      if (const auto place = static_cast<std::size_t>(bad - of_run.begin()); place < earliest) {
        earliest = place;
        first = run;
      }
    }
    return first;
  }

  /// The capsule with Programs that are compiled anew, and with the state that these bind. It has no record.
  absl::StatusOr<StepCapsule> Compile(CompileOptions options) const {
    StepCapsule step = capsule_;
    absl::StatusOr<compiler::CompileResult> compiled = compiler::Compile(module_, options);
    if (!compiled.ok()) return compiled.status();
    step.program = std::move(compiled->program);
    if (step.accumulating.has_value()) {
      options.last_micro_step = false;
      compiled = compiler::Compile(module_, options);
      if (!compiled.ok()) return compiled.status();
      step.accumulating = std::move(compiled->program);
    }
    step.record.clear();
    step.after.clear();
    if (absl::Status status = TakeState(step); !status.ok()) return status;
    return step;
  }

  ChangedStep(StepCapsule capsule, CompileOptions options, compiler::Module module)
      : capsule_(std::move(capsule)), options_(std::move(options)), module_(std::move(module)) {
    for (const auto& [name, value] : capsule_.state) {
      if (!IsScale(name) || value.size() != 1) continue;
      if (!has_scale_) scale_ = value.ToFloats().front();
      has_scale_ = true;
    }
  }

  /// Errors (INVALID_ARGUMENT): there is a change of this kind, `what`, already.
  absl::Status NoteChange(const std::string& what, const std::string& change) {
    const auto [earlier, is_first] = changes_.try_emplace(what, change);
    if (is_first) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("--what-if takes ", what, " once, got '", earlier->second, "' and '", change, "'"));
  }

  /// Errors (INVALID_ARGUMENT): a low type for a step in which nothing is low.
  absl::Status CheckLowType() const {
    const auto type = changes_.find(kLowType);
    if (type == changes_.end() || options_.level != "O0") return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("--what-if=", type->second,
                                                   ": the step is at O0, where nothing is low; a low type goes with ",
                                                   "O1, O2, O3 or auto, as in --what-if=O2,", type->second));
  }

  absl::Status Change(const std::string& change) {
    static constexpr absl::string_view kLevels[] = {"O0", "O1", "O2", "O3", "auto"};
    if (std::find(std::begin(kLevels), std::end(kLevels), change) != std::end(kLevels)) {
      if (absl::Status status = NoteChange("a level", change); !status.ok()) return status;
      options_.level = change;
      options_.keep_batchnorm_fp32.clear();
      options_.assignment.clear();
      return absl::OkStatus();
    }
    if (change == "f16" || change == "bf16") {
      if (absl::Status status = NoteChange(kLowType, change); !status.ok()) return status;
      options_.dtype = change;
      options_.assignment.clear();
      return absl::OkStatus();
    }
    if (absl::StartsWith(change, kDeny) && change.size() > kDeny.size()) {
      options_.deny.push_back(change.substr(kDeny.size()));
      options_.assignment.clear();
      return absl::OkStatus();
    }
    if (change == "device=cpu" || change == "device=cuda") {
      if (absl::Status status = NoteChange("a device", change); !status.ok()) return status;
      options_.device = change.substr(kDevice.size());
      options_.arch.clear();
      return absl::OkStatus();
    }
    if (double scale = 0; absl::StartsWith(change, kScale) && absl::SimpleAtod(change.substr(kScale.size()), &scale) &&
                          std::isfinite(scale) && scale > 0) {
      if (!has_scale_) {
        return absl::FailedPreconditionError(
            absl::StrCat("--what-if=", change, ": no scaler scales the loss of the step in the capsule"));
      }
      if (absl::Status status = NoteChange(kScaleChange, change); !status.ok()) return status;
      scale_ = scale;
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "--what-if takes a level (", absl::StrJoin(kLevels, ", "),
        "), a low type (f16, bf16), scale=NUMBER above 0, deny=CELL, or device=cpu or cuda, got '", change, "'"));
  }

  /// Errors (NOT_FOUND): a denied name that is no operation and no Cell of the step. A change of nothing would look
  /// like one that does not help. The pass that assigns precision remarks on such names.
  absl::Status CheckDenied(const std::vector<std::string>& changes) const {
    const auto denies = [](const std::string& change) { return absl::StartsWith(change, kDeny); };
    if (std::none_of(changes.begin(), changes.end(), denies)) return absl::OkStatus();
    compiler::Module module = module_.Clone();
    std::vector<compiler::PhaseTime> phases;
    std::vector<std::string> remarks;
    if (absl::Status status = compiler::RunPasses(module, options_, "amp", &phases, &remarks); !status.ok()) {
      return status;
    }
    for (const std::string& change : changes) {
      const std::string entry = absl::StrCat("list entry '", absl::StripPrefix(change, kDeny), "' is no operation");
      for (const std::string& remark : remarks) {
        if (!denies(change) || !absl::StrContains(remark, entry)) continue;
        return absl::NotFoundError(absl::StrCat("--what-if=", change, ": ", remark));
      }
    }
    return absl::OkStatus();
  }

  /// The entry that `binding` binds, from a value of the capsule.
  Tensor Converted(const runtime::StateBinding& binding, const Tensor& kept) const {
    const bool is_scale = changes_.contains(kScaleChange) && binding.role == Role::kScaler && IsScale(binding.name);
    const Tensor value = is_scale ? Tensor::Scalar(static_cast<float>(scale_)) : kept;
    std::vector<std::uint8_t> bytes(binding.spec.bytes());
    internal::ConvertElements(value.dtype(), value.bytes().data(), binding.spec.dtype, bytes.data(),
                              static_cast<std::size_t>(value.size()));
    return Tensor::FromBytes(binding.spec, bytes.data(), bytes.size());
  }

  /// Gives `step` the state that its Programs bind. Errors: the capsule lacks some of it.
  absl::Status TakeState(StepCapsule& step) const {
    std::vector<std::string> missing;
    const auto take = [&](const StepCapsule::NamedTensors& from, StepCapsule::NamedTensors& to, bool is_whole) {
      to.clear();
      for (const runtime::StateBinding& binding : internal::StateOf(step)) {
        const Tensor* const kept = internal::FindTensor(from, binding.name);
        if (kept != nullptr && kept->shape() == binding.spec.shape) {
          to.emplace_back(binding.name, Converted(binding, *kept));
        } else if (is_whole) {
          missing.push_back(absl::StrCat("'", binding.name, "'"));
        }
      }
    };
    take(capsule_.state, step.state, true);
    for (std::size_t i = 0; i < step.other_ranks.size(); ++i) {
      take(capsule_.other_ranks[i].state, step.other_ranks[i].state, false);
    }
    if (missing.empty()) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("the changed step reads state that the capsule does not have: ", absl::StrJoin(missing, ", ")));
  }

  StepCapsule capsule_;
  CompileOptions options_;
  compiler::Module module_;
  double scale_ = 1;
  bool has_scale_ = false;
  std::map<std::string, std::string> changes_;  ///< by what they change, those that are accepted once
};

}  // namespace

absl::StatusOr<std::string> ReplayWhatIf(const ReplayRequest& request) {
  const absl::StatusOr<ChangedStep> step = ChangedStep::Make(request);
  if (!step.ok()) return step.status();
  const absl::StatusOr<bool> finite = step->IsFinite();
  if (!finite.ok()) return finite.status();
  std::string text = absl::StrCat("step ", step->capsule().step, " of ", request.path, ", ",
                                  request.changes.empty() ? "as it was" : absl::StrJoin(request.changes, ", "), ": ",
                                  *finite ? "finite\n" : "not finite\n");
  if (*finite && !request.trace) return text;
  const absl::StatusOr<ChangedStep::Measured> measured = step->Measure();
  if (!measured.ok()) return measured.status();
  const std::vector<ValueStatistics>& values = measured->values;
  if (step->capsule().runs > 1) absl::StrAppend(&text, "in ", DescribeRun(step->capsule(), measured->run), ":\n");
  if (!*finite) absl::StrAppend(&text, DiagnoseOverflow(values, step->scale()));
  if (!request.trace) return text;
  auto last = std::find_if(values.begin(), values.end(), [](const auto& value) { return value.not_finite() > 0; });
  if (last == values.end()) {
    last = std::max_element(values.begin(), values.end(),
                            [](const auto& a, const auto& b) { return a.largest < b.largest; });
    absl::StrAppend(&text, "every value is finite; what leads to the largest one:\n");
  } else {
    absl::StrAppend(&text, "what leads to it:\n");
  }
  const auto index = static_cast<std::size_t>(last - values.begin());
  return text + DescribeChain(measured->program, values, index);
}

}  // namespace mpc::opt
