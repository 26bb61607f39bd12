#include "compiler/report/precision_file.h"

#include <cstdint>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/atomic_file.h"
#include "runtime/checksum.h"
#include "runtime/file_content.h"

namespace mpc::compiler {
namespace {

constexpr absl::string_view fileTitle = "mpc precision ";
constexpr absl::string_view fileVersion = "1";

std::string checksumOf(const ChosenPrecision &chosen) {
  runtime::Checksum checksum;
  checksum.Add(chosen.network);
  checksum.Add(chosen.low);
  for (const auto &[slot, type] : chosen.slots) {
    checksum.Add(slot);
    checksum.Add(type);
  }
  return checksum.Text();
}

absl::Status damagedFile(std::size_t line, absl::string_view has, absl::string_view expected) {
  return absl::DataLossError(
      absl::StrCat("line ", line + 1, " of the precision file is damaged: it has '", has, "', expected is ", expected));
}

} // namespace

std::string PrintPrecisionFile(const ChosenPrecision &chosen) {
  std::string text = absl::StrCat(fileTitle, fileVersion, "\nnetwork: ", chosen.network, "\nlow type: ", chosen.low,
                                  "\nchecksum: ", checksumOf(chosen), "\n\n");
  for (const auto &[slot, type] : chosen.slots)
    absl::StrAppend(&text, type, " | ", slot, "\n");
  return text;
}

absl::StatusOr<ChosenPrecision> ParsePrecisionFile(absl::string_view text) {
  std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  for (absl::string_view &line : lines)
    line = absl::StripSuffix(line, "\r");
  if (!absl::StartsWith(lines.front(), fileTitle) || absl::StartsWith(lines.front(), "mpc precision lock"))
    return absl::InvalidArgumentError(absl::StrCat("this is no precision file, whose first line is '", fileTitle,
                                                   fileVersion, "'; mpc-train --precision-frontier writes one"));
  if (lines.front().substr(fileTitle.size()) != fileVersion)
    return absl::UnimplementedError(absl::StrCat("a precision file of version '",
                                                 lines.front().substr(fileTitle.size()), "'; this mpc reads version ",
                                                 fileVersion));
  ChosenPrecision chosen;
  std::string checksum;
  const std::pair<absl::string_view, std::string *> head[] = {
      {"network: ", &chosen.network}, {"low type: ", &chosen.low}, {"checksum: ", &checksum}};
  std::size_t next = 1;
  for (const auto &[key, value] : head) {
    if (next >= lines.size() || !absl::StartsWith(lines[next], key))
      return damagedFile(next, next < lines.size() ? lines[next] : "", absl::StrCat("'", key, "'"));
    *value = std::string(lines[next++].substr(key.size()));
  }
  for (; next < lines.size(); ++next) {
    if (lines[next].empty())
      continue;
    const std::pair<absl::string_view, absl::string_view> entry =
        absl::StrSplit(lines[next], absl::MaxSplits(" | ", 1));
    if (entry.second.empty() || (entry.first != chosen.low && entry.first != "f32"))
      return damagedFile(next, lines[next], absl::StrCat("'", chosen.low, " | SLOT' or 'f32 | SLOT'"));
    chosen.slots[std::string(entry.second)] = std::string(entry.first);
  }
  if (checksum != checksumOf(chosen))
    return damagedFile(3, checksum, absl::StrCat("the checksum of the other lines, ", checksumOf(chosen)));
  return chosen;
}

absl::StatusOr<ChosenPrecision> ReadPrecisionFile(const std::string &path) {
  const absl::StatusOr<std::vector<std::uint8_t>> content = runtime::ReadFileContent(path);
  if (!content.ok())
    return content.status();
  absl::StatusOr<ChosenPrecision> chosen =
      ParsePrecisionFile({reinterpret_cast<const char *>(content->data()), content->size()});
  if (!chosen.ok())
    return absl::Status(chosen.status().code(), absl::StrCat("'", path, "': ", chosen.status().message()));
  return chosen;
}

absl::Status WritePrecisionFile(const std::string &path, const ChosenPrecision &chosen) {
  return runtime::WriteTextFile(path, PrintPrecisionFile(chosen));
}

} // namespace mpc::compiler
