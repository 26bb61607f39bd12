// JSON files that a reader sees complete or not at all.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"

namespace mpc::tools {

/// Keeps the order in which keys were added.
using Json = nlohmann::ordered_json;

/// Writes `value`, indented, with a final newline. NaN and infinities become null. Errors:
/// runtime::WriteFileAtomically's.
absl::Status WriteJsonFile(const std::string& path, const Json& value);

/// Whether a file can be made at `path`, to fail before the work that it would hold. Errors: the folder is missing, is
/// no folder or may not be written to; `path` is a folder.
absl::Status CheckWritable(const std::string& path);

}  // namespace mpc::tools
