// NumPy's .npz archives: ZIP files of .npy files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace mpc::data::internal {

/// One file of an archive.
struct ArchiveMember {
  std::string name;
  std::vector<std::uint8_t> content;
};

/// The members in the order of the archive's directory, stored or deflated. Errors (INVALID_ARGUMENT) name `origin`: no
/// ZIP file, a truncated or damaged one, encryption, other methods, and archives of 4 GiB or more.
absl::StatusOr<std::vector<ArchiveMember>> ParseArchive(absl::Span<const std::uint8_t> content,
                                                        const std::string& origin);

}  // namespace mpc::data::internal
