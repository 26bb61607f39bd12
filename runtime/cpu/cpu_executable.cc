#include "runtime/cpu/cpu_executable.h"

#include <unistd.h>

#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/program_check.h"

namespace mpc::runtime {
namespace {

/// `status` with the place it happened in front of its message.
absl::Status At(const std::string& place, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(place, ": ", status.message()));
}

std::size_t PhysicalMemory() {
  return static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

/// True if two values share bytes: of one state entry, or of the arena.
bool ShareStorage(const Value& a, const Value& b) {
  if (a.storage == Storage::kConstant || b.storage == Storage::kConstant) return false;
  if (a.storage == Storage::kState || b.storage == Storage::kState) {
    return a.storage == b.storage && a.index == b.index;
  }
  return a.offset < b.offset + b.spec.bytes() && b.offset < a.offset + a.spec.bytes();
}

/// True if `output` lies exactly where `input` does, element for element.
bool SamePlace(const Value& output, const Value& input) {
  const bool begins_there = output.storage == Storage::kState || output.offset == input.offset;
  return begins_there && output.spec.dtype == input.spec.dtype && output.spec.bytes() == input.spec.bytes();
}

bool TouchesWorkspace(const Value& value, const Instruction& instruction) {
  if (value.storage != Storage::kTemporary && value.storage != Storage::kInput) return false;
  return value.offset < instruction.workspace_offset + instruction.workspace_bytes &&
         instruction.workspace_offset < value.offset + value.spec.bytes();
}

}  // namespace

absl::StatusOr<cpu::KernelSpec> MakeKernelSpec(const Program& program, const Instruction& instruction) {
  cpu::KernelSpec spec;
  spec.name = instruction.kernel;
  spec.attributes = instruction.attributes;
  const auto in_range = [&](ValueId id) { return id >= 0 && static_cast<std::size_t>(id) < program.values.size(); };
  for (ValueId id : instruction.inputs) {
    if (!in_range(id)) {
      return absl::InvalidArgumentError(
          absl::StrCat(instruction.kernel, " reads value ", id, " of ", program.values.size()));
    }
    spec.inputs.push_back(program.values[id].spec);
  }
  for (ValueId id : instruction.outputs) {
    if (id != kNoValue && !in_range(id)) {
      return absl::InvalidArgumentError(
          absl::StrCat(instruction.kernel, " writes value ", id, " of ", program.values.size()));
    }
    spec.output_used.push_back(id != kNoValue);
    spec.outputs.push_back(id == kNoValue ? TensorSpec{} : program.values[id].spec);
  }
  return spec;
}

std::string DescribeInstruction(const Program& program, std::size_t position) {
  const Instruction& instruction = program.instructions[position];
  return absl::StrCat(program.name, ", instruction ", position, " (", instruction.kernel,
                      instruction.scope.empty() ? "" : " in ", instruction.scope, ")");
}

CpuExecutable::CpuExecutable(std::shared_ptr<const Program> program, std::vector<std::shared_ptr<StateEntry>> entries)
    : program_(std::move(program)),
      entries_(std::move(entries)),
      arena_(program_->arena_bytes),
      constants_(program_->constants.size()) {
  if (!program_->constants.empty()) {
    std::memcpy(constants_.data(), program_->constants.data(), program_->constants.size());
  }
}

absl::StatusOr<std::unique_ptr<Executable>> CpuExecutable::Create(std::shared_ptr<const Program> program,
                                                                  std::vector<std::shared_ptr<StateEntry>> entries) {
  const Program& plan = *program;
  const auto exhausted = [&plan] {
    return absl::ResourceExhaustedError(absl::StrCat("program \"", plan.name, "\" needs ", plan.arena_bytes,
                                                     " bytes for temporaries beside ", plan.state_bytes(),
                                                     " bytes of state; the system does not have them"));
  };
  // The system would promise more than it has and end the process when the arena is cleared.
  if (plan.arena_bytes > PhysicalMemory()) return exhausted();
  std::unique_ptr<CpuExecutable> executable;
  try {
    executable.reset(new CpuExecutable(program, std::move(entries)));
  } catch (const std::bad_alloc&) {
    return exhausted();
  }
  for (std::size_t position = 0; position < plan.instructions.size(); ++position) {
    absl::Status status = executable->CheckOverlaps(position);
    if (status.ok()) {
      absl::StatusOr<Call> call = executable->MakeCall(plan.instructions[position]);
      status = call.status();
      if (call.ok()) executable->calls_.push_back(*std::move(call));
    }
    if (!status.ok()) return At(DescribeInstruction(plan, position), status);
  }
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

std::byte* CpuExecutable::Address(ValueId id) {
  const Value& value = program_->values[id];
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

absl::Status CpuExecutable::CheckOverlaps(std::size_t position) const {
  const Instruction& instruction = program_->instructions[position];
  for (std::size_t input = 0; input < instruction.inputs.size(); ++input) {
    if (TouchesWorkspace(program_->values[instruction.inputs[input]], instruction)) {
      return absl::InvalidArgumentError(absl::StrCat("input ", input, " overlaps the workspace"));
    }
  }
  for (std::size_t output = 0; output < instruction.outputs.size(); ++output) {
    if (instruction.outputs[output] == kNoValue) continue;
    const Value& target = program_->values[instruction.outputs[output]];
    if (TouchesWorkspace(target, instruction)) {
      return absl::InvalidArgumentError(absl::StrCat("output ", output, " overlaps the workspace"));
    }
    for (std::size_t input = 0; input < instruction.inputs.size(); ++input) {
      const Value& source = program_->values[instruction.inputs[input]];
      if (!ShareStorage(target, source)) continue;
      if (SamePlace(target, source) && cpu::MayAlias(instruction.kernel, output, input)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("output ", output, " overwrites input ", input, ", which the kernel still reads"));
    }
    for (std::size_t other = 0; other < output; ++other) {
      if (instruction.outputs[other] == kNoValue) continue;
      if (ShareStorage(target, program_->values[instruction.outputs[other]])) {
        return absl::InvalidArgumentError(absl::StrCat("outputs ", other, " and ", output, " overlap"));
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<CpuExecutable::Call> CpuExecutable::MakeCall(const Instruction& instruction) {
  absl::StatusOr<cpu::KernelSpec> spec = MakeKernelSpec(*program_, instruction);
  if (!spec.ok()) return spec.status();
  absl::StatusOr<std::unique_ptr<cpu::Kernel>> kernel = cpu::CreateKernel(*spec);
  if (!kernel.ok()) return kernel.status();
  if ((*kernel)->workspace_bytes() > instruction.workspace_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the kernel needs ", (*kernel)->workspace_bytes(), " bytes of workspace, the program plans ",
        instruction.workspace_bytes, "; was it compiled for another number of threads or another processor?"));
  }
  Call call;
  call.kernel = *std::move(kernel);
  for (ValueId id : instruction.inputs) call.inputs.push_back(Address(id));
  for (ValueId id : instruction.outputs) call.outputs.push_back(id == kNoValue ? nullptr : Address(id));
  call.workspace = arena_.data() + instruction.workspace_offset;
  return call;
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
    refresh.derived->MarkFollowing(*refresh.source);
  }
}

absl::Status CpuExecutable::CheckInputs(absl::Span<const absl::Span<const std::uint8_t>> inputs) const {
  bool matches = inputs.size() == inputs_.size();
  for (std::size_t i = 0; matches && i < inputs.size(); ++i) matches = inputs[i].size() == inputs_[i].bytes;
  if (matches) return absl::OkStatus();
  std::vector<std::string> expected;
  for (const NamedValue& input : program_->inputs) {
    const TensorSpec& spec = program_->values[input.value].spec;
    expected.push_back(absl::StrCat("\"", input.name, "\" ", spec.ToString(), " (", spec.bytes(), " bytes)"));
  }
  std::vector<std::string> given;
  for (absl::Span<const std::uint8_t> input : inputs) given.push_back(absl::StrCat(input.size(), " bytes"));
  return absl::InvalidArgumentError(absl::StrCat("program \"", program_->name, "\" takes ", expected.size(),
                                                 " inputs [", absl::StrJoin(expected, ", "), "], got ", given.size(),
                                                 " [", absl::StrJoin(given, ", "), "]"));
}

absl::Status CpuExecutable::Run(absl::Span<const absl::Span<const std::uint8_t>> inputs) {
  if (absl::Status status = CheckInputs(inputs); !status.ok()) return status;
  RefreshStaleState();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].empty()) std::memcpy(inputs_[i].data, inputs[i].data(), inputs[i].size());
  }
  for (const Call& call : calls_) {
    call.kernel->Run({call.inputs.data(), call.outputs.data(), call.workspace});
  }
  // Sources may be state that another copy writes only if the compiler ordered them so: they run in order.
  for (const Copy& copy : copies_) std::memcpy(copy.to, copy.from, copy.bytes);
  for (StateEntry* entry : written_) entry->MarkWritten();
  for (const Refresh& refresh : refreshes_) {
    if (refresh.written) refresh.derived->MarkFollowing(*refresh.source);
  }
  return absl::OkStatus();
}

absl::Span<const std::uint8_t> CpuExecutable::output(std::size_t index) const {
  return index < outputs_.size() ? outputs_[index] : absl::Span<const std::uint8_t>();
}

}  // namespace mpc::runtime
