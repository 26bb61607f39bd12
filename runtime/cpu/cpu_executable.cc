#include "runtime/cpu/cpu_executable.h"

#include <cassert>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/kernel_key.h"
#include "runtime/constants.h"
#include "runtime/generated_call.h"
#include "runtime/physical_memory.h"
#include "runtime/predicated_updates.h"
#include "runtime/program_binding.h"
#include "runtime/program_check.h"

namespace mpc::runtime {
namespace {

void Copy(const std::vector<CopyRange>& copies) {
  for (const CopyRange& copy : copies) std::memcpy(copy.to, copy.from, copy.bytes);
}

}  // namespace

CpuExecutable::CpuExecutable(std::shared_ptr<const Program> program, std::vector<std::shared_ptr<StateEntry>> entries,
                             std::shared_ptr<Communicator> communicator)
    : program_(std::move(program)),
      entries_(std::move(entries)),
      communicator_(std::move(communicator)),
      arena_(program_->arena_bytes),
      constants_(program_->constant_bytes()) {
  WriteConstants(*program_, constants_.data());
}

absl::StatusOr<std::unique_ptr<Executable>> CpuExecutable::Create(std::shared_ptr<const Program> program,
                                                                  std::vector<std::shared_ptr<StateEntry>> entries,
                                                                  std::shared_ptr<Communicator> communicator) {
  const Program& plan = *program;
  if (absl::Status status = CheckProcesses(plan, communicator.get()); !status.ok()) return status;
  const auto make = [&]() -> absl::StatusOr<std::unique_ptr<CpuExecutable>> {
    return std::unique_ptr<CpuExecutable>(new CpuExecutable(program, std::move(entries), std::move(communicator)));
  };
  absl::StatusOr<std::unique_ptr<CpuExecutable>> made =
      MakeWithinMemory(plan.arena_bytes + plan.constant_bytes(), make, [&plan] {
        return absl::StrCat("program \"", plan.name, "\" needs ", plan.arena_bytes, " bytes for temporaries and ",
                            plan.constant_bytes(), " bytes for constants beside ", plan.state_bytes(),
                            " bytes of state; the system does not have them");
      });
  if (!made.ok()) return made.status();
  std::unique_ptr<CpuExecutable> executable = *std::move(made);
  absl::StatusOr<HostCode> code = HostCode::Load(plan);
  if (!code.ok()) return code.status();
  executable->code_ = *std::move(code);
  if (absl::Status status = executable->AddCalls(); !status.ok()) return status;
  for (const NamedValue& input : plan.inputs) {
    executable->inputs_.push_back({executable->Address(input.value), plan.values[input.value].spec.bytes()});
  }
  for (const NamedValue& output : plan.outputs) {
    executable->outputs_.emplace_back(reinterpret_cast<const std::uint8_t*>(executable->Address(output.value)),
                                      plan.values[output.value].spec.bytes());
  }
  executable->AddWrittenState();
  return executable;
}

void CpuExecutable::AddWrittenState() {
  std::vector<bool> has_update(entries_.size(), false);
  for (const PredicatedUpdate& update : FindPredicatedUpdates(*program_)) {
    const auto state = static_cast<std::size_t>(update.state);
    has_update[state] = true;
    const auto* predicate = reinterpret_cast<const std::uint8_t*>(Address(update.predicate));
    updates_.push_back({update.instruction, predicate, entries_[state].get(), false});
  }
  const std::vector<StateUse> uses = FindStateUses(*program_);
  for (std::size_t i = 0; i < uses.size(); ++i) {
    if (uses[i].written && !has_update[i]) written_.push_back(entries_[i].get());
  }
}

std::byte* CpuExecutable::Address(const Value& value) {
  switch (value.storage) {
    case Storage::kState:
      assert(static_cast<std::size_t>(value.index) < entries_.size() && "the program check has bounded the index");
      return static_cast<std::byte*>(entries_[value.index]->data());
    case Storage::kInput:
    case Storage::kTemporary:
      assert(value.offset + value.spec.bytes() <= program_->arena_bytes && "the arena holds the value");
      return arena_.data() + value.offset;
    case Storage::kConstant:
      assert(value.offset + value.spec.bytes() <= program_->constant_bytes() && "the constants hold the value");
      return constants_.data() + value.offset;
  }
  return nullptr;
}

absl::StatusOr<std::unique_ptr<cpu::Kernel>> CpuExecutable::MakeKernel(const Instruction& instruction,
                                                                       const KernelSpec& spec) const {
  absl::StatusOr<std::unique_ptr<cpu::Kernel>> kernel =
      IsGenerated(instruction.kernel) ? code_.CreateKernel(instruction)
                                      : cpu::CreateKernel(spec, {.choice = ChoiceFor(*program_, KernelKey(spec))});
  if (!kernel.ok() || (*kernel)->workspace_bytes() <= instruction.workspace_bytes) return kernel;
  return absl::FailedPreconditionError(
      absl::StrCat("the kernel needs ", (*kernel)->workspace_bytes(), " bytes of workspace, the program plans ",
                   instruction.workspace_bytes, "; was it compiled for another processor or by another version?"));
}

absl::Status CpuExecutable::AddCalls() {
  using KernelPointer = std::unique_ptr<cpu::Kernel>;
  StepBinding<KernelPointer> binding;
  binding.address = [this](const Value& value) { return Address(value); };
  binding.arena = arena_.data();
  binding.may_group = cpu::MayGroup;
  binding.may_alias = cpu::MayAlias;
  binding.make_kernel = [this](const Instruction& instruction, const KernelSpec& spec) {
    return MakeKernel(instruction, spec);
  };
  binding.make_group_kernel = [](const std::vector<KernelSpec>& specs) { return cpu::CreateGroupKernel(specs); };
  absl::StatusOr<StepCalls<KernelPointer>> calls = StepBinder(*program_, binding).Bind();
  if (!calls.ok()) return calls.status();
  calls_ = *std::move(calls);
  for (std::size_t i = 0; i < program_->refreshes.size(); ++i) {
    const StateRefresh& refresh = program_->refreshes[i];
    refreshes_.push_back({&calls_.refreshes[i], entries_[refresh.derived].get(), entries_[refresh.source].get(),
                          program_->state[refresh.derived].written});
  }
  return absl::OkStatus();
}

void CpuExecutable::RunKernel(const Call& call) {
  call.kernel->Run({call.inputs.data(), call.outputs.data(), call.workspace, communicator_.get()});
}

void CpuExecutable::NoteUpdates(const Call& call) {
  for (; next_update_ < updates_.size(); ++next_update_) {
    Update& update = updates_[next_update_];
    if (update.instruction >= call.instruction + call.instructions) return;
    update.took_place = *update.predicate != 0;
  }
}

void CpuExecutable::Observe(const Call& call, const ResultObserver& observe) {
  // A kernel of several instructions may be given the operands of the first alone: the Program has all of them.
  for (std::size_t i = call.instruction; i < call.instruction + call.instructions; ++i) {
    const std::vector<ValueId>& outputs = program_->sequences[call.sequence].instructions[i].outputs;
    for (std::size_t result = 0; result < outputs.size(); ++result) {
      if (outputs[result] == kNoValue) continue;
      observe({call.sequence,
               i,
               result,
               {reinterpret_cast<std::uint8_t*>(Address(outputs[result])),
                program_->values[outputs[result]].spec.bytes()}});
    }
  }
}

absl::Status CpuExecutable::RunCallOfStep(const Call& call, const ResultObserver& observe) {
  const auto run = [&](const Call& each) {
    RunKernel(each);
    if (observe) Observe(each, observe);
    if (communicator_ == nullptr || communicator_->status().ok()) return absl::OkStatus();
    return WithPlace(DescribeInstruction(*program_, each.instruction, each.sequence), communicator_->status());
  };
  const auto copy = [](const std::vector<CopyRange>& copies) {
    Copy(copies);
    return absl::OkStatus();
  };
  return RunCall(calls_, call, run, copy);
}

void CpuExecutable::RefreshStaleState() {
  for (const Refresh& refresh : refreshes_) {
    if (refresh.derived->Follows(*refresh.source)) continue;
    RunKernel(*refresh.call);
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
  next_update_ = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].empty()) std::memcpy(inputs_[i].data, inputs[i].data(), inputs[i].size());
  }
  return absl::OkStatus();
}

void CpuExecutable::Finish() {
  // Sources may be state that another copy writes only if the compiler ordered them so: they run in order.
  for (const std::vector<CopyRange>& copies : calls_.sequences.front().copies) Copy(copies);
  for (StateEntry* entry : written_) entry->MarkWritten();
  for (const Update& update : updates_) {
    if (update.took_place) update.entry->MarkWritten();
  }
  for (const Refresh& refresh : refreshes_) {
    if (refresh.written) refresh.derived->MarkFollowing(*refresh.source);
  }
  ++steps_;
}

absl::Status CpuExecutable::Run(StepInputs inputs) { return RunObserved(inputs, nullptr); }

absl::Status CpuExecutable::Abandon(absl::Status status) {
  for (StateEntry* entry : written_) entry->MarkWritten();
  for (const Update& update : updates_) update.entry->MarkWritten();
  return status;
}

absl::Status CpuExecutable::RunObserved(StepInputs inputs, const ResultObserver& observe) {
  if (absl::Status status = Begin(inputs); !status.ok()) return status;
  for (const Call& call : calls_.sequences.front().calls) {
    NoteUpdates(call);
    if (absl::Status status = RunCallOfStep(call, observe); !status.ok()) return Abandon(std::move(status));
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
  for (const Call& call : calls_.sequences.front().calls) {
    const double begin = since_start();
    NoteUpdates(call);
    if (absl::Status status = RunCallOfStep(call); !status.ok()) return Abandon(std::move(status));
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
