#include "tools/support/state_hashes.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "runtime/file_content.h"

namespace mpc::tools {

std::string StateHashLine(std::int64_t step, std::uint64_t hash) { return absl::StrFormat("%d %016x\n", step, hash); }

absl::StatusOr<StateHashes> ReadStateHashes(const std::string& path) {
  const absl::StatusOr<std::vector<std::uint8_t>> content = runtime::ReadFileContent(path);
  if (!content.ok()) return content.status();
  const std::vector<std::string> lines = absl::StrSplit(std::string(content->begin(), content->end()), '\n');
  const std::string head = absl::StrCat(kStateHashesHead, kStateHashesVersion);
  if (lines.front() != head) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " does not begin with the line \"", head, "\"; `mpc-train --record-hashes` writes one"));
  }
  const auto error = [&](std::size_t line, const char* what) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is damaged: line ", line + 1, " ", what));
  };
  if (!lines.back().empty()) return error(lines.size() - 1, "has no end");
  StateHashes hashes;
  for (std::size_t i = 1; i + 1 < lines.size(); ++i) {
    const std::vector<std::string> words = absl::StrSplit(lines[i], ' ');
    std::int64_t step = 0;
    std::uint64_t hash = 0;
    if (words.size() != 2 || !absl::SimpleAtoi(words[0], &step) || !absl::SimpleHexAtoi(words[1], &hash) ||
        StateHashLine(step, hash) != lines[i] + "\n") {
      return error(i, "is no step and its hash of 16 digits");
    }
    if (!hashes.empty() && step <= hashes.rbegin()->first) return error(i, "is of a step that does not follow");
    hashes[step] = hash;
  }
  return hashes;
}

}  // namespace mpc::tools
