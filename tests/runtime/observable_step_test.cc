#include "runtime/observable_step.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/runtime/program_builder.h"

namespace mpc::runtime {
namespace {

absl::StatusOr<std::unique_ptr<Executable>> Load(const ProgramBuilder& builder, const StateStore& store) {
  return (*GetDevice("cpu"))->Load(builder.Build(), store);
}

/// Momentum on two weights, which the CPU computes in one call.
ProgramBuilder TwoUpdates() {
  ProgramBuilder builder("train_step");
  const float rate_value = 0.5f;
  const ValueId rate = builder.Constant({DType::kF32, {}}, &rate_value);
  for (const auto& [name, size] : {std::pair<std::string, std::int64_t>{"a", 3}, {"b", 2500}}) {
    const TensorSpec spec{DType::kF32, {size}};
    const ValueId weight = builder.State("weight." + name, spec, true);
    const ValueId velocity = builder.State("velocity." + name, spec, true);
    const ValueId gradient = builder.Input("gradient." + name, spec);
    const ValueId apply = builder.Input("apply." + name, {DType::kBool, {}});
    builder.Call("momentum", {weight, velocity, gradient, rate, apply}, {weight, velocity}, {{"momentum", 0.5}});
  }
  return builder;
}

TEST(ObservableStep, ShowsEachResultOfInstructionsThatRunAsOneCall) {
  StateStore store;
  AddEntry(store, "weight.a", {1, 2, 3});
  AddEntry(store, "weight.b", std::vector<float>(2500, 4));
  AddEntry(store, "velocity.a", {2, 2, 2});
  AddEntry(store, "velocity.b", std::vector<float>(2500, 2));
  auto executable = Load(TwoUpdates(), store);
  ASSERT_TRUE(executable.ok()) << executable.status();
  const std::vector<float> of_a = {1, 3, 5}, of_b(2500, 3);
  const std::vector<std::uint8_t> yes = {1};
  std::vector<std::string> seen;
  const absl::Status status =
      dynamic_cast<ObservableStep&>(**executable)
          .RunObserved({BytesOf(of_a), BytesOf(yes), BytesOf(of_b), BytesOf(yes)}, [&](const ObservedResult& each) {
            seen.push_back(absl::StrCat(each.sequence, " ", each.instruction, " ", each.result, " ", each.bytes.size(),
                                        " ", ValuesOf<float>(each.bytes).front()));
          });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(seen, (std::vector<std::string>{"0 0 0 12 0", "0 0 1 12 2", "0 1 0 10000 2", "0 1 1 10000 4"}));
  EXPECT_EQ((*executable)->steps_started(), 1u);
}

TEST(ObservableStep, ShowsEveryRunOfASequenceAndReadsWhatTheObserverLeaves) {
  ProgramBuilder builder("train_step");
  const TensorSpec vector{DType::kF32, {4}};
  const ValueId x = builder.Input("x", vector);
  const ValueId sum = builder.Temporary(vector);
  const std::vector<float> ones(4, 1);
  const ValueId one = builder.Constant(vector, ones.data());
  builder.Repeat(3, {x, one}, {sum}, {Instruction{"add", {sum, one}, {sum}, {}, 0, 0, "test"}});
  builder.Output("sum", sum);
  StateStore store;
  auto executable = Load(builder, store);
  ASSERT_TRUE(executable.ok()) << executable.status();
  const std::vector<float> start = {0, 10, 20, 30};
  std::vector<float> seen;
  const absl::Status status =
      dynamic_cast<ObservableStep&>(**executable).RunObserved({BytesOf(start)}, [&](const ObservedResult& each) {
        EXPECT_EQ(each.sequence, 1u);
        auto* const values = reinterpret_cast<float*>(each.bytes.data());
        seen.push_back(values[0]);
        values[0] += 100;
      });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(seen, (std::vector<float>{1, 102, 203}));
  EXPECT_EQ(ValuesOf<float>((*executable)->output(0)), (std::vector<float>{303, 13, 23, 33}));
}

}  // namespace
}  // namespace mpc::runtime
