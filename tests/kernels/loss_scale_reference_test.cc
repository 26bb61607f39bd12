// The loss-scale state machine and the finite check: amp.md, behaviours 10 to 16.
#include <cmath>
#include <limits>

#include "tests/kernels/reference_run.h"

namespace mpc::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr int kFinite = -1;
constexpr int kLossAlone = -2;
constexpr int kOverflow = 0;

struct Scaler {
  double scale = 1, good = 0, bad = 0, skipped = 0, consecutive = 0;
  double growth = 2, backoff = 0.5, minimum = 1, maximum = kInfinity, interval = 2000, bad_limit = 1;
  bool dynamic = true, skip = true;

  void Step(int first_bad) {
    const TensorSpec f32{DType::kF32, {}};
    const TensorSpec i32{DType::kI32, {}};
    const auto results =
        RunReference("update_loss_scale", {},
                     {I32({}, {static_cast<double>(first_bad)}), F32({}, {scale}), I32({}, {good}), I32({}, {bad}),
                      I32({}, {skipped}), I32({}, {consecutive}), F32({}, {growth}), F32({}, {backoff}),
                      F32({}, {minimum}), F32({}, {maximum}), I32({}, {interval}), I32({}, {bad_limit}),
                      I32({}, {dynamic ? 1.0 : 0.0}), I32({}, {skip ? 1.0 : 0.0})},
                     {f32, i32, i32, i32, i32}, reference::Rounding::kStorage);
    scale = results[0].values[0];
    good = results[1].values[0];
    bad = results[2].values[0];
    skipped = results[3].values[0];
    consecutive = results[4].values[0];
  }
};

TEST(LossScale, Amp11StateWalk) {
  Scaler scaler{.scale = 4, .growth = 2, .backoff = 0.25, .interval = 2};
  scaler.Step(kFinite);
  EXPECT_EQ(scaler.scale, 4);
  EXPECT_EQ(scaler.good, 1);
  scaler.Step(kFinite);
  EXPECT_EQ(scaler.scale, 8);
  EXPECT_EQ(scaler.good, 0);
  scaler.Step(kOverflow);
  EXPECT_EQ(scaler.scale, 2);
  EXPECT_EQ(scaler.good, 0);
}

// Whether a gradient overflows under `scale`, as the step computes it.
int FirstBad(double scale, double gradient, double loss = 1) {
  return static_cast<int>(RunReference("all_finite", {}, {F32({}, {scale}), F32({}, {loss}), F32({1}, {gradient})},
                                       {{DType::kBool, {}}, {DType::kI32, {}}})[1]
                              .values[0]);
}

TEST(LossScale, Amp12ReplayOverGradients) {
  Scaler scaler{.scale = 4, .interval = 2};
  const double gradients[] = {20, kInfinity, 10, kInfinity};
  const double scales[] = {4, 2, 2, 1};
  const double counters[] = {1, 0, 1, 0};
  for (int i = 0; i < 4; ++i) {
    scaler.Step(FirstBad(scaler.scale, gradients[i]));
    EXPECT_EQ(scaler.scale, scales[i]) << i;
    EXPECT_EQ(scaler.good, counters[i]) << i;
  }
  EXPECT_EQ(scaler.skipped, 2);
}

TEST(LossScale, Amp13GrowthStaysFinite) {
  Scaler scaler{.scale = 1e38, .growth = 16, .interval = 1};
  for (int i = 0; i < 3; ++i) {
    scaler.Step(kFinite);
    EXPECT_TRUE(std::isfinite(scaler.scale));
  }
  Scaler limited{.scale = 0x1p125, .growth = 4, .interval = 1};
  limited.Step(kFinite);
  EXPECT_EQ(limited.scale, 0x1p126);
}

TEST(LossScale, Amp14BackoffStopsAtMinimum) {
  Scaler scaler{.scale = 4, .minimum = 1};
  for (double expected : {2.0, 1.0, 1.0, 1.0}) {
    scaler.Step(kOverflow);
    EXPECT_EQ(scaler.scale, expected);
  }
  EXPECT_EQ(scaler.consecutive, 4);
  Scaler without_minimum{.scale = 0x1p-126, .minimum = 0};
  without_minimum.Step(kOverflow);
  EXPECT_EQ(without_minimum.scale, 0x1p-126);
}

TEST(LossScale, Amp15BadLimitCountsConsecutiveOverflowsOnly) {
  Scaler scaler{.scale = 16, .bad_limit = 2};
  scaler.Step(kOverflow);
  EXPECT_EQ(scaler.bad, 1);
  scaler.Step(kFinite);
  EXPECT_EQ(scaler.bad, 0);
  scaler.Step(kOverflow);
  EXPECT_EQ(scaler.scale, 16);
  scaler.Step(kOverflow);
  EXPECT_EQ(scaler.scale, 8);
  EXPECT_EQ(scaler.bad, 0);
}

TEST(LossScale, Amp16NonFiniteLossSkipsWithoutBackoff) {
  Scaler scaler{.scale = 16, .good = 7, .bad = 1, .bad_limit = 2};
  scaler.Step(kLossAlone);
  EXPECT_EQ(scaler.scale, 16);
  EXPECT_EQ(scaler.good, 7);
  EXPECT_EQ(scaler.bad, 1);
  EXPECT_EQ(scaler.skipped, 1);
  EXPECT_EQ(scaler.consecutive, 1);
}

TEST(LossScale, StaticScaleNeverMoves) {
  Scaler scaler{.scale = 128, .interval = 1, .dynamic = false};
  scaler.Step(kFinite);
  scaler.Step(kOverflow);
  EXPECT_EQ(scaler.scale, 128);
  EXPECT_EQ(scaler.skipped, 1);
  scaler.Step(kFinite);
  EXPECT_EQ(scaler.consecutive, 0);
}

TEST(LossScale, WithoutSkippingNothingIsCounted) {
  Scaler scaler{.scale = 128, .dynamic = false, .skip = false};
  scaler.Step(kOverflow);
  EXPECT_EQ(scaler.skipped, 0);
  EXPECT_EQ(scaler.consecutive, 0);
}

TEST(AllFinite, Amp10FindsBadValuesAnywhere) {
  for (std::size_t size : {std::size_t{1}, std::size_t{7}, std::size_t{65537}}) {
    for (double bad : {kInfinity, -kInfinity, kNaN}) {
      for (std::size_t position : {std::size_t{0}, size / 2, size - 1}) {
        const Shape shape = {static_cast<std::int64_t>(size)};
        Values values(size, 1);
        const reference::Tensor good = F32(shape, values);
        values[position] = bad;
        const auto results = RunReference("all_finite", {}, {F32({}, {4}), F32({}, {1}), good, F32(shape, values)},
                                          {{DType::kBool, {}}, {DType::kI32, {}}});
        EXPECT_EQ(results[0].values[0], 0);
        EXPECT_EQ(results[1].values[0], 1);
      }
    }
  }
}

TEST(AllFinite, SeesOverflowOfTheUnscalingItself) {
  EXPECT_EQ(FirstBad(1, 3e38), -1);
  EXPECT_EQ(FirstBad(0.25, 3e38), 0);
}

TEST(AllFinite, TellsLossFromGradients) {
  EXPECT_EQ(FirstBad(1, 1, kNaN), -2);
  EXPECT_EQ(FirstBad(1, kNaN, kNaN), 0);
}

TEST(Unscale, Amp10UnscalesExactly) {
  EXPECT_EQ(RunOne("unscale", {}, {F32({1}, {4}), F32({}, {4})}, {1})[0], 1);
  EXPECT_EQ(RunReference("unscale", {}, {F16({1}, {0x1p-24}), F32({}, {65536})}, {{DType::kF32, {1}}})[0].values[0],
            0x1p-40);
}

}  // namespace
}  // namespace mpc::test
