// NumPy's .npz archives: ZIP files of .npy files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace mpc::data::internal {

/// One file of an archive.
struct ArchiveMember {
  std::string name;
  absl::Span<const std::uint8_t> packed;              ///< in the archive
  std::optional<std::vector<std::uint8_t>> inflated;  ///< the content of a deflated member

  absl::Span<const std::uint8_t> content() const { return inflated ? *inflated : packed; }
};

/// Whether the bytes of stored members are compared with their checksums, which reads all of them. Deflated members
/// always are.
enum class StoredMembers { kVerified, kUnread };

/// The members in the order of the archive's directory, stored or deflated; `content` must outlive them. Errors
/// (INVALID_ARGUMENT) name `origin`: no ZIP file, a truncated or damaged one, members that overlap, encryption, other
/// methods, and archives of 4 GiB or more.
absl::StatusOr<std::vector<ArchiveMember>> ParseArchive(absl::Span<const std::uint8_t> content,
                                                        const std::string& origin,
                                                        StoredMembers stored = StoredMembers::kVerified);

}  // namespace mpc::data::internal
