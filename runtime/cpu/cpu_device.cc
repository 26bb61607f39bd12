#include "runtime/cpu/cpu_device.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/cpu/kernel.h"
#include "runtime/cpu/cpu_executable.h"
#include "runtime/cpu/cpu_features.h"
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

/// The entries of Program::state, in order. Errors list every entry that does not fit.
absl::StatusOr<std::vector<std::shared_ptr<StateEntry>>> BindState(const Program& program, const StateStore& store) {
  const std::vector<StateUse> uses = FindStateUses(program);
  std::vector<std::shared_ptr<StateEntry>> entries;
  std::vector<std::string> problems;
  bool missing = false;
  for (std::size_t i = 0; i < program.state.size(); ++i) {
    const StateBinding& binding = program.state[i];
    std::shared_ptr<StateEntry> entry = store.Find(binding.name);
    if (entry == nullptr) {
      missing = true;
      problems.push_back(
          absl::StrCat("\"", binding.name, "\" (", binding.role, ", ", binding.spec.ToString(), ") is missing"));
    } else if (entry->spec() != binding.spec) {
      problems.push_back(
          absl::StrCat("\"", binding.name, "\" is ", entry->spec().ToString(), ", expected ", binding.spec.ToString()));
    } else if (uses[i].read_before_written && !entry->initialised()) {
      problems.push_back(absl::StrCat("\"", binding.name, "\" is read but was never initialised"));
    }
    entries.push_back(std::move(entry));
  }
  if (problems.empty()) return entries;
  const std::string message = absl::StrCat("program \"", program.name, "\" cannot be bound to this state:\n  ",
                                           absl::StrJoin(problems, "\n  "));
  return missing ? absl::NotFoundError(message) : absl::InvalidArgumentError(message);
}

}  // namespace

absl::StatusOr<std::size_t> CpuDevice::WorkspaceBytes(const Program& program, const Instruction& instruction) const {
  absl::StatusOr<cpu::KernelSpec> spec = MakeKernelSpec(program, instruction);
  if (!spec.ok()) return spec.status();
  absl::StatusOr<std::unique_ptr<cpu::Kernel>> kernel = cpu::CreateKernel(*spec);
  if (!kernel.ok()) return kernel.status();
  return (*kernel)->workspace_bytes();
}

bool CpuDevice::MayAlias(std::string_view kernel, std::size_t output, std::size_t input) const {
  return cpu::MayAlias(kernel, output, input);
}

absl::StatusOr<std::unique_ptr<Executable>> CpuDevice::Load(std::shared_ptr<const Program> program,
                                                            const StateStore& state) const {
  if (program == nullptr) return absl::InvalidArgumentError("there is no program to load");
  if (program->device != name()) {
    return absl::InvalidArgumentError(absl::StrCat("program \"", program->name, "\" was compiled for device \"",
                                                   program->device, "\", not for \"cpu\""));
  }
  if (absl::Status status = CheckProgram(*program); !status.ok()) return status;
  if (absl::Status status = CheckFeatures(*program); !status.ok()) return status;
  absl::StatusOr<std::vector<std::shared_ptr<StateEntry>>> entries = BindState(*program, state);
  if (!entries.ok()) return entries.status();
  return CpuExecutable::Create(std::move(program), *std::move(entries));
}

}  // namespace mpc::runtime
