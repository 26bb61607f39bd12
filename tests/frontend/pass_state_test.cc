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

}  // namespace
}  // namespace mpc::internal
