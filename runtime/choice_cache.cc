#include "runtime/choice_cache.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/atomic_file.h"
#include "runtime/checksum.h"
#include "runtime/file_content.h"

namespace mpc::runtime {
namespace {

/// Of every version.
constexpr std::string_view kKind = "mpc kernel choices ";
constexpr std::string_view kHeader = "mpc kernel choices 2 ";

std::string ChecksumOf(const std::string& body) {
  Checksum checksum;
  checksum.Add(body);
  return checksum.Text();
}

/// The choices in the file at `path`; none where it cannot be read or does not match its checksum.
std::map<std::string, MeasuredChoice> ReadChoices(const std::string& path) {
  std::map<std::string, MeasuredChoice> choices;
  const absl::StatusOr<std::vector<std::uint8_t>> content = ReadFileContent(path);
  if (!content.ok()) return choices;
  const std::string text(content->begin(), content->end());
  const std::size_t header_end = text.find('\n');
  if (text.rfind(kHeader, 0) != 0 || header_end == std::string::npos) return choices;
  std::string body = text.substr(header_end + 1);
  if (text.substr(kHeader.size(), header_end - kHeader.size()) != ChecksumOf(body)) return choices;
  for (std::size_t begin = 0; begin < body.size();) {
    const std::size_t end = body.find('\n', begin);
    if (end == std::string::npos) break;
    const std::vector<std::string> fields = absl::StrSplit(body.substr(begin, end - begin), '\t');
    if (fields.size() != 3) break;
    choices[fields[0]] = {fields[1], fields[2]};
    begin = end + 1;
  }
  return choices;
}

/// FAILED_PRECONDITION where the file at `path` is another one than a cache, whole or damaged.
absl::Status CheckIsCache(const std::string& path) {
  const absl::StatusOr<std::vector<std::uint8_t>> content = ReadFileContent(path);
  if (!content.ok() || content->empty()) return absl::OkStatus();
  const std::size_t known = std::min(content->size(), kKind.size());
  if (std::equal(content->begin(), content->begin() + static_cast<std::ptrdiff_t>(known), kKind.begin())) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat(path, " holds something else than choices of kernels, which begin with \"", std::string(kKind),
                   "\"; it is left as it is: name another file, or remove it"));
}

}  // namespace

ChoiceCache::ChoiceCache(std::string path) : path_(std::move(path)) {
  if (!path_.empty()) choices_ = ReadChoices(path_);
}

MeasuredChoice ChoiceCache::Find(const std::string& key) const {
  const auto found = choices_.find(key);
  return found == choices_.end() ? MeasuredChoice() : found->second;
}

void ChoiceCache::Set(const std::string& key, MeasuredChoice choice) {
  choices_[key] = std::move(choice);
  changed_ = true;
}

absl::Status ChoiceCache::WriteEvery(std::chrono::seconds interval) {
  return Clock::now() - written_ < interval ? absl::OkStatus() : Write();
}

absl::Status ChoiceCache::Write() {
  if (path_.empty() || !changed_) return absl::OkStatus();
  if (absl::Status status = CheckIsCache(path_); !status.ok()) return status;
  choices_.merge(ReadChoices(path_));
  std::string body;
  for (const auto& [key, choice] : choices_) absl::StrAppend(&body, key, "\t", choice.choice, "\t", choice.times, "\n");
  const std::string text = absl::StrCat(std::string(kHeader), ChecksumOf(body), "\n", body);
  if (absl::Status status = WriteTextFile(path_, text); !status.ok()) return status;
  changed_ = false;
  written_ = Clock::now();
  return absl::OkStatus();
}

}  // namespace mpc::runtime
