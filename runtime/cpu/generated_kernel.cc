#include "runtime/cpu/generated_kernel.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/parallel.h"
#include "runtime/generated_call.h"
#include "runtime/program_binding.h"

namespace mpc::runtime {
namespace {

using StageFunction = void (*)(void* const* operands, void* workspace, std::int64_t block);

struct HostStage {
  StageFunction function;
  std::int64_t blocks;
};

class GeneratedHostKernel : public cpu::Kernel {
 public:
  GeneratedHostKernel(std::vector<HostStage> stages, const Instruction& instruction)
      : stages_(std::move(stages)),
        inputs_(instruction.inputs.size()),
        operands_(inputs_ + instruction.outputs.size()),
        work_(instruction.attributes.GetInt(kWorkAttribute, 0)),
        workspace_bytes_(instruction.workspace_bytes) {}

  std::size_t workspace_bytes() const override { return workspace_bytes_; }

  void Run(const cpu::KernelOperands& operands) override {
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      operands_[i] = i < inputs_ ? const_cast<void*>(operands.inputs[i]) : operands.outputs[i - inputs_];
    }
    for (const HostStage& stage : stages_) {
      cpu::ParallelFor(stage.blocks, work_,
                       [&](std::int64_t block) { stage.function(operands_.data(), operands.workspace, block); });
    }
  }

 private:
  std::vector<HostStage> stages_;
  std::size_t inputs_;
  std::vector<void*> operands_;
  std::int64_t work_;
  std::size_t workspace_bytes_;
};

}  // namespace

absl::StatusOr<HostCode> HostCode::Load(const Program& program) {
  HostCode code;
  for (const CodeBlob& blob : program.code) {
    const std::string where = absl::StrCat("program \"", program.name, "\"");
    absl::StatusOr<std::unique_ptr<LoadedCode>> loaded = LoadCode(blob);
    if (!loaded.ok()) return WithPlace(where, loaded.status());
    for (const std::string& name : blob.kernels) {
      const absl::StatusOr<void*> function = (*loaded)->Find(name);
      if (!function.ok()) return WithPlace(absl::StrCat(where, ", code \"", blob.name, "\""), function.status());
      code.functions_[name] = *function;
    }
    code.blobs_.push_back(*std::move(loaded));
  }
  return code;
}

absl::StatusOr<std::unique_ptr<cpu::Kernel>> HostCode::CreateKernel(const Instruction& instruction) const {
  const absl::StatusOr<std::vector<GeneratedStage>> stages = StagesOf(instruction);
  if (!stages.ok()) return stages.status();
  std::vector<HostStage> functions;
  for (const GeneratedStage& stage : *stages) {
    const auto found = functions_.find(stage.function);
    if (found == functions_.end()) {
      return absl::InvalidArgumentError(absl::StrCat("no code of the program has a function \"", stage.function, "\""));
    }
    functions.push_back({reinterpret_cast<StageFunction>(found->second), stage.blocks});
  }
  return std::make_unique<GeneratedHostKernel>(std::move(functions), instruction);
}

}  // namespace mpc::runtime
