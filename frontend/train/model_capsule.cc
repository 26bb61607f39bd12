// The capsule of a Model's step: what may be asked for, and what it is compiled from.
#include "absl/strings/str_cat.h"
#include "compiler/options/option_texts.h"
#include "frontend/distributed/distributed.h"
#include "frontend/state/checkpoint_environment.h"
#include "frontend/train/model_impl.h"
#include "runtime/atomic_file.h"
#include "runtime/executable.h"

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
  if (processes.size() > 1) {
    if (absl::Status status = CheckSharedCapsule(); !status.ok()) return status;
  } else if (distributed::internal::GetCommunicator() != nullptr) {
    return absl::UnimplementedError(
        "Model: a capsule is of a step of one process, or of data-parallel training; this Model trains for itself in a "
        "group of processes that may exchange tensors");
  }
  return processes.is_first() ? runtime::CheckWritable(options.capsule_path) : absl::OkStatus();
}

absl::Status Model::Impl::CheckSharedCapsule() const {
  const absl::StatusOr<const runtime::Device*> target = runtime::GetDevice(device());
  if (!target.ok()) return target.status();
  if ((*target)->backend() != "cpu") {
    return absl::UnimplementedError(absl::StrCat("Model: the capsule of a step that ", processes.size(),
                                                 " processes share is of device \"cpu\"; ", "this Model's is \"",
                                                 device(), "\", of which one process cannot repeat several"));
  }
  // Memory that processes share has the order of the tree.
  const Communicator& group = *processes.communicator();
  if (!group.adds_in_any_order() || group.transport() == "shared") return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      "Model: a capsule needs reduction = kOrdered where processes exchange by \"", std::string(group.transport()),
      "\": with kFast its sums have an order of their own, which no other process repeats"));
}

absl::StatusOr<internal::CapsuleSource> Model::Impl::SourceOf(const StepResults& results,
                                                              const std::vector<Tensor>& columns) const {
  std::vector<std::string> names;
  for (const runtime::NamedValue& input : results.step().program().inputs) names.push_back(input.name);
  absl::StatusOr<StepOptions> precise = WithPrecision(TrainOptions(names));
  if (!precise.ok()) return precise.status();
  const absl::StatusOr<compiler::Module> module =
      internal::TraceStep(cells.step(), cells.StepFunction(), internal::SpecsOf(columns), *precise, nullptr);
  if (!module.ok()) return module.status();
  compiler::CompileOptions compile = precise->compile;
  compile.function = precise->name;
  if (!results.step().facts().scalers.empty()) compile.loss_scale = "none";
  // A file of this machine; the choices themselves are in the Program.
  compile.plan.choice_cache.clear();
  internal::CapsuleSource source{.traced = module->Print(), .options = compiler::optionTexts(compile)};
  source.origin = internal::DescribeEnvironment(device());
  source.origin["model"] = cells.given().TypeName();
  return source;
}

void Model::Impl::NameStateOfCapsule() const {
  if (options.capsule_path.empty()) return;
  cells.root()->ParametersAndNames();
  for (nn::Optimizer* optimizer : cells.optimizers()) optimizer->State();
}

absl::Status Model::Impl::WriteCapsule(const StepResults& results, const std::vector<Tensor>& columns, bool completes,
                                       const RunContext& context) {
  NameStateOfCapsule();
  if (!completes) {
    capsule_writer.Between(results, context.global_step + 1, columns);
    return absl::OkStatus();
  }
  const absl::StatusOr<bool> wants = capsule_writer.Wants(results, context.global_step, context.overflow);
  if (!wants.ok() || !*wants) return wants.status();
  return capsule_writer.Write(
      results, context.global_step, columns, [&] { return SourceOf(results, columns); },
      [this](const std::string& line) { remarks.Say(line); });
}

}  // namespace mpc
