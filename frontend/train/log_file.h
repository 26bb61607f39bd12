// A file that grows line by line. Not part of the public API.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mpc::internal {

/// What Write has taken is in the file when it returns: a process that is killed later loses none of it.
class LogFile {
 public:
  /// Opens `path` for appending. `append` false: its old content is dropped. Folders that are missing are made. Errors:
  /// the system's, with the path.
  static absl::StatusOr<std::unique_ptr<LogFile>> Open(const std::string& path, bool append);
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  /// Appends `text`, a whole line or record. Errors: the system's, with the path.
  absl::Status Write(std::string_view text);
  const std::string& path() const { return path_; }

 private:
  LogFile(std::string path, int file);

  std::string path_;
  int file_;
};

}  // namespace mpc::internal
