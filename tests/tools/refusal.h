// How a tool refuses what it cannot do.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/tools/tool_runner.h"

namespace mpc::tools {

/// Exit codes, as the help promises them: something is wrong with files or the machine; with the command line.
constexpr int kFailure = 1;
constexpr int kBadUsage = 2;

struct BadUsage {
  std::vector<std::string> arguments;
  std::vector<std::string> message;  ///< parts of it
};

/// A clear error of a few lines, and nothing else.
inline void ExpectRefused(const ToolResult& result, int exit_code, const std::vector<std::string>& message) {
  EXPECT_EQ(result.exit_code, exit_code);
  for (const std::string& part : message) EXPECT_THAT(result.error, testing::HasSubstr(part));
  // A command line needs no explaining; behind it the tool says how to get help.
  EXPECT_LE(std::count(result.error.begin(), result.error.end(), '\n'), exit_code == kBadUsage ? 2 : 10)
      << result.error;
  EXPECT_EQ(result.output, "");
}

}  // namespace mpc::tools
