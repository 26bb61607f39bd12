#include "tools/mpc-bench/step_reductions.h"

#include <chrono>
#include <utility>

#include "kernels/collective.h"
#include "runtime/program_binding.h"
#include "runtime/step_groups.h"
#include "runtime/touched_memory.h"

namespace mpc::tools {
namespace {

absl::StatusOr<std::unique_ptr<cpu::Kernel>> KernelOf(const std::vector<KernelSpec>& specs) {
  return specs.size() == 1 ? cpu::CreateKernel(specs.front()) : cpu::CreateGroupKernel(specs);
}

}  // namespace

absl::StatusOr<StepReductions> StepReductions::Create(const runtime::Program& program) {
  StepReductions reductions;
  const std::vector<runtime::Instruction>& instructions = program.sequences.front().instructions;
  for (const runtime::InstructionRange& range : runtime::GroupInstructions(program, cpu::MayGroup)) {
    if (!IsCollective(instructions[range.first].kernel)) continue;
    Call call;
    std::vector<void*> inputs;
    std::vector<KernelSpec> specs;
    for (std::size_t i = range.first; i < range.first + range.count; ++i) {
      absl::StatusOr<KernelSpec> spec = runtime::MakeKernelSpec(program, instructions[i]);
      if (!spec.ok()) return spec.status();
      for (const TensorSpec& input : spec->inputs) {
        inputs.push_back(runtime::AddTouched(reductions.memory_, input.bytes()));
        reductions.bytes_ += input.bytes();
      }
      for (std::size_t output = 0; output < spec->outputs.size(); ++output) {
        call.outputs.push_back(reductions.PlaceOf(program, instructions[i], output, inputs));
      }
      specs.push_back(*std::move(spec));
    }
    call.inputs.assign(inputs.begin(), inputs.end());
    absl::StatusOr<std::unique_ptr<cpu::Kernel>> kernel = KernelOf(specs);
    if (!kernel.ok()) return kernel.status();
    call.kernel = *std::move(kernel);
    call.workspace = runtime::AlignedBuffer(call.kernel->workspace_bytes());
    reductions.calls_.push_back(std::move(call));
  }
  return reductions;
}

void* StepReductions::PlaceOf(const runtime::Program& program, const runtime::Instruction& instruction,
                              std::size_t output, const std::vector<void*>& inputs) {
  const runtime::ValueId id = instruction.outputs[output];
  if (id == runtime::kNoValue) return nullptr;
  const runtime::Value& value = program.values[static_cast<std::size_t>(id)];
  const std::size_t first = inputs.size() - instruction.inputs.size();
  for (std::size_t i = 0; i < instruction.inputs.size(); ++i) {
    const runtime::Value& input = program.values[static_cast<std::size_t>(instruction.inputs[i])];
    if (runtime::SamePlace(value, input)) return inputs[first + i];
  }
  return runtime::AddTouched(memory_, value.spec.bytes());
}

absl::Status StepReductions::Run(Communicator& communicator) {
  for (Call& call : calls_) {
    call.kernel->Run({call.inputs.data(), call.outputs.data(), call.workspace.data(), &communicator});
    if (!communicator.status().ok()) return communicator.status();
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<double>> TimeReductions(StepReductions& reductions, Communicator& communicator,
                                                   int repetitions) {
  using Clock = std::chrono::steady_clock;
  if (absl::Status status = reductions.Run(communicator); !status.ok()) return status;  // pages come in
  std::vector<double> seconds;
  for (int i = 0; i < repetitions; ++i) {
    if (absl::Status status = communicator.Barrier(); !status.ok()) return status;
    const Clock::time_point begin = Clock::now();
    if (absl::Status status = reductions.Run(communicator); !status.ok()) return status;
    seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return seconds;
}

}  // namespace mpc::tools
