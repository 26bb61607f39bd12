// Checkpoint files: safetensors whose content is guarded by a checksum. Not part of the public API.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "frontend/state/safetensors.h"

namespace mpc::internal {

/// CRC-32 of names, types, shapes, bytes and metadata in name order, as eight hexadecimal digits. The entry "mpc_crc32"
/// is left out. The checksum is the same for the same content, however a writer orders it.
std::string ContentChecksum(const Safetensors& content);

/// Writes `content` with the metadata entry "mpc_crc32". Errors: those of SaveSafetensors.
absl::Status WriteCheckpointFile(const std::string& path, Safetensors content);

/// Reads and checks a whole file; one without a checksum comes from elsewhere and is taken as it is. Errors: those of
/// LoadSafetensors; INVALID_ARGUMENT where content and checksum disagree.
absl::StatusOr<Safetensors> ReadCheckpointFile(const std::string& path);

}  // namespace mpc::internal
