#include "frontend/graph/pass_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mpc::internal {
namespace {

using ::testing::HasSubstr;

const TensorSpec kLow{DType::kF16, {2, 3}};
const TensorSpec kSum{DType::kF32, {2, 3}};
const TensorSpec kCount{DType::kI32, {}};

TEST(PassState, FindsWhatAnEarlierProgramCreated) {
  PassState state;
  const std::vector<runtime::StateBinding> bindings = {{"w.f16", Role::kDerived, kLow, false},
                                                       {"w.sum", Role::kAccumulator, kSum, true}};
  const auto first = state.Bind(bindings, {});
  const auto second = state.Bind(bindings, {});
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  ASSERT_EQ(first->derived.size(), 1u);
  ASSERT_EQ(first->accumulators.size(), 1u);
  EXPECT_EQ(first->derived[0], second->derived[0]);
  EXPECT_EQ(first->accumulators[0], second->accumulators[0]);
  EXPECT_EQ(state.accumulators().size(), 1u);
  EXPECT_EQ(state.FindDerived("w.f16"), first->derived[0]);
  EXPECT_EQ(state.FindDerived("w.bf16"), nullptr);
}

TEST(PassState, AccumulatorsStartFromZeroAndDerivedStateFromNothing) {
  PassState state;
  const auto bound = state.Bind(std::vector<runtime::StateBinding>{{"w.f16", Role::kDerived, kLow, false},
                                                                   {"micro_step", Role::kAccumulator, kCount, true}},
                                {});
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ(bound->accumulators[0].Value()->Item<std::int32_t>(), 0);
  EXPECT_EQ(bound->accumulators[0].entry()->role(), Role::kAccumulator);
  EXPECT_FALSE(bound->accumulators[0].requires_grad());
  EXPECT_FALSE(bound->derived[0]->initialised()) << "the first step makes it";
}

// The balanced tree of mpc.accumulate_gradient, with a gradient of zero.
TEST(PassState, AMicroStepThatTakesNoGradientAddsZero) {
  const TensorSpec pair{DType::kF32, {2}};
  const auto names = [] { return std::vector<std::string>{"w", "old.b"}; };
  const auto values = [](const Parameter& parameter) { return parameter.Value()->ToFloats(); };
  PassState state;
  Parameter low = *state.Accumulator("accumulator.w", pair), high = *state.Accumulator("accumulator.w.level1", pair);
  Parameter of_loss = *state.Accumulator("accumulator.w.loss12", pair);
  Parameter other = *state.Accumulator("accumulator.batches.w", pair);
  const auto fill = [&] {
    for (Parameter parameter : {low, high, of_loss, other}) {
      ASSERT_TRUE(parameter.SetData(Tensor::From({1.0f, 2.0f}, {2})).ok());
    }
  };
  using Values = std::vector<float>;
  const Values ones = {1, 2}, zeros = {0, 0};
  fill();
  ASSERT_TRUE(state.AddZeros({}, names, 1, 4).ok());
  EXPECT_EQ(values(low), ones) << "the second of a pair";
  EXPECT_EQ(values(high), ones) << "takes the pair";
  ASSERT_TRUE(state.AddZeros({}, names, 2, 4).ok());
  EXPECT_EQ(values(low), zeros) << "another pair begins";
  EXPECT_EQ(values(high), ones);
  ASSERT_TRUE(state.AddZeros({}, names, 3, 4).ok());
  EXPECT_EQ(values(high), ones) << "the first pair, and one of zeros";
  ASSERT_TRUE(state.AddZeros({}, names, 0, 4).ok());
  EXPECT_EQ(values(high), zeros) << "another update begins";
  EXPECT_EQ(values(of_loss), zeros);
  EXPECT_EQ(values(other), ones) << "it gathers no gradient";
  // What a Program binds, it has written itself.
  fill();
  const std::vector<runtime::StateBinding> bound = {{"accumulator.w", Role::kAccumulator, pair, true},
                                                    {"accumulator.w.level1", Role::kAccumulator, pair, true}};
  ASSERT_TRUE(state.AddZeros(bound, names, 0, 4).ok());
  EXPECT_EQ(values(low), ones);
  EXPECT_EQ(values(of_loss), zeros);
  // Zeros are not written again.
  const std::uint64_t version = of_loss.entry()->version();
  ASSERT_TRUE(state.AddZeros(bound, names, 1, 4).ok());
  EXPECT_EQ(of_loss.entry()->version(), version);
}

// Inside an update, nothing has moved what a Program is the first to move.
TEST(PassState, WhatIsKeptFromBeforeAnUpdateStartsFromThePresentValue) {
  Parameter mean(Tensor::Full({2, 3}, 7.0), {.requires_grad = false, .role = Role::kStatistic});
  mean.set_name("norm.mean");
  const std::vector<runtime::StateBinding> bindings = {{"norm.mean", Role::kStatistic, kSum, true},
                                                       {"accumulator.old.norm.mean", Role::kAccumulator, kSum, true},
                                                       {"accumulator.norm.mean", Role::kAccumulator, kSum, true}};
  PassState state;
  const auto bound = state.Bind(bindings, {mean});
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ(bound->accumulators[0].Value()->ToFloats(), std::vector<float>(6, 7));
  EXPECT_EQ(bound->accumulators[1].Value()->ToFloats(), std::vector<float>(6, 0));
  ASSERT_TRUE(mean.SetData(Tensor::Full({2, 3}, 8.0)).ok());
  ASSERT_TRUE(state.Bind(bindings, {mean}).ok());
  EXPECT_EQ(bound->accumulators[0].Value()->ToFloats(), std::vector<float>(6, 7)) << "it is known";
  const auto no_names = [] { return std::vector<std::string>(); };
  ASSERT_TRUE(state.AddZeros({}, no_names, 1, 2).ok());
  EXPECT_EQ(bound->accumulators[0].Value()->ToFloats(), std::vector<float>(6, 7)) << "the update is under way";
  ASSERT_TRUE(state.AddZeros({}, no_names, 0, 2).ok());
  EXPECT_EQ(bound->accumulators[0].Value()->ToFloats(), std::vector<float>(6, 8)) << "an update begins";
  EXPECT_EQ(KeptBeforeUpdate("accumulator.old.norm.mean"), "norm.mean");
  EXPECT_EQ(KeptBeforeUpdate("accumulator.norm.mean"), "");
}

// A Model that has loaded a file from inside an update measures, which writes state back, before a Program binds it.
TEST(PassState, WhatIsWrittenBackBeforeAProgramBindsItIsNoNewValue) {
  Parameter mean(Tensor::Full({2, 3}, 8.0), {.requires_grad = false, .role = Role::kStatistic});
  mean.set_name("norm.mean");
  PassState state;
  absl::StatusOr<Parameter> old = state.Accumulator("accumulator.old.norm.mean", kSum);
  ASSERT_TRUE(old.ok()) << old.status();
  ASSERT_TRUE(old->SetData(Tensor::Full({2, 3}, 7.0)).ok());
  state.NoteVersionsOf({mean});
  ASSERT_TRUE(mean.SetData(Tensor::Full({2, 3}, 8.0)).ok());
  state.NoteVersions();
  ASSERT_TRUE(state.KeepWritten(1).ok());
  EXPECT_EQ(old->Value()->ToFloats(), std::vector<float>(6, 7));
  ASSERT_TRUE(mean.SetData(Tensor::Full({2, 3}, 9.0)).ok());
  ASSERT_TRUE(state.KeepWritten(0).ok());
  EXPECT_EQ(old->Value()->ToFloats(), std::vector<float>(6, 7)) << "an update begins";
  ASSERT_TRUE(state.KeepWritten(1).ok());
  EXPECT_EQ(old->Value()->ToFloats(), std::vector<float>(6, 9));
}

TEST(PassState, LeavesToTheTraceWhatItKnows) {
  Parameter known(Tensor::Zeros({2, 3}), {.role = Role::kAccumulator});
  known.set_name("w.sum");
  PassState state;
  const auto bound = state.Bind(std::vector<runtime::StateBinding>{{"w.sum", Role::kAccumulator, kSum, true},
                                                                   {"w", Role::kParameter, kSum, true}},
                                {known});
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_TRUE(bound->accumulators.empty());
  EXPECT_TRUE(bound->derived.empty());
}

TEST(PassState, ANameHasOneTypeAndOneRole) {
  PassState state;
  ASSERT_TRUE(state.Accumulator("w.sum", kSum).ok());
  EXPECT_THAT(std::string(state.Accumulator("w.sum", kCount).status().message()),
              HasSubstr("accumulator state \"w.sum\" is tensor<2x3xf32>, a step now needs tensor<i32>"));
  const absl::Status status =
      state.Bind(std::vector<runtime::StateBinding>{{"w.sum", Role::kDerived, kSum, false}}, {}).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("state \"w.sum\" is accumulator in another step"));
}

TEST(PassState, WhatFollowsAReplacedParameterBeginsAnew) {
  const TensorSpec wide{DType::kF32, {4, 3}};
  const auto bindings = [](const TensorSpec& spec) {
    return std::vector<runtime::StateBinding>{{"w.f16", Role::kDerived, {DType::kF16, spec.shape}, false},
                                              {"accumulator.w", Role::kAccumulator, spec, true},
                                              {kMicroStep, Role::kAccumulator, kCount, true}};
  };
  Parameter old(Tensor::Zeros({2, 3})), fresh(Tensor::Zeros({4, 3}));
  old.set_name("w");
  fresh.set_name("w");
  PassState state;
  const auto first = state.Bind(bindings(kSum), {old});
  ASSERT_TRUE(first.ok()) << first.status();
  Parameter micro_step = first->accumulators[1];
  ASSERT_TRUE(micro_step.SetData(Tensor::Scalar<std::int32_t>(1)).ok());
  const auto again = state.Bind(bindings(kSum), {old});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->accumulators[1], micro_step);
  const auto second = state.Bind(bindings(wide), {fresh});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->derived[0]->spec().shape, (Shape{4, 3}));
  EXPECT_EQ(second->accumulators[1].Value()->Item<std::int32_t>(), 0) << "an update begins";
  EXPECT_EQ(state.accumulators().size(), 2u);
  EXPECT_EQ(state.derived().size(), 1u);
}

}  // namespace
}  // namespace mpc::internal
