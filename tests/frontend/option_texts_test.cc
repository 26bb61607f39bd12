// The options of a compilation survive a file.
#include "compiler/options/option_texts.h"

#include <gmock/gmock.h>

#include <cmath>

namespace mpc::compiler {
namespace {

using ::testing::HasSubstr;

/// Gives every option a value that is not its default.
struct Unlike {
  void operator()(std::string& value) const { value = "text with = and\ttabs"; }
  void operator()(bool& value) const { value = !value; }
  void operator()(std::int64_t& value) const { value += 7; }
  void operator()(unsigned& value) const { value += 7; }
  void operator()(double& value) const { value = std::nextafter(value + 0.1, 9.0); }
  void operator()(std::optional<bool>& value) const { value = true; }
  void operator()(std::vector<std::string>& value) const { value = {"conv2d", "net/fc 1"}; }
  void operator()(PrecisionMap& value) const { value = {{"net/fc#matmul.0", "f16"}, {"net#relu.1", "f32"}}; }
};

TEST(OptionTexts, KeepEveryOptionThatChangesTheProgram) {
  CompileOptions options;
  visitOptions(options, [](const OptionInfo& info, auto& value) {
    if (info.kind != OptionKind::OfCompilation) Unlike()(value);
  });
  const absl::StatusOr<CompileOptions> read = parseOptionTexts(optionTexts(options));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(programKey(*read), programKey(options));
  EXPECT_NE(programKey(*read), programKey(CompileOptions()));
  EXPECT_EQ(programKey(*parseOptionTexts(optionTexts(CompileOptions()))), programKey(CompileOptions()));
}

TEST(OptionTexts, NameWhatIsNoOptionOrNoValue) {
  EXPECT_THAT(std::string(parseOptionTexts({{"levle", "O1"}}).status().message()),
              HasSubstr("a compilation has no option \"levle\""));
  EXPECT_THAT(std::string(parseOptionTexts({{"recompute", "many"}}).status().message()),
              HasSubstr("the option \"recompute\" of a compilation cannot be 'many'"));
}

}  // namespace
}  // namespace mpc::compiler
