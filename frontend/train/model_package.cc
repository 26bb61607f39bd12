// A Model's Programs for a run without it.
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "compiler/driver/compiler.h"
#include "frontend/graph/element_conversion.h"
#include "frontend/state/checkpoint_environment.h"
#include "frontend/state/checkpoint_metadata.h"
#include "frontend/train/model_impl.h"

namespace mpc {
namespace {

using internal::StepOptions;
using internal::UnboundStep;

/// State that was made from data is small: counters, learning rates, scaler fields. More than that would be weights.
constexpr std::size_t kMostInitialBytes = std::size_t{64} << 10;

/// Where each state entry of the Programs begins.
class Beginnings {
 public:
  explicit Beginnings(runtime::Package& package) : package_(package) {}

  absl::Status Add(const std::vector<runtime::StateBinding>& bindings, const std::vector<Parameter>& known) {
    for (const runtime::StateBinding& binding : bindings) {
      if (binding.role == Role::kDerived) continue;
      const auto parameter =
          std::find_if(known.begin(), known.end(), [&](const Parameter& each) { return each.name() == binding.name; });
      if (parameter == known.end()) {
        // Passes add accumulators, which gather from zero.
        package_.initial_values.push_back(
            {binding.name, binding.role, binding.spec, std::vector<std::uint8_t>(ElementSize(binding.spec.dtype), 0)});
        continue;
      }
      if (absl::Status status = Add(binding, *parameter); !status.ok()) return status;
    }
    return AddDraws();
  }

 private:
  absl::Status Add(const runtime::StateBinding& binding, const Parameter& parameter) {
    std::vector<std::uint8_t> bytes;
    if (!parameter.is_drawn()) {
      bytes.resize(binding.spec.bytes());
      if (bytes.size() > kMostInitialBytes) {
        return absl::InvalidArgumentError(absl::StrCat(
            "state \"", binding.name, "\", ", binding.spec.ToString(),
            ", begins with data: a package holds no weights. Give it an initializer, or load it in the run"));
      }
      if (absl::Status status = parameter.entry()->Read(absl::MakeSpan(bytes)); !status.ok()) return status;
    } else {
      const Initializer::Draw draw = parameter.initializer().For(parameter.shape());
      if (!draw.constant) {
        drawn_[parameter.seed()].push_back(parameter);
        return absl::OkStatus();
      }
      const auto value = static_cast<float>(draw.value);
      bytes.resize(ElementSize(binding.spec.dtype));
      internal::ConvertElements(DType::kF32, &value, binding.spec.dtype, bytes.data(), 1);
    }
    package_.initial_values.push_back({binding.name, binding.role, binding.spec, std::move(bytes)});
    return absl::OkStatus();
  }

  absl::Status AddDraws() {
    for (const auto& [seed, parameters] : drawn_) {
      absl::StatusOr<runtime::Program> program = internal::CompileInitState(parameters);
      if (!program.ok()) return program.status();
      if (absl::Status status = compiler::LinkGeneratedCode(*program); !status.ok()) return status;
      package_.draws.push_back({*std::move(program), seed});
    }
    return absl::OkStatus();
  }

  runtime::Package& package_;
  std::map<std::uint64_t, std::vector<Parameter>> drawn_;
};

void Merge(const std::vector<Parameter>& more, std::vector<Parameter>& all) {
  for (const Parameter& parameter : more) {
    if (std::find(all.begin(), all.end(), parameter) == all.end()) all.push_back(parameter);
  }
}

}  // namespace

absl::StatusOr<runtime::Package> Model::MakePackage(const std::vector<std::pair<std::string, TensorSpec>>& columns) {
  Impl& self = *impl_;
  const std::scoped_lock lock(self.mutex);
  if (!self.status.ok()) return self.status;
  if (self.cells.step() == nullptr) return absl::FailedPreconditionError("a package needs a Model that trains");
  if (self.processes.size() > 1) {
    return absl::UnimplementedError(
        absl::StrCat("MakePackage: a package runs in one process, and this Model trains in ", self.processes.size(),
                     "; make it of a Model without SetAutoParallelContext"));
  }
  return self.MakePackage(columns);
}

absl::StatusOr<runtime::Package> Model::Impl::MakePackage(
    const std::vector<std::pair<std::string, TensorSpec>>& columns) {
  std::vector<std::string> names;
  std::vector<TensorSpec> specs;
  for (const auto& [name, spec] : columns) {
    if (name.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("MakePackage: the name of column ", names.size(), " is empty"));
    }
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      return absl::InvalidArgumentError(absl::StrCat("MakePackage: two columns are called '", name, "'"));
    }
    names.push_back(name);
    specs.push_back(spec);
  }
  runtime::Package package;
  std::vector<Parameter> state;
  const auto add = [&](nn::Cell* root, const internal::TensorFunction& function, const std::vector<TensorSpec>& inputs,
                       const StepOptions& options) {
    absl::StatusOr<StepOptions> precise = WithPrecision(options);
    if (!precise.ok()) return precise.status();
    absl::StatusOr<UnboundStep> compiled = internal::CompileUnbound(root, function, inputs, *precise);
    if (!compiled.ok()) return compiled.status();
    if (cells.user_step() != nullptr && options.training) {
      absl::Status status = CheckOwnStep(compiled->facts, compiled->compiled.program);
      if (!status.ok()) return status;
    }
    decision.Keep(compiled->compiled.assignment, options.training);
    if (absl::Status status = internal::StoreLowParameters(compiled->compiled.program, compiled->state); !status.ok()) {
      return status;
    }
    if (absl::Status status = compiler::LinkGeneratedCode(compiled->compiled.program); !status.ok()) return status;
    Merge(compiled->state, state);
    package.programs.push_back(std::move(compiled->compiled.program));
    return absl::OkStatus();
  };

  cells.step()->SetTrain(true);
  absl::Status status = add(cells.step(), cells.StepFunction(), specs, TrainOptions(names));
  // It is not known which inputs of a step of the user's own the network would take.
  if (status.ok() && cells.own_step() != nullptr) {
    const internal::InferenceMode inference(*cells.evaluated());
    StepOptions eval = CommonOptions("eval_step");
    eval.input_names = names;
    eval.output_names = {"loss", "predictions"};
    status = add(cells.evaluated(), cells.EvalFunction(), specs, eval);
    StepOptions predict = CommonOptions("predict");
    predict.input_names.assign(names.begin(), names.end() - 1);
    predict.output_names = {"predictions"};
    if (status.ok()) {
      status = add(cells.network(), cells.NetworkFunction(), {specs.begin(), specs.end() - 1}, predict);
    }
  }
  if (!status.ok()) return status;
  status = Beginnings(package).Add(package.State(), state);
  if (!status.ok()) return status;

  package.metadata.emplace_back("model", cells.network()->TypeName());
  package.metadata.emplace_back("optimizer", cells.NamesOfOptimizers());
  package.metadata.emplace_back("amp_level", precision.level);
  package.metadata.emplace_back("amp_dtype", precision.level == "O0" ? "f32" : std::string(DTypeName(precision.dtype)));
  package.metadata.emplace_back("loss_scale", std::string(scalers.config().mode_name()));
  package.metadata.emplace_back("arch", package.programs.front().arch);
  if (!position.class_names().empty())
    package.metadata.emplace_back("class_names", internal::FormatNames(position.class_names()));
  for (auto& entry : internal::DescribeEnvironment(device())) package.metadata.push_back(entry);
  status = runtime::CheckPackage(package);
  if (!status.ok()) return status;
  return package;
}

}  // namespace mpc
