// A file that is mapped into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace mpc::data::internal {

/// The pages are read when they are touched. The file must stay as it is while it is mapped.
class MappedFile {
 public:
  /// Errors: NOT_FOUND if there is no such file; UNAVAILABLE, with the system's reason; INVALID_ARGUMENT for what is no
  /// regular file.
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  absl::Span<const std::uint8_t> content() const { return {static_cast<const std::uint8_t*>(pages_), bytes_}; }

 private:
  MappedFile(void* pages, std::size_t bytes) : pages_(pages), bytes_(bytes) {}

  void* pages_;  ///< null where the file is empty
  std::size_t bytes_;
};

}  // namespace mpc::data::internal
