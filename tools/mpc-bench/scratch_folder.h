// A folder of its own that goes with the object.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace mpc::tools {

class ScratchFolder {
 public:
  /// Errors: no folder can be made where temporary files go.
  static absl::StatusOr<ScratchFolder> Make();
  ScratchFolder(ScratchFolder&& other) noexcept;
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();

  const std::string& path() const { return path_; }
  /// A folder in it, made if it is not there.
  std::string Subfolder(const std::string& name) const;

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace mpc::tools
