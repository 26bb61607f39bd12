#include "runtime/state_record.h"

#include <gtest/gtest.h>

#include "kernels/state_hash.h"
#include "runtime/program_check.h"
#include "tests/runtime/program_builder.h"

namespace mpc::runtime {
namespace {

/// weight := weight + x, in its place or by a copy behind the last instruction.
Program Step(bool copies) {
  const TensorSpec row{DType::kF32, {3}};
  ProgramBuilder builder("train_step");
  const ValueId weight = builder.State("weight", row, true);
  builder.Derived(weight, DType::kF16, false);
  builder.State("kept", row, false);
  const ValueId x = builder.Input("x", row);
  const ValueId sum = copies ? builder.Temporary(row) : weight;
  builder.Call("add", {weight, x}, {sum});
  if (copies) builder.program.step().copies.push_back({sum, weight, "it is read later"});
  builder.Output("sum", sum);
  return builder.program;
}

/// The hash after a step that adds `x`, from weights of 1, 2, 3.
std::uint64_t HashAfter(Program program, const std::vector<float>& x, float kept) {
  AddStateHash(program);
  EXPECT_TRUE(CheckProgram(program).ok()) << CheckProgram(program);
  StateStore store;
  AddEntry(store, "weight", {1, 2, 3});
  AddEntry(store, "kept", {kept, 0, 0});
  const auto derived = std::make_shared<StateEntry>("weight.f16", Role::kDerived, TensorSpec{DType::kF16, {3}});
  EXPECT_TRUE(store.Add(derived).ok());
  auto executable = (*GetDevice("cpu"))->Load(std::make_shared<const Program>(program), store);
  EXPECT_TRUE(executable.ok()) << executable.status();
  EXPECT_TRUE((*executable)->Run({BytesOf(x)}).ok());
  EXPECT_EQ(program.outputs.back().name, kStateHashOutput);
  return ValuesOf<std::uint64_t>((*executable)->output(program.outputs.size() - 1)).front();
}

TEST(StateRecord, HashesWhatTheStepLeaves) {
  const std::vector<float> left = {2, 2, 3}, kept = {7, 0, 0};
  const std::uint64_t expected =
      HashBytes(HashKey("weight"), left.data(), 12) + HashBytes(HashKey("kept"), kept.data(), 12);
  for (const bool copies : {false, true}) {
    EXPECT_EQ(HashAfter(Step(copies), {1, 0, 0}, 7), expected) << "copies: " << copies;
    EXPECT_NE(HashAfter(Step(copies), {1, 0, 1e-6f}, 7), expected);
    EXPECT_NE(HashAfter(Step(copies), {1, 0, 0}, 8), expected);
  }
}

}  // namespace
}  // namespace mpc::runtime
