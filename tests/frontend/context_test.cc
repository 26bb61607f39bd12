// The list of the context's fields, and what follows from it: checks, names in messages, options of a compilation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "compiler/options/option_texts.h"
#include "frontend/graph/context_fields.h"

namespace mpc {
namespace {

using ::testing::HasSubstr;

// Gives a field another value that its range has.
void Change(bool& field) { field = !field; }
void Change(std::optional<bool>& field) { field = true; }
void Change(std::string& field) { field += "x"; }
template <typename Number>
void Change(Number& field) {
  ++field;
}

/// A context of `device` with another value of the field called `name`.
ContextOptions Changed(const std::string& device, const std::string& name) {
  ContextOptions options{.device = device};
  VisitContext(options, [&](const ContextField& field, auto& member) {
    if (name == field.name) Change(member);
  });
  return options;
}

std::vector<ContextField> Fields() {
  std::vector<ContextField> fields;
  const ContextOptions options;
  VisitContext(options, [&](const ContextField& field, const auto&) { fields.push_back(field); });
  return fields;
}

std::string Message(const ContextOptions& options, ContextNamer call = NameOfField) {
  return std::string(CheckContext(options, call).message());
}

// Adding a member breaks this test until it is listed: the bindings are as many as the members.
TEST(ContextFields, AreAllListed) {
  ContextOptions options;
  std::set<const void*> listed;
  VisitContext(options, [&](const ContextField& field, auto& member) {
    EXPECT_TRUE(listed.insert(&member).second) << field.name;
  });
  int position = 0;
  const auto expect_one = [&](const void* member) {
    EXPECT_TRUE(listed.contains(member)) << position;
    ++position;
  };
  const auto expect_listed = [&](const auto&... members) { (expect_one(&members), ...); };
  auto& [device, num_threads, fusion, memory_budget, head_chunks, pad_classes, mode, arch, graph, steps_per_launch,
         allow_tf32, allow_conv_statistics, allow_winograd, tune, choice_cache] = options;
  expect_listed(device, num_threads, fusion, memory_budget, head_chunks, pad_classes, mode, arch, graph,
                steps_per_launch, allow_tf32, allow_conv_statistics, allow_winograd, tune, choice_cache);
}

TEST(ContextFields, SetTheirOptionOfACompilationAndNoOther) {
  const std::map<std::string, std::string> defaults = compiler::optionTexts({});
  for (const ContextField& field : Fields()) {
    for (const bool of_device : {false, true}) {
      compiler::CompileOptions options;
      CopyOptions(Changed("cpu", field.name), of_device, options);
      std::set<std::string> changed;
      for (const auto& [name, text] : compiler::optionTexts(options)) {
        const auto before = defaults.find(name);
        if (before == defaults.end() || before->second != text) changed.insert(name);
      }
      std::set<std::string> expected;
      if (*field.option != '\0' && (of_device || field.reach == ContextReach::kEveryModel))
        expected.insert(field.option);
      EXPECT_EQ(changed, expected) << field.name;
    }
  }
}

TEST(ContextFields, OfOneDeviceAreRefusedOnTheOtherByTheCallersName) {
  int count = 0;
  for (const ContextField& field : Fields()) {
    if (*field.only_on == '\0') continue;
    ++count;
    const std::string other = std::string(field.only_on) == "cpu" ? "cuda" : "cpu";
    const ContextOptions options = Changed(other, field.name);
    EXPECT_THAT(Message(options), HasSubstr(absl::StrCat(field.name, " = ")));
    EXPECT_THAT(Message(options),
                HasSubstr(absl::StrCat(" and device = ", other, " contradict each other: only device \"", field.only_on,
                                       "\" has this option")));
    const ContextNamer namer = [](const ContextField& named, std::string_view text) {
      return absl::StrCat("<", named.name, "|", std::string(text), ">");
    };
    EXPECT_THAT(Message(options, namer), HasSubstr(absl::StrCat("<", field.name, "|")));
    EXPECT_THAT(Message(options, namer), HasSubstr(absl::StrCat(" and <device|", other, "> contradict")));
    EXPECT_EQ(Message(Changed(field.only_on, field.name)), "") << field.name;
  }
  EXPECT_EQ(count, 7);
}

TEST(ContextFields, AreGivenWhereTheyDifferFromTheirDefault) {
  for (const ContextField& changed : Fields()) {
    for (const auto& [field, text, is_given] : ContextValues(Changed("cpu", changed.name))) {
      EXPECT_EQ(is_given, std::string(field.name) == changed.name) << field.name << " = " << text;
    }
  }
}

TEST(CheckContext, TellsTheRangeOfANumber) {
  EXPECT_EQ(Message({.num_threads = -1}), "num_threads must be 0 (automatic) or more, got -1");
  EXPECT_EQ(Message({.memory_budget = -1}), "memory_budget must be 0 (none) or a number of bytes, got -1");
  EXPECT_EQ(Message({.head_chunks = 0}), "head_chunks must be from 1 (the head stays whole) to 4096, got 0");
  EXPECT_EQ(Message({.head_chunks = 4097}), "head_chunks must be from 1 (the head stays whole) to 4096, got 4097");
  EXPECT_EQ(Message({.steps_per_launch = 0}), "steps_per_launch must be from 1 to 64, got 0");
  EXPECT_EQ(Message({.device = "cuda", .steps_per_launch = 65}), "steps_per_launch must be from 1 to 64, got 65");
  EXPECT_EQ(Message({.memory_budget = 1 << 20, .head_chunks = 4096}), "");
}

TEST(CheckContext, TakesASwitchThatIsOffAndLeavesUnknownDevicesToSetContext) {
  EXPECT_EQ(Message({.pad_classes = false}), "");
  EXPECT_EQ(Message({.device = "cuda", .pad_classes = false}), "");
  EXPECT_EQ(Message({.device = "tpu", .allow_tf32 = true}), "");
  EXPECT_THAT(Message({.graph = true}), HasSubstr("graph = on and device = cpu contradict"));
  EXPECT_THAT(Message({.device = "cuda", .graph = false, .steps_per_launch = 2}),
              HasSubstr("steps_per_launch = 2 and graph = off contradict"));
}

}  // namespace
}  // namespace mpc
