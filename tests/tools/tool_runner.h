// Running the built tools as a user does.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace mpc::tools {

struct ToolResult {
  int exit_code = -1;  ///< 128 + n if signal n ended it
  std::string output;
  std::string error;
};

/// Runs `program` with `arguments` and waits. MPC_DATA_DIR is not passed on.
ToolResult RunTool(const std::string& program, const std::vector<std::string>& arguments);

/// A folder of its own that goes with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path() const { return path_.string(); }
  std::string File(const std::string& name) const { return (path_ / name).string(); }
  /// Names of what it holds, sorted.
  std::vector<std::string> Content() const;

 private:
  std::filesystem::path path_;
};

/// Empty if there is no such file.
std::string ReadFile(const std::string& path);
void WriteFile(const std::string& path, const std::string& content);
/// Null if the file is missing or no JSON.
nlohmann::json ReadJson(const std::string& path);

}  // namespace mpc::tools
