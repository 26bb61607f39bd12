#include "tools/support/json_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "runtime/atomic_file.h"

namespace mpc::tools {

absl::Status WriteJsonFile(const std::string& path, const Json& value) {
  const std::string text = value.dump(2) + "\n";
  const absl::Span<const std::uint8_t> bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  return runtime::WriteFileAtomically(path, {bytes});
}

absl::Status CheckWritable(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is a folder, not a file"));
  }
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  if (!std::filesystem::is_directory(folder, error)) {
    return absl::NotFoundError(
        absl::StrCat("'", path, "' cannot be written: there is no folder '", folder.string(), "'"));
  }
  if (::access(folder.c_str(), W_OK) != 0) {
    return absl::PermissionDeniedError(absl::StrCat("'", path, "' cannot be written: ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace mpc::tools
