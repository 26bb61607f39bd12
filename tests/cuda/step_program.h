// A step with everything that a Program can have: inputs of two types, a constant, state that is updated in place, by
// copy and not at all, derived state that the step lets grow stale, outputs small and large.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/float16.h"
#include "tests/runtime/program_builder.h"

namespace mpc::runtime {

inline const TensorSpec kStepVector{DType::kF32, {5}};
/// 20,000 bytes: an output of its own copy.
inline const TensorSpec kStepTable{DType::kF32, {5000}};

inline ProgramBuilder StepProgram() {
  ProgramBuilder builder("train_step");
  const std::vector<float> bias_values = {1, 2, 3, 4, 5};
  const ValueId weight = builder.State("weight", kStepVector, true);
  const ValueId velocity = builder.State("velocity", kStepVector, true);
  const ValueId table = builder.State("table", kStepTable, true);
  const ValueId shadow = builder.Derived(weight, DType::kF16, false);
  const ValueId x = builder.Input("x", kStepVector);
  const ValueId low = builder.Input("low", {DType::kF16, {3}});
  const ValueId bias = builder.Constant(kStepVector, bias_values.data());
  const ValueId sum = builder.Temporary(kStepVector);
  const ValueId y = builder.Temporary({DType::kF16, {5}});
  const ValueId half_velocity = builder.Temporary(kStepVector);
  const ValueId new_velocity = builder.Temporary(kStepVector);
  const ValueId z = builder.Temporary({DType::kF16, {3}});
  builder.Call("add", {x, bias}, {sum});
  builder.Call("neg", {shadow}, {y});
  builder.Call("add", {weight, sum}, {weight});
  builder.Call("mul_scalar", {velocity}, {half_velocity}, {{"value", 0.5}});
  builder.Call("add", {half_velocity, sum}, {new_velocity});
  builder.Call("neg", {low}, {z});
  builder.Call("add_scalar", {table}, {table}, {{"value", 1.5}});
  builder.program.step().copies.push_back({new_velocity, velocity, "test"});
  for (const auto& [name, value] : {std::pair{"sum", sum}, {"y", y}, {"weight", weight}, {"z", z}, {"table", table}}) {
    builder.Output(name, value);
  }
  return builder;
}

/// `builder`'s Program for the device called `device`.
inline std::shared_ptr<const Program> BuildFor(const std::string& device, ProgramBuilder builder) {
  builder.program.device = device;
  if (device == "cuda") builder.program.arch = "sm_90";
  return builder.Build();
}

/// The state of StepProgram.
inline void AddStepState(StateStore& store) {
  std::vector<float> table(5000);
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i);
  AddEntry(store, "weight", {1, -2, 3, -4, 5});
  AddEntry(store, "velocity", {8, 4, 2, 1, 0});
  AddEntry(store, "table", table);
  store.Add(std::make_shared<StateEntry>("weight.f16", Role::kDerived, TensorSpec{DType::kF16, {5}})).IgnoreError();
}

/// The inputs of step `step` of StepProgram.
struct StepData {
  explicit StepData(int step) {
    for (int i = 0; i < 5; ++i) x.push_back(0.25f * static_cast<float>(step * 5 + i));
    for (int i = 0; i < 3; ++i) low.push_back(Half(static_cast<float>(step - i)));
    inputs = {BytesOf(x), BytesOf(low)};
  }
  StepData(const StepData&) = delete;
  std::vector<float> x;
  std::vector<Half> low;
  std::vector<absl::Span<const std::uint8_t>> inputs;
};

/// The content of every entry, by way of Read.
inline std::vector<std::vector<std::uint8_t>> ContentOf(const StateStore& store) {
  std::vector<std::vector<std::uint8_t>> content;
  for (const auto& entry : store.entries()) {
    content.emplace_back(entry->spec().bytes());
    if (!entry->Read(absl::MakeSpan(content.back())).ok()) content.back().clear();
  }
  return content;
}

using Outputs = std::vector<std::vector<std::uint8_t>>;

/// The outputs of step `step`; empty where it failed.
inline Outputs OutputsOf(const Executable& executable, std::uint64_t step) {
  Outputs outputs;
  for (std::size_t i = 0; i < executable.program().outputs.size(); ++i) {
    const auto bytes = executable.OutputOfStep(step, i);
    if (!bytes.ok()) return {};
    outputs.emplace_back(bytes->begin(), bytes->end());
  }
  return outputs;
}

}  // namespace mpc::runtime
