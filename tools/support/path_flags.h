// Files that flags name: those that one command line names twice, '-', and what must be there.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace mpc::tools {

/// A flag or an argument that names a file.
struct PathFlag {
  std::string name;  ///< "--save", as messages call it
  std::string path;  ///< empty: it was not given
  bool written = false;
};

/// Flags that may name one file, although one of them writes it.
using MeantPair = std::pair<std::string_view, std::string_view>;

/// Errors (INVALID_ARGUMENT): one of `flags` names '-', which no tool takes for a standard stream. Two of `flags` name
/// one file, at least one writes it, and `meant` has no such pair. Links are followed. What is no regular file, such as
/// /dev/stdout or a pipe, may be named twice.
absl::Status CheckPathsDiffer(const std::vector<PathFlag>& flags, const std::vector<MeantPair>& meant = {});

/// Errors: `path`, that of --choice-cache, cannot be written, where `tunes` says that choices are measured. Elsewhere
/// it is what earlier runs wrote, and cannot be read. Empty: no file.
absl::Status CheckChoiceCache(const std::string& path, bool tunes);

}  // namespace mpc::tools
