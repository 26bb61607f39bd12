// The command-line parser of the tools.
#include "tools/support/flag_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/version.h"

namespace mpc::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Values {
  std::string text = "one";
  std::int64_t number = 3;
  std::optional<double> rate;
  bool on = false;
};

absl::StatusOr<std::vector<std::string>> Parse(Values& values, std::vector<const char*> arguments) {
  FlagSet flags("tool", "NAME [flags]", "Does something.");
  flags.Text("some-text", "TEXT", "A text.", &values.text);
  flags.Integer("number", 1, 9, "A number.", &values.number);
  flags.Number("rate", 0, "A rate.", &values.rate);
  flags.Switch("on", "A switch.", &values.on);
  arguments.insert(arguments.begin(), "tool");
  return flags.Parse(static_cast<int>(arguments.size()), arguments.data());
}

TEST(FlagSet, TakesValuesAfterAnEqualsSignOrASpace) {
  Values values;
  ASSERT_TRUE(Parse(values, {"--some-text=a=b", "--number", "7", "--rate=1e-3"}).ok());
  EXPECT_EQ(values.text, "a=b");
  EXPECT_EQ(values.number, 7);
  EXPECT_EQ(values.rate, 1e-3);
}

TEST(FlagSet, ReadsUnderscoresAsDashes) {
  Values values;
  ASSERT_TRUE(Parse(values, {"--some_text=x"}).ok());
  EXPECT_EQ(values.text, "x");
}

TEST(FlagSet, SwitchesTakeNoFollowingArgument) {
  Values values;
  absl::StatusOr<std::vector<std::string>> positional = Parse(values, {"--on", "name"});
  ASSERT_TRUE(positional.ok());
  EXPECT_THAT(*positional, ElementsAre("name"));
  EXPECT_TRUE(values.on);
  ASSERT_TRUE(Parse(values, {"--on=false"}).ok());
  EXPECT_FALSE(values.on);
}

TEST(FlagSet, EverythingIsPositionalAfterTwoDashes) {
  Values values;
  absl::StatusOr<std::vector<std::string>> positional = Parse(values, {"a", "--", "--on"});
  ASSERT_TRUE(positional.ok());
  EXPECT_THAT(*positional, ElementsAre("a", "--on"));
}

TEST(FlagSet, ErrorsNameTheFlagAndWhatItTakes) {
  Values values;
  EXPECT_THAT(std::string(Parse(values, {"--number=10"}).status().message()),
              HasSubstr("--number: '10' is not a whole number from 1 to 9"));
  EXPECT_EQ(ParseInteger("-1", 0, kNoLimit).status().message(), "'-1' is not a whole number of at least 0");
  EXPECT_EQ(ParseInteger("18446744073709551616", 0, kNoLimit).status().message(),
            "'18446744073709551616' is not a whole number from 0 to 9223372036854775807");
  EXPECT_THAT(std::string(Parse(values, {"--rate=inf"}).status().message()), HasSubstr("--rate: 'inf'"));
  EXPECT_THAT(std::string(Parse(values, {"--rate"}).status().message()), HasSubstr("--rate needs a value"));
  EXPECT_EQ(values.number, 3);
}

TEST(FlagSet, SuggestsTheNearestFlags) {
  const auto message = [](const char* argument) {
    Values values;
    return std::string(Parse(values, {argument}).status().message());
  };
  EXPECT_EQ(message("--nmber=3"), "unknown flag '--nmber'; did you mean --number?");
  EXPECT_EQ(message("--unmber"), "unknown flag '--unmber'; did you mean --number?");
  EXPECT_EQ(message("-rate"), "unknown flag '-rate'; did you mean --rate?");
  EXPECT_EQ(message("--some_txt"), "unknown flag '--some_txt'; did you mean --some-text?");
  EXPECT_EQ(message("--text"), "unknown flag '--text'; did you mean --some-text?") << "a part of the name";
  EXPECT_EQ(message("--in"), "unknown flag '--in'; did you mean --on?");
  EXPECT_EQ(message("--elsewhere"), "unknown flag '--elsewhere'");
  EXPECT_EQ(message("-x"), "unknown flag '-x'");
  EXPECT_EQ(message("--=3"), "unknown flag '--'");
}

TEST(FlagSet, FindsAGivenFlagThatNoModeReads) {
  constexpr unsigned kTests = 1, kTrains = 2, kModes = kTests | kTrains, kHere = 4;
  const auto unread = [&](unsigned readers, std::vector<const char*> arguments) {
    Values values;
    FlagSet flags("tool", "[flags]", "Does something.");
    flags.Text("some-text", "TEXT", "A text.", &values.text);
    flags.Integer("number", 1, 9, "A number.", &values.number);
    flags.Switch("on", "A switch.", &values.on);
    flags.Limit(kModes, kTrains, {"number", "on"});
    arguments.insert(arguments.begin(), "tool");
    EXPECT_TRUE(flags.Parse(static_cast<int>(arguments.size()), arguments.data()).ok());
    EXPECT_FALSE(flags.Given("nothing"));
    return flags.FirstUnread(readers);
  };
  EXPECT_EQ(unread(kTrains, {"--number=3", "--on", "--some-text=a"}), "");
  EXPECT_EQ(unread(kTests, {"--some-text=a"}), "") << "without a limit it is read";
  EXPECT_EQ(unread(kTests, {"--some-text=a", "--number=3"}), "--number");
  EXPECT_EQ(unread(kTests, {"--number=3", "--on"}), "--number") << "its default counts as given too";
  EXPECT_EQ(unread(kTests, {"--on"}), "--on");
  EXPECT_EQ(unread(kTests, {"--on", "--on=false"}), "") << "as if it were left out";
  EXPECT_EQ(unread(kTests, {}), "");
  EXPECT_EQ(unread(kModes, {"--number=3"}), "") << "modes that do not exclude each other";
  EXPECT_EQ(unread(kHere, {"--number=3"}), "") << "a dimension that limits nothing";
}

TEST(FlagSet, VersionIsThatOfTheProject) {
  FlagSet flags("tool", "[flags]", "Does things.");
  const char* const argv[] = {"tool", "--version"};
  ASSERT_TRUE(flags.Parse(2, argv).ok());
  EXPECT_TRUE(flags.help_requested());
  EXPECT_EQ(flags.Help(), "tool " MPC_VERSION "\n");
}

TEST(FlagSet, HelpShowsDefaultsAndIndentsEveryLine) {
  std::int64_t number = 3;
  FlagSet flags("tool", "[flags]", "Does something.");
  flags.Integer("number", 1, 9, "A number.\nIt is small.", &number);
  EXPECT_THAT(flags.Help(), HasSubstr("--number=N\n      A number.\n      It is small. (default 3)"));
}

}  // namespace
}  // namespace mpc::tools
