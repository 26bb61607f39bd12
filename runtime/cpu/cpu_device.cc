#include "runtime/cpu/cpu_device.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/cpu/kernel.h"
#include "kernels/kernel_key.h"
#include "runtime/choose_kernels.h"
#include "runtime/cpu/cpu_executable.h"
#include "runtime/cpu/cpu_features.h"
#include "runtime/cpu/kernel_timing.h"
#include "runtime/flat_updates.h"
#include "runtime/generated_call.h"
#include "runtime/packed_weights.h"
#include "runtime/program_binding.h"
#include "runtime/program_check.h"

namespace mpc::runtime {
namespace {

absl::Status CheckFeatures(const Program& program) {
  std::vector<std::string> missing;
  for (const std::string& feature : program.required_cpu_features) {
    if (!HasCpuFeature(feature)) missing.push_back(feature);
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("program \"", program.name,
                   "\" was compiled for processor features that this one lacks: ", absl::StrJoin(missing, ", ")));
}

/// Moves the state of each flat update into one buffer. It stays apart where a Program is already bound to some of it,
/// or where memory is short.
void PlaceFlatState(const Program& program, const StateEntries& entries) try {
  for (const FlatStateBuffer& buffer : FlatStateBuffers(program)) {
    const bool stays = std::any_of(buffer.state.begin(), buffer.state.end(),
                                   [&](std::int32_t state) { return entries[state]->stays(); });
    if (stays) continue;
    const auto memory = std::make_shared<AlignedBuffer>(buffer.bytes);
    for (std::size_t i = 0; i < buffer.state.size(); ++i) entries[buffer.state[i]]->MoveTo(memory, buffer.offsets[i]);
  }
} catch (const std::bad_alloc&) {
  // State that stays apart is updated tensor by tensor.
}

absl::StatusOr<std::unique_ptr<Executable>> Bind(std::shared_ptr<const Program> program, const StateStore& state,
                                                 const LoadOptions& options) {
  absl::StatusOr<StateEntries> entries = BindState(*program, state);
  if (!entries.ok()) return entries.status();
  PlaceFlatState(*program, *entries);
  for (const std::shared_ptr<StateEntry>& entry : *entries) entry->KeepInPlace();
  return CpuExecutable::Create(std::move(program), *std::move(entries), options.communicator);
}

}  // namespace

absl::StatusOr<InstructionPlan> CpuDevice::Plan(const Program& program, const Instruction& instruction,
                                                const PlanOptions& options) const {
  if (IsGenerated(instruction.kernel)) return InstructionPlan{instruction.workspace_bytes, {}};
  absl::StatusOr<KernelSpec> spec = MakeKernelSpec(program, instruction);
  if (!spec.ok()) return spec.status();
  const std::string key = KernelKey(*spec);
  // A packed weight is packed for one choice.
  const bool is_packed = !spec->weight_layout.empty();
  cpu::KernelOptions making{is_packed ? spec->weight_choice : ChoiceFor(program, key), options.allow_winograd};
  const bool measures = !is_packed && (options.tune || !options.choice_cache.empty());
  const bool keeps = !is_packed && (measures || options.allow_winograd || !making.choice.empty());
  InstructionPlan plan;
  if (measures && making.choice.empty()) {
    const std::string conditions =
        absl::StrCat(key, " on ", MeasuredOn(), options.allow_winograd ? ", Winograd allowed" : "");
    absl::StatusOr<MeasuredChoice> measured =
        tuner_.Choose(conditions, cpu::CandidateChoices(*spec, making), options,
                      [&](const std::string& choice) -> absl::StatusOr<double> {
                        const auto kernel = cpu::CreateKernel(*spec, {.choice = choice});
                        return kernel.ok() ? TimeKernel(*spec, **kernel) : kernel.status();
                      });
    if (!measured.ok()) return measured.status();
    making.choice = std::move(measured->choice);
    plan.times = std::move(measured->times);
  }
  const absl::StatusOr<std::unique_ptr<cpu::Kernel>> kernel = cpu::CreateKernel(*spec, making);
  if (!kernel.ok()) return kernel.status();
  plan.workspace_bytes = (*kernel)->workspace_bytes();
  plan.packing = (*kernel)->packing();
  if (std::string made = (*kernel)->choice(); keeps && !made.empty()) plan.choice = {key, std::move(made)};
  return plan;
}

bool CpuDevice::MayAlias(std::string_view kernel, std::size_t output, std::size_t input) const {
  return cpu::MayAlias(kernel, output, input);
}

absl::StatusOr<std::unique_ptr<Executable>> CpuDevice::Load(std::shared_ptr<const Program> program,
                                                            const StateStore& state, const LoadOptions& options) const {
  if (program == nullptr) return absl::InvalidArgumentError("there is no program to load");
  if (program->device != name()) {
    return absl::InvalidArgumentError(absl::StrCat("program \"", program->name, "\" was compiled for device \"",
                                                   program->device, "\", not for \"cpu\""));
  }
  if (absl::Status status = CheckProgram(*program); !status.ok()) return status;
  if (absl::Status status = CheckFeatures(*program); !status.ok()) return status;
  absl::StatusOr<std::unique_ptr<Executable>> executable = Bind(program, state, options);
  if (executable.status().code() != absl::StatusCode::kFailedPrecondition) return executable;
  // The Program may have been compiled on another processor. Kernels there wanted less workspace or another layout.
  auto fitted = std::make_shared<Program>(*program);
  if (!EnlargeWorkspaces(*this, *fitted).ok() && (!HasPackedWeights(*program) || !RepackWeights(*this, *fitted).ok())) {
    return executable;
  }
  return Bind(std::move(fitted), state, options);
}

}  // namespace mpc::runtime
