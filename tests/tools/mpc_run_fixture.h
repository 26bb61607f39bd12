// mpc-run from outside, with files that mpc-train makes.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/tools/tool_runner.h"

namespace mpc::tools {

inline ToolResult Train(std::vector<std::string> arguments) {
  arguments.push_back("--threads=1");
  return RunTool(MPC_TRAIN, arguments);
}
inline ToolResult RunPackage(const std::vector<std::string>& arguments) { return RunTool(MPC_RUN, arguments); }

class MpcRun : public testing::Test {
 protected:
  /// The path of a package.
  std::string Emit(std::vector<std::string> arguments, const std::string& name = "net.mpcx") {
    const std::string path = folder_.File(name);
    arguments.push_back("--emit=" + path);
    const ToolResult result = Train(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_THAT(result.output, testing::HasSubstr("wrote " + path));
    return path;
  }
  std::string File(const std::string& name) const { return folder_.File(name); }

  TemporaryFolder folder_;
};

}  // namespace mpc::tools
