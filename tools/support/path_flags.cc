#include "tools/support/path_flags.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/atomic_file.h"
#include "runtime/file_content.h"

namespace mpc::tools {
namespace {

namespace fs = std::filesystem;

/// The one name of what `path` leads to. Empty where it is neither a regular file nor a folder, nor will become one.
std::string Place(const std::string& path) {
  if (path.empty() || absl::StartsWith(path, "/dev/") || absl::StartsWith(path, "/proc/")) return "";
  std::error_code error;
  const std::string target = runtime::FollowLinks(path).value_or(path);
  const fs::file_status status = fs::status(target, error);
  if (fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status)) return "";
  const fs::path absolute = fs::absolute(target, error);
  const fs::path place = fs::weakly_canonical(absolute, error);
  const std::string text = (error ? absolute.lexically_normal() : place).string();
  const std::size_t last = text.find_last_not_of('/');
  return last == std::string::npos ? text : text.substr(0, last + 1);
}

bool IsMeant(const std::vector<MeantPair>& meant, const PathFlag& a, const PathFlag& b) {
  return std::any_of(meant.begin(), meant.end(), [&](const MeantPair& pair) {
    return (pair.first == a.name && pair.second == b.name) || (pair.first == b.name && pair.second == a.name);
  });
}

}  // namespace

absl::Status CheckPathsDiffer(const std::vector<PathFlag>& flags, const std::vector<MeantPair>& meant) {
  std::vector<std::string> places;
  for (const PathFlag& flag : flags) {
    if (flag.path == "-") {
      const char* standard = flag.written ? "output is /dev/stdout" : "input is /dev/stdin";
      return absl::InvalidArgumentError(
          absl::StrCat(flag.name, " is '-': the standard ", standard, ", and a file of that name is './-'"));
    }
    places.push_back(Place(flag.path));
    if (places.back().empty()) continue;
    for (std::size_t i = 0; i + 1 < places.size(); ++i) {
      const PathFlag& other = flags[i];
      if (places[i] != places.back() || (!flag.written && !other.written) || IsMeant(meant, flag, other)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          other.name, " and ", flag.name, " name one file, '", flag.path, "': ",
          flag.written && other.written ? "one would overwrite what the other wrote" : "what is read would be lost",
          "; give each a file of its own"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckChoiceCache(const std::string& path, bool tunes) {
  if (path.empty()) return absl::OkStatus();
  const absl::Status status = tunes ? runtime::CheckWritable(path) : runtime::ReadFileContent(path).status();
  return status.ok() ? status : absl::Status(status.code(), absl::StrCat("--choice-cache: ", status.message()));
}

}  // namespace mpc::tools
