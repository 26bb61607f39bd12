#include "frontend/train/log_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mpc::internal {
namespace {

absl::Status SystemError(const char* what, const std::string& path, int error) {
  return absl::UnavailableError(
      absl::StrCat("cannot ", what, " ", path, ": ", std::error_code(error, std::generic_category()).message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<LogFile>> LogFile::Open(const std::string& path, bool append) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error) return SystemError("make the folder", folder.string(), error.value());
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (append ? 0 : O_TRUNC), 0666);
  if (file < 0) return SystemError("open", path, errno);
  return std::unique_ptr<LogFile>(new LogFile(path, file));
}

LogFile::LogFile(std::string path, int file) : path_(std::move(path)), file_(file) {}

LogFile::~LogFile() { ::close(file_); }

absl::Status LogFile::Write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file_, text.data(), text.size());
    if (written < 0 && errno != EINTR) return SystemError("write", path_, errno);
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace mpc::internal
