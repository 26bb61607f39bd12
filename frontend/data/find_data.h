// Where the data files are that come with mpc or that a user provides.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace mpc::data {

/// The folders that are searched, in order. First $MPC_DATA_DIR if set, then `../data` and `../share/mpc/data` relative
/// to the folder of the executable. The last one is `data` of the source tree that mpc was built from.
std::vector<std::string> DataFolders();

/// The path of the first file that exists; `names` are tried in order in each folder. Errors (NOT_FOUND): every path
/// that was tried.
absl::StatusOr<std::string> FindDataFile(absl::Span<const std::string> names, absl::Span<const std::string> folders);

/// As above in `DataFolders()`; the error also says how to set MPC_DATA_DIR.
absl::StatusOr<std::string> FindDataFile(const std::string& name);

}  // namespace mpc::data
