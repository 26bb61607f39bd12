// The key of a compiled step: whatever the Program follows from tells two steps apart.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "frontend/compiled_step.h"

namespace mpc::internal {
namespace {

TEST(StepKey, DiffersWithEachOptionThatTheProgramFollowsFrom) {
  using Change = std::function<void(StepOptions&)>;
  const std::map<std::string, Change> changes = {
      {"nothing", [](StepOptions&) {}},
      {"level", [](StepOptions& options) { options.compile.level = "O2"; }},
      {"allow softmax", [](StepOptions& options) { options.compile.allow = {"softmax"}; }},
      {"deny softmax", [](StepOptions& options) { options.compile.deny = {"softmax"}; }},
      {"infer softmax", [](StepOptions& options) { options.compile.infer = {"softmax"}; }},
      {"clear softmax", [](StepOptions& options) { options.compile.clear = {"softmax"}; }},
      {"allow two",
       [](StepOptions& options) {
         options.compile.allow = {"softmax", "exp"};
       }},
      {"assignment",
       [](StepOptions& options) {
         options.compile.assignment = {{"net/fc#matmul.0", "f16"}};
       }},
      {"memory rate", [](StepOptions& options) { options.compile.rates.bytes_per_second = 1e10; }},
      {"another memory rate", [](StepOptions& options) { options.compile.rates.bytes_per_second = 1e10 + 1; }},
      {"low rate", [](StepOptions& options) { options.compile.rates.low_flops = 1e10; }},
      {"f32 rate", [](StepOptions& options) { options.compile.rates.f32_flops = 1e10; }},
      {"dispatch", [](StepOptions& options) { options.compile.rates.seconds_per_operation = 1e-6; }},
      {"recompute", [](StepOptions& options) { options.compile.recompute = 2; }},
      {"packed weights", [](StepOptions& options) { options.compile.plan.keep_packed_weights = false; }},
      {"flat buffers", [](StepOptions& options) { options.compile.plan.flat_share = -1; }},
  };
  std::map<std::string, std::string> seen;
  for (const auto& [name, change] : changes) {
    StepOptions options;
    change(options);
    const auto [other, is_new] = seen.emplace(StepKey(nullptr, {}, options), name);
    EXPECT_TRUE(is_new) << name << " has the key of " << other->second;
  }
}

}  // namespace
}  // namespace mpc::internal
