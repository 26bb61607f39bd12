// The key of a compiled step: whatever the Program follows from tells two steps apart.
#include "frontend/graph/step_key.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/communicator.h"

namespace mpc::internal {
namespace {

using compiler::CompileOptions;
using compiler::OptionInfo;
using compiler::OptionKind;

/// A group of one process.
class Alone final : public Communicator {
 public:
  std::string_view transport() const override { return "none"; }
  int rank() const override { return 0; }
  int size() const override { return 1; }
  absl::Status status() const override { return absl::OkStatus(); }
  absl::Status AllReduce(absl::Span<const ReducedPart>) override { return absl::OkStatus(); }
  absl::Status ReduceScatter(const ReducedPart&) override { return absl::OkStatus(); }
  absl::Status AllGather(const void*, void*, std::size_t) override { return absl::OkStatus(); }
  absl::Status Broadcast(void*, std::size_t, int) override { return absl::OkStatus(); }
  absl::Status Barrier() override { return absl::OkStatus(); }
};

// Gives an option another value.
void Change(bool& option) { option = !option; }
void Change(std::string& option) { option += "x"; }
void Change(double& option) { option += 1; }
void Change(std::int64_t& option) { ++option; }
void Change(unsigned& option) { ++option; }
void Change(int& option) { ++option; }
void Change(std::optional<double>& option) { option = 2; }
void Change(std::optional<DType>& option) { option = DType::kF16; }
void Change(std::vector<const nn::Cell*>& option) { option.push_back(nullptr); }
void Change(std::vector<Parameter>& option) { option.emplace_back(); }
void Change(RngState& option) { option = MakeRngState(1); }
void Change(std::shared_ptr<PassState>& option) { option = std::make_shared<PassState>(); }
void Change(std::shared_ptr<Communicator>& option) { option = std::make_shared<Alone>(); }
void Change(std::function<void(compiler::Module&)>& option) {
  option = [](compiler::Module&) {};
}
void Change(CompileOptions& option) { option.level = "O1"; }
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

TEST(StepKey, DiffersWithEachStepOptionOfTheProgramAndWithNoOther) {
  StepOptions defaults;
  int count = 0;
  VisitStepOptions(defaults, [&](auto, const auto&) { ++count; });
  std::map<std::string, std::string> seen = {{StepKey(nullptr, {}, defaults), "the defaults"}};
  for (int changed = 0; changed < count; ++changed) {
    StepOptions options;
    std::string name;
    bool is_of_program = false;
    int index = 0;
    VisitStepOptions(options, [&](auto info, auto& option) {
      if (index++ != changed) return;
      Change(option);
      name = info.name;
      is_of_program = info.kKind == StepOptionKind::kProgram;
    });
    const std::string key = StepKey(nullptr, {}, options);
    if (is_of_program) {
      const auto [other, is_new] = seen.emplace(key, name);
      EXPECT_TRUE(is_new) << name << " has the key of " << other->second;
    } else {
      EXPECT_EQ(key, StepKey(nullptr, {}, defaults)) << name;
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

// The same of the options of a step: each member is listed by itself, those of `load` one by one.
TEST(StepOptions, AreAllListed) {
  StepOptions options;
  std::set<const void*> listed;
  VisitStepOptions(options, [&](auto info, auto& option) { EXPECT_TRUE(listed.insert(&option).second) << info.name; });
  std::size_t members = 0;
  const auto expect_one = [&](const void* member) {
    EXPECT_TRUE(listed.contains(member)) << members;
    ++members;
  };
  const auto expect_listed = [&](const auto&... each) { (expect_one(&each), ...); };
  auto& [name, training, networks, network_outputs, rng, scaler, pass_state, input_names, output_names, optimizers,
         divided_scale, weighs_elements, records, compile, load, edit] = options;
  expect_listed(name, training, networks, network_outputs, rng, scaler, pass_state, input_names, output_names,
                optimizers, divided_scale, weighs_elements, records, compile, edit);
  auto& [graph, steps_per_launch, branches, communicator] = load;
  expect_listed(graph, steps_per_launch, branches, communicator);
  EXPECT_EQ(members, listed.size());
}

}  // namespace
}  // namespace mpc::internal
