// GradScaler beside torch.amp.GradScaler on scripted overflows: scales, trackers, skipped steps, bit for bit.
// tools/parity/make_grad_scaler_goldens.py makes the golden values.
#include "tests/training/goldens_file.h"
#include "tests/training/scaler_steps.h"

namespace mpc::testing {
namespace {

TEST(GradScalerParity, TrajectoriesEqualPyTorchs) {
  const std::vector<GoldenCase> scenarios = ReadGoldens(std::string(MPC_GOLDENS) + "/grad_scaler.txt", "scenario");
  ASSERT_EQ(scenarios.size(), 8u);
  for (const GoldenCase& scenario : scenarios) {
    SCOPED_TRACE(scenario.name);
    ASSERT_EQ(scenario.options.size(), 4u);
    TwoOptimizerScalerStep<amp::GradScaler> step{
        amp::GradScaler({.init_scale = scenario.options[0],
                         .growth_factor = scenario.options[1],
                         .backoff_factor = scenario.options[2],
                         .growth_interval = static_cast<std::int64_t>(scenario.options[3])})};
    std::int64_t skipped = 0;
    for (std::size_t i = 0; i < scenario.lines.size(); ++i) {
      const std::vector<double>& golden = scenario.lines[i];
      ASSERT_EQ(golden.size(), 6u);
      MPC_ASSERT_OK(step.Run(static_cast<float>(golden[0]), static_cast<float>(golden[1])));
      ASSERT_EQ(step.scaler.GetScale(), golden[2]) << "step " << i;
      ASSERT_EQ(step.scaler.StateDict().at("_growth_tracker"), golden[3]) << "step " << i;
      ASSERT_EQ(step.first.weight.Value()->Item<double>(), golden[4]) << "step " << i;
      ASSERT_EQ(step.second.weight.Value()->Item<double>(), golden[5]) << "step " << i;
      skipped += !std::isfinite(golden[0]) || !std::isfinite(golden[1]);
    }
    EXPECT_EQ(step.scaler.scaler().skipped_steps(), skipped);
  }
}

}  // namespace
}  // namespace mpc::testing
