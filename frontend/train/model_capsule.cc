// The capsule of a Model's step: what may be asked for, and what it is compiled from.
#include "absl/strings/str_cat.h"
#include "compiler/options/option_texts.h"
#include "frontend/distributed/distributed.h"
#include "frontend/state/checkpoint_environment.h"
#include "frontend/train/model_impl.h"
#include "runtime/atomic_file.h"

namespace mpc {

using internal::StepOptions;
using internal::StepResults;

absl::Status Model::Impl::CheckCapsule() const {
  if (options.capsule_at < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("Model: capsule_at = ", options.capsule_at, "; steps are counted from 1, 0 is the first bad one"));
  }
  if (options.capsule_path.empty()) {
    if (options.capsule_at == 0) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("Model: capsule_at = ", options.capsule_at, " needs capsule_path, the file to write"));
  }
  if (processes.size() > 1 || distributed::internal::GetCommunicator() != nullptr) {
    return absl::UnimplementedError(
        "Model: a capsule is of a step of one process; this one is in a group of processes that may exchange tensors");
  }
  return runtime::CheckWritable(options.capsule_path);
}

absl::StatusOr<internal::CapsuleSource> Model::Impl::SourceOf(const StepResults& results,
                                                              const std::vector<Tensor>& columns) const {
  std::vector<std::string> names;
  for (const runtime::NamedValue& input : results.step().program().inputs) names.push_back(input.name);
  absl::StatusOr<StepOptions> precise = WithPrecision(TrainOptions(names));
  if (!precise.ok()) return precise.status();
  const absl::StatusOr<compiler::Module> module = internal::TraceStep(
      step.cell(), [this](const std::vector<Tensor>& inputs) { return step.Flat(inputs); }, internal::SpecsOf(columns),
      *precise, nullptr);
  if (!module.ok()) return module.status();
  compiler::CompileOptions compile = precise->compile;
  compile.function = precise->name;
  if (!results.step().facts().scalers.empty()) compile.loss_scale = "none";
  // A file of this machine; the choices themselves are in the Program.
  compile.plan.choice_cache.clear();
  internal::CapsuleSource source{.traced = module->Print(), .options = compiler::optionTexts(compile)};
  source.origin = internal::DescribeEnvironment(device());
  source.origin["model"] = root()->TypeName();
  return source;
}

void Model::Impl::WriteCapsule(const StepResults& results, const std::vector<Tensor>& columns, bool completes,
                               const RunContext& context) {
  if (!completes) return capsule_writer.Between(results, context.global_step + 1, columns);
  if (!capsule_writer.Wants(results, context.global_step, context.overflow)) return;
  capsule_writer.Write(
      results, context.global_step, columns, [&] { return SourceOf(results, columns); },
      [this](const std::string& line) { Say(line); });
}

}  // namespace mpc
