#include "runtime/cpu/cpu_executable.h"

#include <unistd.h>

#include <chrono>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/kernel_key.h"
#include "runtime/constants.h"
#include "runtime/generated_call.h"
#include "runtime/program_binding.h"
#include "runtime/program_check.h"

namespace mpc::runtime {
namespace {

std::size_t PhysicalMemory() {
  return static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

CpuExecutable::CpuExecutable(std::shared_ptr<const Program> program, std::vector<std::shared_ptr<StateEntry>> entries)
    : program_(std::move(program)),
      entries_(std::move(entries)),
      arena_(program_->arena_bytes),
      constants_(program_->constant_bytes()) {
  WriteConstants(*program_, constants_.data());
}

absl::StatusOr<std::unique_ptr<Executable>> CpuExecutable::Create(std::shared_ptr<const Program> program,
                                                                  std::vector<std::shared_ptr<StateEntry>> entries) {
  const Program& plan = *program;
  const auto exhausted = [&plan] {
    return absl::ResourceExhaustedError(absl::StrCat(
        "program \"", plan.name, "\" needs ", plan.arena_bytes, " bytes for temporaries and ", plan.constant_bytes(),
        " bytes for constants beside ", plan.state_bytes(), " bytes of state; the system does not have them"));
  };
  // The system would promise more than it has and end the process when the memory is cleared.
  if (plan.arena_bytes + plan.constant_bytes() > PhysicalMemory()) return exhausted();
  std::unique_ptr<CpuExecutable> executable;
  try {
    executable.reset(new CpuExecutable(program, std::move(entries)));
  } catch (const std::bad_alloc&) {
    return exhausted();
  }
  absl::StatusOr<HostCode> code = HostCode::Load(plan);
  if (!code.ok()) return code.status();
  executable->code_ = *std::move(code);
  if (absl::Status status = executable->AddCalls(); !status.ok()) return status;
  if (absl::Status status = executable->AddRefreshes(); !status.ok()) return status;
  for (const StateCopy& copy : plan.state_copies) {
    if (executable->Address(copy.from) == executable->Address(copy.to)) continue;
    executable->copies_.push_back(
        {executable->Address(copy.from), executable->Address(copy.to), plan.values[copy.to].spec.bytes()});
  }
  for (const NamedValue& input : plan.inputs) {
    executable->inputs_.push_back({executable->Address(input.value), plan.values[input.value].spec.bytes()});
  }
  for (const NamedValue& output : plan.outputs) {
    executable->outputs_.emplace_back(reinterpret_cast<const std::uint8_t*>(executable->Address(output.value)),
                                      plan.values[output.value].spec.bytes());
  }
  const std::vector<StateUse> uses = FindStateUses(plan);
  for (std::size_t i = 0; i < uses.size(); ++i) {
    if (uses[i].written) executable->written_.push_back(executable->entries_[i].get());
  }
  return executable;
}

std::byte* CpuExecutable::Address(const Value& value) {
  switch (value.storage) {
    case Storage::kState:
      return static_cast<std::byte*>(entries_[value.index]->data());
    case Storage::kInput:
    case Storage::kTemporary:
      return arena_.data() + value.offset;
    case Storage::kConstant:
      return constants_.data() + value.offset;
  }
  return nullptr;
}

absl::StatusOr<CpuExecutable::Call> CpuExecutable::MakeCall(const Instruction& instruction) {
  absl::StatusOr<KernelSpec> spec = MakeKernelSpec(*program_, instruction);
  if (!spec.ok()) return spec.status();
  absl::StatusOr<std::unique_ptr<cpu::Kernel>> kernel;
  if (IsGenerated(instruction.kernel)) {
    kernel = code_.CreateKernel(instruction);
  } else {
    kernel = cpu::CreateKernel(*spec, {.choice = ChoiceFor(*program_, KernelKey(*spec))});
  }
  if (!kernel.ok()) return kernel.status();
  if ((*kernel)->workspace_bytes() > instruction.workspace_bytes) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the kernel needs ", (*kernel)->workspace_bytes(), " bytes of workspace, the program plans ",
        instruction.workspace_bytes, "; was it compiled for another number of threads or another processor?"));
  }
  Call call;
  call.kernel = *std::move(kernel);
  AddOperands(instruction, call);
  call.workspace = arena_.data() + instruction.workspace_offset;
  return call;
}

void CpuExecutable::AddOperands(const Instruction& instruction, Call& call) {
  for (ValueId id : instruction.inputs) call.inputs.push_back(Address(id));
  for (ValueId id : instruction.outputs) call.outputs.push_back(id == kNoValue ? nullptr : Address(id));
}

absl::StatusOr<CpuExecutable::Call> CpuExecutable::MakeGroup(const InstructionRange& range) {
  const absl::StatusOr<GroupParts> parts =
      PartsOf(*program_, range, [this](const Value& value) { return Address(value); });
  if (!parts.ok()) return parts.status();
  Call call;
  for (const Instruction* instruction : parts->instructions) AddOperands(*instruction, call);
  absl::StatusOr<std::unique_ptr<cpu::Kernel>> kernel = cpu::CreateGroupKernel(parts->specs);
  if (!kernel.ok()) return kernel.status();
  call.kernel = *std::move(kernel);
  call.instruction = range.first;
  return call;
}

absl::Status CpuExecutable::AddCalls() {
  for (const InstructionRange& range : GroupInstructions(*program_, cpu::MayGroup)) {
    const std::size_t end = range.first + range.count;
    for (std::size_t i = range.first; i < end; ++i) {
      const absl::Status status = CheckOverlaps(*program_, i, cpu::MayAlias);
      if (!status.ok()) return At(DescribeInstruction(*program_, i), status);
    }
    if (range.count > 1) {
      absl::StatusOr<Call> group = MakeGroup(range);
      if (!group.ok()) return At(DescribeInstruction(*program_, range.first), group.status());
      calls_.push_back(*std::move(group));
      continue;
    }
    absl::StatusOr<Call> call = MakeCall(program_->instructions[range.first]);
    if (!call.ok()) return At(DescribeInstruction(*program_, range.first), call.status());
    call->instruction = range.first;
    calls_.push_back(*std::move(call));
  }
  return absl::OkStatus();
}

absl::Status CpuExecutable::AddRefreshes() {
  for (const StateRefresh& refresh : program_->refreshes) {
    absl::StatusOr<Call> call = MakeCall(refresh.instruction);
    if (!call.ok()) {
      return At(absl::StrCat(program_->name, ", refresh of ", program_->state[refresh.derived].name), call.status());
    }
    refreshes_.push_back({*std::move(call), entries_[refresh.derived].get(), entries_[refresh.source].get(),
                          program_->state[refresh.derived].written});
  }
  return absl::OkStatus();
}

void CpuExecutable::RefreshStaleState() {
  for (const Refresh& refresh : refreshes_) {
    if (refresh.derived->Follows(*refresh.source)) continue;
    refresh.call.kernel->Run({refresh.call.inputs.data(), refresh.call.outputs.data(), refresh.call.workspace});
    refresh.derived->MarkWritten();
    refresh.derived->MarkFollowing(*refresh.source);
  }
}

absl::Status CpuExecutable::Begin(StepInputs inputs) {
  if (absl::Status status = CheckInputs(*program_, inputs); !status.ok()) return status;
  for (const std::shared_ptr<StateEntry>& entry : entries_) {
    if (absl::Status status = entry->FetchToHost(); !status.ok()) return status;
  }
  RefreshStaleState();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].empty()) std::memcpy(inputs_[i].data, inputs[i].data(), inputs[i].size());
  }
  return absl::OkStatus();
}

void CpuExecutable::Finish() {
  // Sources may be state that another copy writes only if the compiler ordered them so: they run in order.
  for (const Copy& copy : copies_) std::memcpy(copy.to, copy.from, copy.bytes);
  for (StateEntry* entry : written_) entry->MarkWritten();
  for (const Refresh& refresh : refreshes_) {
    if (refresh.written) refresh.derived->MarkFollowing(*refresh.source);
  }
  ++steps_;
}

absl::Status CpuExecutable::Run(StepInputs inputs) {
  if (absl::Status status = Begin(inputs); !status.ok()) return status;
  for (const Call& call : calls_) {
    call.kernel->Run({call.inputs.data(), call.outputs.data(), call.workspace});
  }
  Finish();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<InstructionTime>> CpuExecutable::RunTimed(StepInputs inputs) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const auto since_start = [start] { return std::chrono::duration<double, std::micro>(Clock::now() - start).count(); };
  if (absl::Status status = Begin(inputs); !status.ok()) return status;
  std::vector<InstructionTime> times;
  for (const Call& call : calls_) {
    const double begin = since_start();
    call.kernel->Run({call.inputs.data(), call.outputs.data(), call.workspace});
    times.push_back({call.instruction, begin, since_start() - begin});
  }
  Finish();
  return times;
}

absl::StatusOr<absl::Span<const std::uint8_t>> CpuExecutable::OutputOfStep(std::uint64_t step,
                                                                           std::size_t index) const {
  if (step + 1 == steps_ && index < outputs_.size()) return outputs_[index];
  return absl::InvalidArgumentError(absl::StrCat("program \"", program_->name, "\" keeps the ", outputs_.size(),
                                                 " outputs of its last step alone; asked for output ", index,
                                                 " of step ", step, " of ", steps_));
}

MemoryUse CpuExecutable::memory() const {
  return {program_->arena_bytes, program_->state_bytes(), program_->constant_bytes()};
}

absl::Span<const std::uint8_t> CpuExecutable::output(std::size_t index) const {
  return index < outputs_.size() ? outputs_[index] : absl::Span<const std::uint8_t>();
}

}  // namespace mpc::runtime
