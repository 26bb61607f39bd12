// Programs built by hand, for tests of the runtime.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/aligned_buffer.h"
#include "runtime/executable.h"
#include "runtime/packed_weights.h"
#include "runtime/program.h"
#include "runtime/state_store.h"

namespace mpc::runtime {

/// Appends values to a Program; arena space is never reused.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(std::string name) {
    program.name = std::move(name);
    program.device = "cpu";
  }

  ValueId State(const std::string& name, TensorSpec spec, bool written) {
    program.state.push_back({name, Role::kParameter, spec, written});
    return AddValue({std::move(spec), Storage::kState, static_cast<std::int32_t>(program.state.size() - 1), 0});
  }
  /// State in `dtype` that follows the state `source`, with its refresh.
  ValueId Derived(ValueId source, DType dtype, bool written) {
    const std::int32_t source_index = program.values[source].index;
    const TensorSpec spec{dtype, program.values[source].spec.shape};
    const ValueId id = State(program.state[source_index].name + "." + std::string(DTypeName(dtype)), spec, written);
    program.state.back().role = Role::kDerived;
    program.refreshes.push_back(
        {program.values[id].index, source_index, Instruction{"cast", {source}, {id}, {}, 0, 0, "test"}});
    return id;
  }
  ValueId Input(const std::string& name, TensorSpec spec) {
    const auto index = static_cast<std::int32_t>(program.inputs.size());
    const std::size_t offset = Reserve(spec.bytes());
    const ValueId id = AddValue({std::move(spec), Storage::kInput, index, offset});
    program.inputs.push_back({name, id});
    return id;
  }
  ValueId Temporary(TensorSpec spec) {
    const std::size_t offset = Reserve(spec.bytes());
    return AddValue({std::move(spec), Storage::kTemporary, -1, offset});
  }
  ValueId Constant(TensorSpec spec, const void* data) {
    const std::size_t offset = program.constants.size();
    program.constants.resize(offset + AlignedBuffer::Padded(spec.bytes()));
    std::memcpy(program.constants.data() + offset, data, spec.bytes());
    return AddValue({std::move(spec), Storage::kConstant, -1, offset});
  }
  /// A constant of `element` throughout. No constant that is given may follow.
  template <typename T>
  ValueId Filled(TensorSpec spec, T element) {
    ConstantFill& fill = program.fills.emplace_back();
    fill.element.resize(sizeof(T));
    std::memcpy(fill.element.data(), &element, sizeof(T));
    const std::size_t offset = program.constant_bytes();
    fill.bytes = AlignedBuffer::Padded(spec.bytes());
    return AddValue({std::move(spec), Storage::kConstant, -1, offset});
  }
  void Output(const std::string& name, ValueId id) { program.outputs.push_back({name, id}); }

  /// Adds an instruction, with the workspace that the device asks for if there is one.
  void Call(const std::string& kernel, std::vector<ValueId> inputs, std::vector<ValueId> outputs,
            Attributes attributes = {}, const Device* device = nullptr) {
    Instruction instruction{kernel, std::move(inputs), std::move(outputs), std::move(attributes), 0, 0, "test"};
    if (device != nullptr) PlanWorkspace(*device, instruction);
    program.step().instructions.push_back(std::move(instruction));
  }
  /// The same with an instruction in front that packs the weight as `device` wants it.
  void CallPacked(const std::string& kernel, std::vector<ValueId> inputs, std::vector<ValueId> outputs,
                  Attributes attributes, const Device& device) {
    Instruction instruction{kernel, std::move(inputs), std::move(outputs), std::move(attributes), 0, 0, "test"};
    Instruction pack = PackWeight(*device.Plan(program, instruction).value().packing, program, instruction);
    Value& packed = program.values.back();
    packed.offset = Reserve(packed.spec.bytes());
    for (Instruction* each : {&pack, &instruction}) {
      PlanWorkspace(device, *each);
      program.step().instructions.push_back(*each);
    }
  }

  /// Adds an instruction that runs a new sequence of `body`, and puts `copies` behind it.
  void Repeat(std::int64_t count, std::vector<ValueId> inputs, std::vector<ValueId> outputs,
              std::vector<Instruction> body, std::vector<ValueCopy> copies = {}) {
    Instruction call{"repeat", std::move(inputs), std::move(outputs), {{kRepeatCount, count}}, 0, 0, "test"};
    call.sequence = static_cast<std::int32_t>(program.sequences.size());
    program.step().instructions.push_back(std::move(call));
    program.sequences.push_back({"body", std::move(body), std::move(copies)});
  }

  std::shared_ptr<const Program> Build() const { return std::make_shared<const Program>(program); }

  Program program;

 private:
  void PlanWorkspace(const Device& device, Instruction& instruction) {
    instruction.workspace_bytes = device.Plan(program, instruction).value().workspace_bytes;
    instruction.workspace_offset = Reserve(instruction.workspace_bytes);
  }
  std::size_t Reserve(std::size_t bytes) {
    return std::exchange(program.arena_bytes, program.arena_bytes + AlignedBuffer::Padded(bytes));
  }
  ValueId AddValue(Value value) {
    program.values.push_back(std::move(value));
    return static_cast<ValueId>(program.values.size() - 1);
  }
};

template <typename T>
absl::Span<const std::uint8_t> BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(T)};
}

template <typename T>
std::vector<T> ValuesOf(absl::Span<const std::uint8_t> bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

inline std::shared_ptr<StateEntry> AddEntry(StateStore& store, const std::string& name,
                                            const std::vector<float>& values) {
  auto entry = std::make_shared<StateEntry>(name, Role::kParameter,
                                            TensorSpec{DType::kF32, {static_cast<std::int64_t>(values.size())}});
  if (!entry->Write(BytesOf(values)).ok() || !store.Add(entry).ok()) return nullptr;
  return entry;
}

inline std::vector<float> FloatsOf(const StateEntry& entry) {
  return ValuesOf<float>({static_cast<const std::uint8_t*>(entry.data()), entry.spec().bytes()});
}

}  // namespace mpc::runtime
