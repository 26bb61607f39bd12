#include "tools/mpc-opt/what_if.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/driver/compiler.h"
#include "compiler/module/parse_module.h"
#include "compiler/options/option_texts.h"
#include "frontend/graph/element_conversion.h"
#include "frontend/inspect/overflow_diagnosis.h"
#include "frontend/inspect/value_statistics.h"
#include "frontend/state/step_capsule.h"
#include "runtime/executable.h"
#include "runtime/scaler_field.h"
#include "tools/mpc-opt/step_chain.h"

namespace mpc::opt {
namespace {

using compiler::CompileOptions;
using runtime::Executable;

constexpr absl::string_view kScale = "scale=";
constexpr absl::string_view kDeny = "deny=";
constexpr absl::string_view kDevice = "device=";

bool IsScale(const std::string& entry) { return ScalerFieldOf(entry) == ScalerField::kScale; }

/// Adds the outputs of a run.
void AppendRecord(const Executable& step, std::int64_t run, StepCapsule::NamedTensors& record) {
  const runtime::Program& program = step.program();
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    const absl::Span<const std::uint8_t> bytes = step.output(i);
    const TensorSpec& spec = program.values[program.outputs[i].value].spec;
    record.emplace_back(NameInRun(program.outputs[i].name, run), Tensor::FromBytes(spec, bytes.data(), bytes.size()));
  }
}

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
    return step;
  }

  const StepCapsule& capsule() const { return capsule_; }
  double scale() const { return scale_; }

  /// Compiles the step as it trains, and says whether it is finite. Errors: those of compiling, of the state and of the
  /// device.
  absl::StatusOr<bool> IsFinite() const {
    const absl::StatusOr<std::unique_ptr<Executable>> step = Load(options_);
    if (!step.ok()) return step.status();
    StepCapsule::NamedTensors record;
    for (std::int64_t run = 0; run < capsule_.runs; ++run) {
      if (absl::Status status = RunOnce(**step, run); !status.ok()) return status;
      AppendRecord(**step, run, record);
    }
    return mpc::IsFinite((*step)->program(), record);
  }

  /// A run of the step that is compiled to be measured.
  struct Measured {
    std::unique_ptr<Executable> step;
    std::vector<ValueStatistics> values;
    std::int64_t run = 0;  ///< the first that has a value that is not finite; else the last one
  };
  absl::StatusOr<Measured> Measure() const {
    CompileOptions options = options_;
    options.instrument = true;
    absl::StatusOr<std::unique_ptr<Executable>> step = Load(options);
    if (!step.ok()) return step.status();
    Measured measured = {.step = *std::move(step)};
    for (measured.run = 0;; ++measured.run) {
      if (absl::Status status = RunOnce(*measured.step, measured.run); !status.ok()) return status;
      absl::StatusOr<std::vector<ValueStatistics>> values = internal::ReadStatistics(*measured.step);
      if (!values.ok()) return values.status();
      measured.values = *std::move(values);
      const bool is_bad = std::any_of(measured.values.begin(), measured.values.end(),
                                      [](const ValueStatistics& value) { return value.not_finite() > 0; });
      if (is_bad || measured.run + 1 == capsule_.runs) return measured;
    }
  }

 private:
  absl::StatusOr<std::unique_ptr<Executable>> Load(const CompileOptions& options) const {
    absl::StatusOr<compiler::CompileResult> compiled = compiler::Compile(module_, options);
    if (!compiled.ok()) return compiled.status();
    const auto program = std::make_shared<const runtime::Program>(std::move(compiled->program));
    const absl::StatusOr<runtime::StateStore> state = StateFor(*program);
    if (!state.ok()) return state.status();
    const absl::StatusOr<const runtime::Device*> device = runtime::GetDevice(program->device);
    if (!device.ok()) return device.status();
    return (*device)->Load(program, *state);
  }

  absl::Status RunOnce(Executable& step, std::int64_t run) const {
    const absl::Status status = step.Run(InputsOfRun(capsule_, run));
    return status.ok() ? step.Wait() : status;
  }

  ChangedStep(StepCapsule capsule, CompileOptions options, compiler::Module module)
      : capsule_(std::move(capsule)), options_(std::move(options)), module_(std::move(module)) {
    for (const auto& [name, value] : capsule_.state) {
      if (!IsScale(name) || value.size() != 1) continue;
      if (!has_scale_) scale_ = value.ToFloats().front();
      has_scale_ = true;
    }
  }

  absl::Status Change(const std::string& change) {
    static constexpr absl::string_view kLevels[] = {"O0", "O1", "O2", "O3", "auto"};
    if (std::find(std::begin(kLevels), std::end(kLevels), change) != std::end(kLevels)) {
      options_.level = change;
      options_.keep_batchnorm_fp32.clear();
      options_.assignment.clear();
      return absl::OkStatus();
    }
    if (change == "f16" || change == "bf16") {
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
      scale_ = scale;
      scale_is_changed_ = true;
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "--what-if takes a level (", absl::StrJoin(kLevels, ", "),
        "), a low type (f16, bf16), scale=NUMBER above 0, deny=CELL, or device=cpu or cuda, got '", change, "'"));
  }

  absl::StatusOr<runtime::StateStore> StateFor(const runtime::Program& program) const {
    runtime::StateStore store;
    std::vector<std::string> missing;
    for (const runtime::StateBinding& binding : program.state) {
      const auto entry = std::make_shared<runtime::StateEntry>(binding.name, binding.role, binding.spec);
      if (absl::Status status = store.Add(entry); !status.ok()) return status;
      if (binding.role == Role::kDerived) continue;
      const auto kept = std::find_if(capsule_.state.begin(), capsule_.state.end(),
                                     [&](const auto& each) { return each.first == binding.name; });
      if (kept == capsule_.state.end() || kept->second.shape() != binding.spec.shape) {
        missing.push_back(absl::StrCat("'", binding.name, "'"));
        continue;
      }
      Tensor value = kept->second;
      if (scale_is_changed_ && binding.role == Role::kScaler && IsScale(binding.name)) {
        value = Tensor::Scalar(static_cast<float>(scale_));
      }
      std::vector<std::uint8_t> bytes(binding.spec.bytes());
      internal::ConvertElements(value.dtype(), value.bytes().data(), binding.spec.dtype, bytes.data(),
                                static_cast<std::size_t>(value.size()));
      if (absl::Status status = entry->Write(bytes); !status.ok()) return status;
    }
    if (missing.empty()) return store;
    return absl::FailedPreconditionError(
        absl::StrCat("the changed step reads state that the capsule does not have: ", absl::StrJoin(missing, ", ")));
  }

  StepCapsule capsule_;
  CompileOptions options_;
  compiler::Module module_;
  double scale_ = 1;
  bool has_scale_ = false;
  bool scale_is_changed_ = false;
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
  if (const std::int64_t runs = step->capsule().runs; runs > 1) {
    absl::StrAppend(&text, "in micro-batch ", measured->run + 1, " of ", runs, ":\n");
  }
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
  return text + DescribeChain(measured->step->program(), values, index);
}

}  // namespace mpc::opt
