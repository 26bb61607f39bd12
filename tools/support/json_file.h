// JSON files that a reader sees complete or not at all.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "runtime/atomic_file.h"

namespace mpc::tools {

/// Keeps the order in which keys were added.
using Json = nlohmann::ordered_json;

using runtime::CheckWritable;

/// Writes `value`, indented by two, with a final newline. NaN and infinities become null. Bytes of texts
/// that are no UTF-8 become U+FFFD. Errors: runtime::WriteTextFile's.
absl::Status WriteJsonFile(const std::string& path, const Json& value);

}  // namespace mpc::tools
