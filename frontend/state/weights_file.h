// Weights on disk: one file, a folder, or shards that an index lists. Not part of the public API.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "frontend/state/safetensors.h"

namespace mpc::internal {

inline constexpr char kWeightsName[] = "model.safetensors";
inline constexpr char kIndexName[] = "model.safetensors.index.json";

/// Reads `path`: a safetensors file, an index of shards ("*.index.json"), or a folder with a file or an index of
/// Hugging Face's names. Shards lie at or below the index's folder. Metadata of shards are left out. Errors
/// (INVALID_ARGUMENT) list all that is wrong with an index and its shards. A path leaves the folder, a shard cannot be
/// read, or an entry is not where the index says.
absl::StatusOr<Safetensors> ReadWeightsFile(const std::string& path);

}  // namespace mpc::internal
