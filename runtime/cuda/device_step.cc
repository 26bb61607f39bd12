#include "runtime/cuda/device_step.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/collective.h"
#include "runtime/generated_call.h"
#include "runtime/program_binding.h"

namespace mpc::runtime {

void* DeviceAddresses::AddressOf(const Value& value) const {
  switch (value.storage) {
    case Storage::kState:
      return state[value.index];
    case Storage::kInput:
    case Storage::kTemporary:
      return arena + value.offset;
    case Storage::kConstant:
      return constants + value.offset;
  }
  return nullptr;
}

absl::StatusOr<std::unique_ptr<DeviceStep>> DeviceStep::Create(CudaApi& api, const Program& program,
                                                               DeviceAddresses addresses, StepKernels& kernels) {
  std::unique_ptr<DeviceStep> step(new DeviceStep(api, program, std::move(addresses), kernels.group()));
  absl::StatusOr<GeneratedCode> code = GeneratedCode::Load(api, program);
  if (!code.ok()) return code.status();
  step->code_ = *std::move(code);
  if (absl::Status status = step->AddCalls(kernels); !status.ok()) return status;
  if (absl::Status status = step->PlaceExtraWorkspaces(); !status.ok()) return status;
  return step;
}

absl::Status DeviceStep::AddCalls(StepKernels& kernels) {
  using KernelPointer = std::shared_ptr<cuda::Kernel>;
  StepBinding<KernelPointer> binding;
  binding.address = [this](const Value& value) { return addresses_.AddressOf(value); };
  binding.arena = addresses_.arena;
  binding.may_group = cuda::MayGroup;
  binding.may_alias = cuda::MayAlias;
  binding.make_kernel = [&](const Instruction& instruction, const KernelSpec& spec) -> absl::StatusOr<KernelPointer> {
    if (IsGenerated(instruction.kernel)) return code_.CreateKernel(instruction);
    return kernels.KernelFor(spec);
  };
  binding.make_group_kernel = [&](const std::vector<KernelSpec>& specs) -> absl::StatusOr<KernelPointer> {
    return kernels.GroupKernelFor(specs);
  };
  absl::StatusOr<StepCalls<KernelPointer>> calls = StepBinder(program_, binding).Bind();
  if (!calls.ok()) return calls.status();
  calls_ = *std::move(calls);
  return absl::OkStatus();
}

absl::Status DeviceStep::PlaceExtraWorkspaces() {
  std::vector<Call*> beyond;
  const auto collect = [&](std::vector<Call>& calls) {
    for (Call& call : calls) {
      if (call.kernel == nullptr || call.workspace != nullptr || call.kernel->workspace_bytes() == 0) continue;
      beyond.push_back(&call);
      extra_bytes_ = std::max(extra_bytes_, call.kernel->workspace_bytes());
    }
  };
  for (auto& sequence : calls_.sequences) collect(sequence.calls);
  collect(calls_.refreshes);
  if (extra_bytes_ == 0) return absl::OkStatus();
  if (absl::Status status = Allocate(api_, extra_bytes_, extra_workspace_); !status.ok()) return status;
  for (Call* call : beyond) call->workspace = extra_workspace_.get();
  return absl::OkStatus();
}

bool DeviceStep::IsRefresh(const Call& call) const {
  const std::vector<Call>& refreshes = calls_.refreshes;
  return !refreshes.empty() && &call >= refreshes.data() && &call < refreshes.data() + refreshes.size();
}

std::string DeviceStep::Describe(const Call& call) const {
  if (IsRefresh(call)) {
    return DescribeRefresh(program_, program_.refreshes[static_cast<std::size_t>(&call - calls_.refreshes.data())]);
  }
  std::string first = DescribeInstruction(program_, call.instruction, call.sequence);
  if (call.instructions == 1) return first;
  return absl::StrCat(first, " and ", call.instructions - 1, " more in the same launch");
}

absl::Status DeviceStep::Enqueue(const Call& call, cuda::LaunchQueue& queue, const AfterKernel& after) const {
  const auto run = [&](const Call& each) {
    const absl::Status status = EnqueueKernel(each, queue);
    return status.ok() && after ? after(each) : status;
  };
  if (call.called == 0) return run(call);
  api_.PushRange(call.name.c_str());
  const absl::Status status =
      RunCall(calls_, call, run, [&](const std::vector<CopyRange>& copies) { return EnqueueCopies(copies, queue); });
  api_.PopRange();
  return status;
}

bool DeviceStep::WaitsForOthers(const Call& call) const {
  if (group_ == nullptr || IsRefresh(call)) return false;
  return IsCollective(program_.sequences[call.sequence].instructions[call.instruction].kernel);
}

CallMemory DeviceStep::MemoryOf(const Call& call) const {
  CallMemory memory;
  memory.alone = call.called != 0 || WaitsForOthers(call);
  const std::vector<Instruction>& instructions = program_.sequences[call.sequence].instructions;
  const auto range_of = [](const void* address, std::size_t bytes) {
    const auto* begin = static_cast<const std::byte*>(address);
    return MemoryRange{begin, begin + bytes};
  };
  const auto add = [&](const std::vector<ValueId>& ids, std::vector<MemoryRange>& ranges) {
    for (const ValueId id : ids) {
      if (id == kNoValue) continue;
      const Value& value = program_.values[static_cast<std::size_t>(id)];
      ranges.push_back(range_of(addresses_.AddressOf(value), value.spec.bytes()));
    }
  };
  for (std::size_t i = call.instruction; i < call.instruction + call.instructions; ++i) {
    add(instructions[i].inputs, memory.reads);
    add(instructions[i].outputs, memory.writes);
  }
  // A kernel says what it takes of its place, which a plan without a device may have made larger. Generated code takes
  // what was planned.
  std::size_t workspace_bytes = instructions[call.instruction].workspace_bytes;
  if (call.kernel != nullptr && !IsGenerated(instructions[call.instruction].kernel)) {
    workspace_bytes = call.kernel->workspace_bytes();
  }
  if (call.workspace != nullptr) memory.writes.push_back(range_of(call.workspace, workspace_bytes));
  return memory;
}

absl::Status DeviceStep::EnqueueKernel(const Call& call, cuda::LaunchQueue& queue) const {
  api_.PushRange(call.name.c_str());
  absl::Status status;
  const bool waits = WaitsForOthers(call);
  if (waits) status = group_->EnqueuePlace(Describe(call), queue);
  if (status.ok()) status = call.kernel->Enqueue({call.inputs.data(), call.outputs.data(), call.workspace}, queue);
  if (status.ok() && waits) status = group_->EnqueueEndOfPlace(queue);
  api_.PopRange();
  return status.ok() ? status : WithPlace(Describe(call), status);
}

absl::Status DeviceStep::EnqueueCopies(const std::vector<CopyRange>& copies, cuda::LaunchQueue& queue) const {
  const absl::Status status = cuda::EnqueueCopies(copies, queue);
  return status.ok() ? status
                     : WithPlace(absl::StrCat(program_.name, ", copies of updated state or carried values"), status);
}

absl::Status DeviceStep::EnqueueStateCopies(cuda::LaunchQueue& queue) const {
  for (const std::vector<CopyRange>& copies : calls_.sequences.front().copies) {
    if (absl::Status status = EnqueueCopies(copies, queue); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace mpc::runtime
