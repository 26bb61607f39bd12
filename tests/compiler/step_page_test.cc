// The page of a step: texts that could end its script, recomputed operations, and what it refuses.
#include "compiler/report/step_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_split.h"
#include "compiler/driver/compiler.h"
#include "compiler/module/parse_module.h"

namespace mpc::compiler {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kHostile[] = R"(
#hostile = #mpc.scope<"net/</script><img src=x>/\E2\80\A8<!--", network>
func.func @predict(%x: tensor<2x4xf32> {mpc.state = #mpc.state<input, "x">},
                   %w: tensor<4x3xf32> {mpc.state = #mpc.state<parameter, "dense.weight">})
    -> (tensor<2x3xf32> {mpc.state = #mpc.state<output, "y">}) attributes {mpc.step} {
  %y = mpc.matmul %x, %w {mpc.scope = #hostile} : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %z = mpc.relu %y {mpc.recomputed, mpc.scope = #hostile} : tensor<2x3xf32>
  return %z : tensor<2x3xf32>
}
)";

CompileResult CompileHostile(const std::string& level) {
  CompileOptions options;
  options.function = "predict";
  options.level = level;
  options.fusion = false;
  return Compile(ParseModule(kHostile).value(), options).value();
}

nlohmann::json DataOf(const std::string& page) {
  const std::vector<std::string> parts = absl::StrSplit(page, "<script type=\"application/json\" id=\"data\">");
  EXPECT_EQ(parts.size(), 2u);
  return nlohmann::json::parse(parts.back().substr(0, parts.back().find("</script>")));
}

TEST(StepPage, NamesCannotEndTheScriptThatHoldsThem) {
  const CompileResult result = CompileHostile("O2");
  const absl::StatusOr<std::string> page = StepPage("</script><b>\xff", {{"O2", &result, ""}}, 0);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(*page, Not(HasSubstr("<img")));
  EXPECT_THAT(*page, Not(HasSubstr("</script><b>")));
  const nlohmann::json data = DataOf(*page);
  EXPECT_EQ(data["network"], "</script><b>\uFFFD");
  const nlohmann::json& matmul = data["levels"][0]["operations"][0];
  EXPECT_EQ(data["texts"][matmul[0].get<std::size_t>()], "matmul");
  EXPECT_EQ(data["texts"][matmul[1].get<std::size_t>()], "net/</script><img src=x>/\u2028<!--");
}

TEST(StepPage, NeedsNothingButItself) {
  const CompileResult result = CompileHostile("O0");
  const std::string page = StepPage("net", {{"O0", &result, ""}}, 0).value();
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  for (const char* reference : {"src=\"", "@import", "url(", "<link"}) EXPECT_THAT(page, Not(HasSubstr(reference)));
  for (const char* part : {"/* page.css */", "/* page.js */", "/* data */"}) EXPECT_THAT(page, Not(HasSubstr(part)));
}

TEST(StepPage, MarksWhatIsComputedAgain) {
  const CompileResult result = CompileHostile("O0");
  const nlohmann::json operations =
      DataOf(StepPage("net", {{"O0", &result, ""}}, 0).value())["levels"][0]["operations"];
  ASSERT_EQ(operations.size(), 2u);
  EXPECT_EQ(operations[0][11], 0);
  EXPECT_EQ(operations[1][11], 1);
}

TEST(StepPage, ALevelThatDoesNotCompileHasItsReason) {
  const CompileResult result = CompileHostile("O2");
  const std::vector<PageLevel> levels = {{"O2", &result, ""}, {"O3", nullptr, "there is no O3 here"}};
  const nlohmann::json data = DataOf(StepPage("net", levels, 0).value());
  EXPECT_EQ(data["levels"][1], (nlohmann::json{{"level", "O3"}, {"why_not", "there is no O3 here"}}));
  EXPECT_EQ(StepPage("net", levels, 1).status().message(),
            "a page of 2 levels cannot open number 1: it was not compiled");
  EXPECT_EQ(StepPage("net", {}, 0).status().message(), "a page of 0 levels cannot open number 0");
}

}  // namespace
}  // namespace mpc::compiler
