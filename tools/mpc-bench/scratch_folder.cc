#include "tools/mpc-bench/scratch_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mpc::tools {

absl::StatusOr<ScratchFolder> ScratchFolder::Make() {
  std::error_code error;
  std::string name = (std::filesystem::temp_directory_path(error) / "mpc-bench-XXXXXX").string();
  if (error || ::mkdtemp(name.data()) == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("no temporary folder '", name, "': ", error ? error.message() : std::strerror(errno)));
  }
  return ScratchFolder(std::move(name));
}

ScratchFolder::ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}

ScratchFolder::~ScratchFolder() {
  std::error_code error;
  if (!path_.empty()) std::filesystem::remove_all(path_, error);
}

std::string ScratchFolder::Subfolder(const std::string& name) const {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(path_) / name;
  std::filesystem::create_directories(folder, error);
  return folder.string();
}

}  // namespace mpc::tools
