#include "runtime/cpu/cpu_device.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/cpu/kernel.h"
#include "runtime/cpu/cpu_executable.h"
#include "runtime/cpu/cpu_features.h"
#include "runtime/generated_call.h"
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

}  // namespace

absl::StatusOr<InstructionPlan> CpuDevice::Plan(const Program& program, const Instruction& instruction,
                                                const PlanOptions&) const {
  if (IsGenerated(instruction.kernel)) return InstructionPlan{instruction.workspace_bytes, {}};
  absl::StatusOr<KernelSpec> spec = MakeKernelSpec(program, instruction);
  if (!spec.ok()) return spec.status();
  absl::StatusOr<std::unique_ptr<cpu::Kernel>> kernel = cpu::CreateKernel(*spec);
  if (!kernel.ok()) return kernel.status();
  return InstructionPlan{(*kernel)->workspace_bytes(), {}};
}

bool CpuDevice::MayAlias(std::string_view kernel, std::size_t output, std::size_t input) const {
  return cpu::MayAlias(kernel, output, input);
}

absl::StatusOr<std::unique_ptr<Executable>> CpuDevice::Load(std::shared_ptr<const Program> program,
                                                            const StateStore& state, const LoadOptions&) const {
  if (program == nullptr) return absl::InvalidArgumentError("there is no program to load");
  if (program->device != name()) {
    return absl::InvalidArgumentError(absl::StrCat("program \"", program->name, "\" was compiled for device \"",
                                                   program->device, "\", not for \"cpu\""));
  }
  if (absl::Status status = CheckProgram(*program); !status.ok()) return status;
  if (absl::Status status = CheckFeatures(*program); !status.ok()) return status;
  absl::StatusOr<StateEntries> entries = BindState(*program, state);
  if (!entries.ok()) return entries.status();
  return CpuExecutable::Create(std::move(program), *std::move(entries));
}

}  // namespace mpc::runtime
