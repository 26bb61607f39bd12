// The key of a compiled step: whatever the Program follows from tells two steps apart.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "frontend/graph/compiled_step.h"

namespace mpc::internal {
namespace {

using compiler::CompileOptions;
using compiler::OptionInfo;
using compiler::OptionKind;

// Gives an option another value.
void Change(bool& option) { option = !option; }
void Change(std::string& option) { option += "x"; }
void Change(double& option) { option += 1; }
void Change(std::int64_t& option) { ++option; }
void Change(unsigned& option) { ++option; }
void Change(std::optional<bool>& option) { option = true; }
void Change(std::vector<std::string>& option) { option.emplace_back("softmax"); }
void Change(compiler::PrecisionMap& option) { option["net/fc#matmul.0"] = "f16"; }

std::string KeyOf(const CompileOptions& compile) {
  StepOptions options;
  options.compile = compile;
  return StepKey(nullptr, {}, options);
}

TEST(StepKey, DiffersWithEachOptionThatTheProgramFollowsFrom) {
  const CompileOptions defaults;
  int count = 0;
  compiler::visitOptions(defaults, [&](const OptionInfo&, const auto&) { ++count; });
  std::map<std::string, std::string> seen = {{KeyOf(defaults), "the defaults"}};
  for (int changed = 0; changed < count; ++changed) {
    CompileOptions options;
    std::string name;
    OptionKind kind = OptionKind::OfProgram;
    int index = 0;
    compiler::visitOptions(options, [&](const OptionInfo& each, auto& option) {
      if (index++ != changed) return;
      Change(option);
      name = each.name;
      kind = each.kind;
    });
    if (kind != OptionKind::OfCompilation) {
      const auto [other, is_new] = seen.emplace(KeyOf(options), name);
      EXPECT_TRUE(is_new) << name << " has the key of " << other->second;
    } else {
      EXPECT_EQ(KeyOf(options), KeyOf(defaults)) << name;
    }
  }
}

TEST(StepKey, DiffersWithWhatLossesRecord) {
  StepOptions options;
  const std::string by_rows = StepKey(nullptr, {}, options);
  options.weighs_elements = true;
  EXPECT_NE(StepKey(nullptr, {}, options), by_rows);
}

TEST(StepKey, TellsNeighbouringValuesApart) {
  CompileOptions one, two;
  one.rates.bytes_per_second = 1e10;
  two.rates.bytes_per_second = 1e10 + 1;
  EXPECT_NE(KeyOf(one), KeyOf(two));
  one = {.allow = {"softmax", "exp"}};
  two = {.allow = {"softmax,exp"}};
  EXPECT_NE(KeyOf(one), KeyOf(two));
  one = {.allow = {"exp"}, .deny = {}};
  two = {.allow = {}, .deny = {"exp"}};
  EXPECT_NE(KeyOf(one), KeyOf(two));
  one = {.fusion = false};
  EXPECT_NE(KeyOf(one), KeyOf({}));
}

// Adding a member breaks this test until it is listed: the bindings are as many as the members.
TEST(CompileOptions, AreAllListed) {
  CompileOptions options;
  std::set<const void*> listed;
  compiler::visitOptions(
      options, [&](const OptionInfo& info, auto& option) { EXPECT_TRUE(listed.insert(&option).second) << info.name; });
  int position = 0;
  const auto expect_one = [&](const void* member) {
    EXPECT_TRUE(listed.contains(member)) << position;
    ++position;
  };
  const auto expect_listed = [&](const auto&... members) { (expect_one(&members), ...); };
  auto& [function, level, dtype, keep_batchnorm_fp32, loss_scale, skip, unscale, num_losses, accumulation_steps,
         processes, last_micro_step, gradients_mean, communication_dtype, bucket_mib, master_weights, allow, deny,
         infer, clear, rates, instrument, layout, fusion, head_chunks, pad_classes, conv_statistics, recompute, device,
         arch, memory_budget, plan, assignment, cache_dir, threads] = options;
  expect_listed(function, level, dtype, keep_batchnorm_fp32, loss_scale, skip, unscale, num_losses, accumulation_steps,
                processes, last_micro_step, gradients_mean, communication_dtype, bucket_mib, master_weights, allow,
                deny, infer, clear, instrument, layout, fusion, head_chunks, pad_classes, conv_statistics, recompute,
                device, arch, memory_budget, assignment, cache_dir, threads);
  auto& [tune, choice_cache, allow_tf32, allow_winograd, keep_packed_weights, flat_share] = plan;
  expect_listed(tune, choice_cache, allow_tf32, allow_winograd, keep_packed_weights, flat_share);
  auto& [bytes_per_second, low_flops, f32_flops, seconds_per_operation] = rates;
  expect_listed(bytes_per_second, low_flops, f32_flops, seconds_per_operation);
}

}  // namespace
}  // namespace mpc::internal
