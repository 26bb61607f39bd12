// A training step whose parameters, momenta and gradients can be flat buffers.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "runtime/flat_updates.h"
#include "tests/runtime/program_builder.h"

namespace mpc::runtime {

/// Elements of each parameter of MomentumOfThree: less than the alignment, more, and two dimensions of it.
inline const std::vector<Shape> kFlatShapes = {{6}, {130}, {3, 5}};

/// Momentum with shadows on "weight0" .. "weight2". Gradients are the inputs "gradient0" .. rounded to bf16; input
/// "before" (bf16) is written where gradients and their padding will lie. The third tensor lies first.
inline ProgramBuilder MomentumOfThree() {
  ProgramBuilder builder("train_step");
  const float rate_value = 0.5f;
  const ValueId rate = builder.Constant({DType::kF32, {}}, &rate_value);
  const ValueId before = builder.Input("before", {DType::kF32, {512}});
  std::vector<ValueId> given, rounded;
  for (const Shape& shape : kFlatShapes) {
    given.push_back(builder.Input("gradient" + std::to_string(given.size()), {DType::kF32, shape}));
  }
  const ValueId garbage = builder.Temporary({DType::kBF16, {512}});
  builder.Call("cast", {before}, {garbage});
  for (std::size_t i = 0; i < given.size(); ++i) {
    rounded.push_back(builder.Temporary({DType::kBF16, kFlatShapes[i]}));
    builder.Call("cast", {given[i]}, {rounded[i]});
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    const TensorSpec spec{DType::kF32, kFlatShapes[i]};
    const ValueId weight = builder.State("weight" + std::to_string(i), spec, true);
    const ValueId velocity = builder.State("velocity" + std::to_string(i), spec, true);
    const ValueId shadow = builder.Derived(weight, DType::kBF16, true);
    builder.Call("momentum", {weight, velocity, rounded[i], rate}, {weight, velocity, shadow},
                 {{"momentum", 0.5}, {"shadow", "bf16"}});
  }
  Program& program = builder.program;
  program.flat_updates = FindFlatUpdates(program, [](ValueId id) { return id; });
  if (program.flat_updates.size() != 1) return builder;
  LayOut(program, {2, 0, 1}, program.flat_updates[0]);
  for (std::size_t i = 0; i < given.size(); ++i) {
    program.values[rounded[i]].offset =
        program.values[garbage].offset + 2 * static_cast<std::size_t>(program.flat_updates[0].offsets[i]);
  }
  return builder;
}

/// Entries for MomentumOfThree, parameters and momenta filled.
inline void AddFlatState(StateStore& store) {
  for (std::size_t i = 0; i < kFlatShapes.size(); ++i) {
    const std::string number = std::to_string(i);
    const TensorSpec spec{DType::kF32, kFlatShapes[i]};
    for (const char* name : {"weight", "velocity"}) {
      auto entry = std::make_shared<StateEntry>(name + number, Role::kParameter, spec);
      std::vector<float> values(static_cast<std::size_t>(spec.num_elements()));
      for (std::size_t k = 0; k < values.size(); ++k) values[k] = 0.25f * static_cast<float>(k) - static_cast<float>(i);
      entry->Write(BytesOf(values)).IgnoreError();
      store.Add(std::move(entry)).IgnoreError();
    }
    store
        .Add(std::make_shared<StateEntry>("weight" + number + ".bf16", Role::kDerived,
                                          TensorSpec{DType::kBF16, kFlatShapes[i]}))
        .IgnoreError();
  }
}

/// Inputs of MomentumOfThree: NaN where gradients will lie, then gradients.
class FlatInputs {
 public:
  FlatInputs() : values_{std::vector<float>(512, std::numeric_limits<float>::quiet_NaN())} {
    for (const Shape& shape : kFlatShapes) {
      std::vector<float>& gradient = values_.emplace_back();
      const std::int64_t elements = TensorSpec{DType::kF32, shape}.num_elements();
      for (std::int64_t k = 0; k < elements; ++k) gradient.push_back(0.37f * static_cast<float>(k) - 1.0f);
    }
    for (const std::vector<float>& each : values_) spans_.push_back(BytesOf(each));
  }
  operator StepInputs() const { return spans_; }  // NOLINT(google-explicit-constructor): it is an argument of Run

 private:
  std::vector<std::vector<float>> values_;
  std::vector<absl::Span<const std::uint8_t>> spans_;
};

}  // namespace mpc::runtime
