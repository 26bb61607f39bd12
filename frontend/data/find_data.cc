#include "frontend/data/find_data.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mpc::data {

std::vector<std::string> DataFolders() {
  std::vector<std::string> folders;
  const char* variable = std::getenv("MPC_DATA_DIR");
  if (variable != nullptr && *variable != '\0') folders.emplace_back(variable);
  std::error_code error;
  const std::filesystem::path executable = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    const std::filesystem::path parent = executable.parent_path().parent_path();
    folders.push_back((parent / "data").string());
    folders.push_back((parent / "share" / "mpc" / "data").string());
  }
#ifdef MPC_SOURCE_DIR
  folders.push_back((std::filesystem::path(MPC_SOURCE_DIR) / "data").string());
#endif
  return folders;
}

absl::StatusOr<std::string> FindDataFile(absl::Span<const std::string> names, absl::Span<const std::string> folders) {
  std::vector<std::string> tried;
  for (const std::string& folder : folders) {
    for (const std::string& name : names) {
      std::string path = (std::filesystem::path(folder) / name).string();
      std::error_code error;
      if (std::filesystem::is_regular_file(path, error)) return path;
      tried.push_back(std::move(path));
    }
  }
  return absl::NotFoundError(
      absl::StrCat("data file ", absl::StrJoin(names, " or "), " not found; tried ", absl::StrJoin(tried, ", ")));
}

absl::StatusOr<std::string> FindDataFile(const std::string& name) {
  absl::StatusOr<std::string> path = FindDataFile({name}, DataFolders());
  if (path.ok()) return path;
  return absl::NotFoundError(absl::StrCat(path.status().message(), "; set MPC_DATA_DIR to the folder that holds it"));
}

}  // namespace mpc::data
