#include "tools/support/launch_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace mpc::tools {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

Clock::time_point At(int milliseconds) { return Clock::time_point() + std::chrono::milliseconds(milliseconds); }

TEST(LaunchTimes, ALaunchLastsFromItsBeginningWhereTheHostWaits) {
  LaunchTimes times(/*runs_ahead=*/false);
  times.Begin(At(100));
  times.Add(1, At(110));
  times.Begin(At(150));
  times.Add(2, At(190));
  times.Finish(At(500));
  EXPECT_THAT(times.TakeStepSeconds(), ElementsAre(DoubleEq(0.010), DoubleEq(0.020), DoubleEq(0.020)));
}

// The first launch returns at once, and the wait behind the last one is the time of the last one.
TEST(LaunchTimes, ALaunchLastsFromTheEndOfTheOneBeforeWhereTheDeviceRunsAhead) {
  LaunchTimes times(/*runs_ahead=*/true);
  times.Begin(At(100));
  times.Add(1, At(101));
  times.Begin(At(102));
  times.Add(2, At(120));
  times.Begin(At(121));
  times.Add(1, At(160));
  times.Finish(At(180));
  EXPECT_THAT(times.TakeStepSeconds(), ElementsAre(DoubleEq(0.020), DoubleEq(0.020), DoubleEq(0.020), DoubleEq(0.020)));
}

}  // namespace
}  // namespace mpc::tools
