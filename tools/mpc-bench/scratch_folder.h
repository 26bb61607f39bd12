// A folder of its own that goes with the object.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace mpc::tools {

/// A process that a signal ends leaves its folder behind. A lock on a file in it says that its owner lives. The next
/// folder that is made removes those of dead owners.
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
  ScratchFolder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}
  std::string path_;
  int lock_;  ///< descriptor of the locked file; -1: none
};

}  // namespace mpc::tools
