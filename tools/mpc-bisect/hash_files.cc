#include "tools/mpc-bisect/hash_files.h"

#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/support/state_hashes.h"

namespace mpc::tools {
namespace {

std::string Head(const char* name, const std::string& path, const StateHashes& hashes) {
  return absl::StrCat(name, ": ", path, ", ", hashes.size(), " steps",
                      hashes.empty() ? "" : absl::StrCat(", ", hashes.begin()->first, " to ", hashes.rbegin()->first),
                      "\n");
}

}  // namespace

bool IsHashFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string line;
  return std::getline(file, line) && absl::StartsWith(line, kStateHashesHead);
}

absl::StatusOr<Bisection> BisectHashFiles(const std::string& first, const std::string& second) {
  const absl::StatusOr<StateHashes> a = ReadStateHashes(first);
  if (!a.ok()) return a.status();
  const absl::StatusOr<StateHashes> b = ReadStateHashes(second);
  if (!b.ok()) return b.status();
  Bisection bisection{.text = absl::StrCat(Head("A", first, *a), Head("B", second, *b))};
  std::int64_t common = 0;
  for (const auto& [step, hash] : *a) {
    const auto other = b->find(step);
    if (other == b->end()) continue;
    if (hash == other->second) {
      ++common;
      continue;
    }
    bisection.differs = true;
    absl::StrAppendFormat(&bisection.text,
                          "first step after which the state differs: %d, %016x in A, %016x in B\n"
                          "%d steps before it are equal\n"
                          "train both again with --capsule=FILE --capsule-at=%d, and give the two capsules\n",
                          step, hash, other->second, common, step);
    return bisection;
  }
  if (common == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(first, " (A) and ", second, " (B) cannot be compared: they have no step in common"));
  }
  absl::StrAppend(&bisection.text, "no difference: the state is equal after each of the ", common,
                  " steps that both have\n");
  return bisection;
}

}  // namespace mpc::tools
