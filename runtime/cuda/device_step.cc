#include "runtime/cuda/device_step.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/generated_call.h"
#include "runtime/program_binding.h"
#include "runtime/step_groups.h"

namespace mpc::runtime {

void* DeviceAddresses::Of(const Value& value) const {
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
  std::unique_ptr<DeviceStep> step(new DeviceStep(api, program, std::move(addresses)));
  absl::StatusOr<GeneratedCode> code = GeneratedCode::Load(api, program);
  if (!code.ok()) return code.status();
  step->code_ = *std::move(code);
  if (absl::Status status = step->AddCalls(kernels); !status.ok()) return status;
  if (absl::Status status = step->AddRefreshes(kernels); !status.ok()) return status;
  if (absl::Status status = step->PlaceExtraWorkspaces(); !status.ok()) return status;
  step->AddStateCopies();
  return step;
}

absl::Status DeviceStep::AddCalls(StepKernels& kernels) {
  for (const InstructionRange& range : GroupInstructions(program_, cuda::MayGroup)) {
    for (std::size_t i = range.first; i < range.first + range.count; ++i) {
      const absl::Status status = CheckOverlaps(program_, i, cuda::MayAlias);
      if (!status.ok()) return At(DescribeInstruction(program_, i), status);
    }
    if (range.count > 1) {
      absl::StatusOr<Call> group = MakeGroup(range, kernels.context());
      if (group.ok()) {
        calls_.push_back(*std::move(group));
        continue;
      }
      if (!absl::IsUnimplemented(group.status())) {
        return At(DescribeInstruction(program_, range.first), group.status());
      }
    }
    for (std::size_t i = range.first; i < range.first + range.count; ++i) {
      absl::StatusOr<Call> call = MakeCall(program_.instructions[i], kernels);
      if (!call.ok()) return At(DescribeInstruction(program_, i), call.status());
      call->instruction = i;
      calls_.push_back(*std::move(call));
    }
  }
  return absl::OkStatus();
}

void DeviceStep::AddOperands(const Instruction& instruction, Call& call) const {
  for (ValueId id : instruction.inputs) call.inputs.push_back(addresses_.Of(program_.values[id]));
  for (ValueId id : instruction.outputs) {
    call.outputs.push_back(id == kNoValue ? nullptr : addresses_.Of(program_.values[id]));
  }
}

absl::StatusOr<DeviceStep::Call> DeviceStep::MakeCall(const Instruction& instruction, StepKernels& kernels) {
  absl::StatusOr<KernelSpec> spec = MakeKernelSpec(program_, instruction);
  if (!spec.ok()) return spec.status();
  absl::StatusOr<std::shared_ptr<cuda::Kernel>> kernel;
  if (IsGenerated(instruction.kernel)) {
    kernel = code_.CreateKernel(instruction);
  } else {
    kernel = kernels.Of(*spec);
  }
  if (!kernel.ok()) return kernel.status();
  Call call;
  call.kernel = *std::move(kernel);
  AddOperands(instruction, call);
  if (call.kernel->workspace_bytes() <= instruction.workspace_bytes) {
    call.workspace = addresses_.arena + instruction.workspace_offset;
  }
  call.range =
      instruction.scope.empty() ? instruction.kernel : absl::StrCat(instruction.scope, " ", instruction.kernel);
  return call;
}

absl::StatusOr<DeviceStep::Call> DeviceStep::MakeGroup(const InstructionRange& range,
                                                       const cuda::KernelContext& context) {
  const absl::StatusOr<GroupParts> parts =
      PartsOf(program_, range, [this](const Value& value) { return addresses_.Of(value); });
  if (!parts.ok()) return parts.status();
  Call call;
  for (const Instruction* instruction : parts->instructions) AddOperands(*instruction, call);
  absl::StatusOr<std::unique_ptr<cuda::Kernel>> kernel = cuda::CreateGroupKernel(parts->specs, context);
  if (!kernel.ok()) return kernel.status();
  call.kernel = *std::move(kernel);
  call.instruction = range.first;
  call.instructions = range.count;
  call.range = absl::StrCat(program_.instructions[range.first].kernel, " of ", range.count, " operands");
  return call;
}

absl::Status DeviceStep::PlaceExtraWorkspaces() {
  std::vector<Call*> beyond;
  for (std::vector<Call>* calls : {&calls_, &refreshes_}) {
    for (Call& call : *calls) {
      if (call.workspace == nullptr && call.kernel->workspace_bytes() > 0) beyond.push_back(&call);
    }
  }
  for (const Call* call : beyond) extra_bytes_ = std::max(extra_bytes_, call->kernel->workspace_bytes());
  if (extra_bytes_ == 0) return absl::OkStatus();
  if (absl::Status status = Allocate(api_, extra_bytes_, extra_workspace_); !status.ok()) return status;
  for (Call* call : beyond) call->workspace = extra_workspace_.get();
  return absl::OkStatus();
}

absl::Status DeviceStep::AddRefreshes(StepKernels& kernels) {
  for (const StateRefresh& refresh : program_.refreshes) {
    absl::StatusOr<Call> call = MakeCall(refresh.instruction, kernels);
    if (!call.ok()) {
      return At(absl::StrCat(program_.name, ", refresh of ", program_.state[refresh.derived].name), call.status());
    }
    refreshes_.push_back(*std::move(call));
  }
  return absl::OkStatus();
}

void DeviceStep::AddStateCopies() {
  for (const InstructionRange& range : GroupStateCopies(program_)) {
    std::vector<cuda::CopyRange>& copies = state_copies_.emplace_back();
    for (std::size_t i = range.first; i < range.first + range.count; ++i) {
      const StateCopy& copy = program_.state_copies[i];
      const Value& to = program_.values[copy.to];
      copies.push_back({addresses_.Of(to), addresses_.Of(program_.values[copy.from]), to.spec.bytes()});
    }
  }
}

std::string DeviceStep::Describe(const Call& call) const {
  const bool is_refresh =
      !refreshes_.empty() && &call >= refreshes_.data() && &call < refreshes_.data() + refreshes_.size();
  if (is_refresh) {
    const StateRefresh& refresh = program_.refreshes[static_cast<std::size_t>(&call - refreshes_.data())];
    return absl::StrCat(program_.name, ", refresh of ", program_.state[refresh.derived].name);
  }
  std::string first = DescribeInstruction(program_, call.instruction);
  if (call.instructions == 1) return first;
  return absl::StrCat(first, " and ", call.instructions - 1, " more in the same launch");
}

absl::Status DeviceStep::Enqueue(const Call& call, cuda::LaunchQueue& queue) const {
  api_.PushRange(call.range.c_str());
  const absl::Status status = call.kernel->Enqueue({call.inputs.data(), call.outputs.data(), call.workspace}, queue);
  api_.PopRange();
  return status.ok() ? status : At(Describe(call), status);
}

absl::Status DeviceStep::EnqueueStateCopies(cuda::LaunchQueue& queue) const {
  for (const std::vector<cuda::CopyRange>& copies : state_copies_) {
    const absl::Status status = cuda::EnqueueCopies(copies, queue);
    if (!status.ok()) return At(absl::StrCat(program_.name, ", copies of updated state"), status);
  }
  return absl::OkStatus();
}

}  // namespace mpc::runtime
