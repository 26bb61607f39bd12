#include "compiler/report/precision_lock_text.h"

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "runtime/checksum.h"

namespace mpc::compiler {
namespace {

constexpr absl::string_view lockTitle = "mpc precision lock ";
constexpr absl::string_view lockVersion = "1";
constexpr absl::string_view lockColumns = "Cell | operation | direction | count | types | bytes | casts | why";
constexpr absl::string_view checksumKey = "checksum: ";
constexpr absl::string_view aSample = " a sample";
constexpr absl::string_view notLinear = "not linear";

//===-- Writing --------------------------------------------------------------------------------------------------===//

std::string escaped(absl::string_view text) {
  std::string result;
  for (char c : text) {
    if (c == '|' || c == '\\' || static_cast<unsigned char>(c) < 0x20)
      absl::StrAppendFormat(&result, "\\%03o", static_cast<unsigned char>(c));
    else
      result += c;
  }
  return result;
}

std::string printCasts(const std::vector<LockedCast> &casts) {
  if (casts.empty())
    return "-";
  return absl::StrJoin(casts, "; ", [](std::string *out, const LockedCast &cast) {
    absl::StrAppend(out, cast.count, " ", CastKindName(cast.kind), " ", cast.from, " -> ", cast.to, ", ",
                    PrintSampleBytes(cast.bytes));
  });
}

std::string printOperation(const LockedOperation &line) {
  return absl::StrCat(escaped(line.cell), " | ", line.operation, " | ", line.direction, " | ", line.count, " | ",
                      line.types, " | ", PrintSampleBytes(line.bytes), " | ", printCasts(line.casts), " | ",
                      escaped(line.reason), "\n");
}

/// The lines before the checksum.
std::string printHead(const PrecisionLock &lock) {
  const LockSubject &subject = lock.subject;
  return absl::StrCat(lockTitle, lockVersion, "\nnetwork: ", escaped(subject.network),
                      "\nstep: ", escaped(subject.step), "\ndevice: ", subject.device, "\nlevel: ", subject.level,
                      "\nlow type: ", subject.low, "\nloss scale: ", subject.loss_scale,
                      "\nparameters: ", subject.parameters, " tensors, ", subject.elements,
                      " elements\noperations move: ", PrintSampleBytes(lock.bytes()), "\ncasts: ", lock.casts(),
                      ", which move ", PrintSampleBytes(lock.castBytes()), "\n");
}

//===-- Reading --------------------------------------------------------------------------------------------------===//

absl::Status damaged(std::size_t line, const std::string &what) {
  return absl::DataLossError(absl::StrCat("line ", line, ": ", what));
}

std::string inQuotes(absl::string_view text) {
  constexpr std::size_t most = 60;
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, most)), text.size() > most ? "..." : "", "'");
}

/// A whole number, written as printing writes it.
std::optional<std::int64_t> parseCount(absl::string_view text) {
  std::int64_t number = 0;
  if (!absl::SimpleAtoi(text, &number) || number < 0 || absl::StrCat(number) != text)
    return std::nullopt;
  return number;
}

std::optional<SampleBytes> parseSampleBytes(absl::string_view text) {
  if (text == notLinear)
    return SampleBytes{0, 0, false};
  SampleBytes bytes;
  const std::vector<absl::string_view> terms = absl::StrSplit(text, " + ");
  if (terms.size() > 2)
    return std::nullopt;
  for (absl::string_view term : terms) {
    const bool each = absl::ConsumeSuffix(&term, aSample);
    const std::optional<std::int64_t> number = parseCount(term);
    if (!number)
      return std::nullopt;
    (each ? bytes.a_sample : bytes.fixed) = *number;
  }
  return PrintSampleBytes(bytes) == text ? std::optional(bytes) : std::nullopt;
}

std::optional<CastKind> parseCastKind(absl::string_view name) {
  for (int kind = 0; kind <= static_cast<int>(CastKind::Other); ++kind)
    if (name == CastKindName(static_cast<CastKind>(kind)))
      return static_cast<CastKind>(kind);
  return std::nullopt;
}

/// "1 loss f16 -> f32, 60 a sample".
std::optional<LockedCast> parseCast(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> halves = absl::StrSplit(text, absl::MaxSplits(", ", 1));
  const std::vector<absl::string_view> words = absl::StrSplit(halves.first, ' ');
  if (words.size() != 5 || words[3] != "->")
    return std::nullopt;
  const std::optional<std::int64_t> count = parseCount(words[0]);
  const std::optional<CastKind> kind = parseCastKind(words[1]);
  const std::optional<SampleBytes> bytes = parseSampleBytes(halves.second);
  if (!count || !kind || !bytes)
    return std::nullopt;
  return LockedCast{*kind, std::string(words[2]), std::string(words[4]), *count, *bytes};
}

std::optional<std::vector<LockedCast>> parseCasts(absl::string_view text) {
  std::vector<LockedCast> casts;
  if (text == "-")
    return casts;
  for (absl::string_view part : absl::StrSplit(text, "; ")) {
    std::optional<LockedCast> cast = parseCast(part);
    if (!cast)
      return std::nullopt;
    casts.push_back(*std::move(cast));
  }
  return casts;
}

class LockReader {
public:
  explicit LockReader(absl::string_view text) : lines(absl::StrSplit(text, '\n')) {
    for (absl::string_view &line : lines)
      absl::ConsumeSuffix(&line, "\r");
    // What follows the last line break is no line.
    if (!lines.empty() && lines.back().empty())
      lines.pop_back();
  }

  absl::StatusOr<PrecisionLock> read() {
    if (absl::Status status = checkTitle(); !status.ok())
      return status;
    if (absl::Status status = checkConflicts(); !status.ok())
      return status;
    if (absl::Status status = readHead(); !status.ok())
      return status;
    while (next < lines.size())
      if (absl::Status status = readOperation(); !status.ok())
        return status;
    if (absl::Status status = checkWhole(); !status.ok())
      return status;
    return std::move(lock);
  }

private:
  absl::Status checkTitle() {
    absl::string_view version = lines.empty() ? "" : lines[0];
    if (!absl::ConsumePrefix(&version, lockTitle))
      return absl::InvalidArgumentError(absl::StrCat("it is no precision lock: it begins with ",
                                                     lines.empty() ? "nothing" : inQuotes(lines[0]), ", not with '",
                                                     lockTitle, lockVersion, "'"));
    if (version != lockVersion)
      return absl::UnimplementedError(absl::StrCat(
          "version ", inQuotes(version), " of precision locks is unknown; this ", "mpc reads version ", lockVersion));
    next = 1;
    return absl::OkStatus();
  }

  absl::Status checkConflicts() const {
    for (std::size_t i = 0; i < lines.size(); ++i)
      if (absl::StartsWith(lines[i], "<<<<<<< ") || absl::StartsWith(lines[i], ">>>>>>> "))
        return damaged(i + 1, "a merge has left its mark here: take one side, and write the lock anew");
    return absl::OkStatus();
  }

  /// The value of the line \p key, which is the next one.
  absl::Status readValue(absl::string_view key, absl::string_view &value) {
    value = next < lines.size() ? lines[next] : "";
    if (next >= lines.size() || !absl::ConsumePrefix(&value, key))
      return damaged(next + 1, absl::StrCat("expected '", key, "...', found ",
                                            next < lines.size() ? inQuotes(lines[next]) : "the end of the file"));
    ++next;
    return absl::OkStatus();
  }

  absl::Status readText(absl::string_view key, std::string &text) {
    absl::string_view value;
    if (absl::Status status = readValue(key, value); !status.ok())
      return status;
    if (!absl::CUnescape(value, &text) || text.empty())
      return damaged(next, absl::StrCat("'", key, "' has no value"));
    return absl::OkStatus();
  }

  absl::Status readHead() {
    LockSubject &subject = lock.subject;
    const std::array<std::pair<absl::string_view, std::string *>, 6> texts = {{{"network: ", &subject.network},
                                                                               {"step: ", &subject.step},
                                                                               {"device: ", &subject.device},
                                                                               {"level: ", &subject.level},
                                                                               {"low type: ", &subject.low},
                                                                               {"loss scale: ", &subject.loss_scale}}};
    for (const auto &[key, text] : texts)
      if (absl::Status status = readText(key, *text); !status.ok())
        return status;
    if (absl::Status status = readParameters(); !status.ok())
      return status;
    // Sums follow from the lines; checkWhole compares them.
    absl::string_view ignored;
    for (absl::string_view key : {absl::string_view("operations move: "), absl::string_view("casts: "), checksumKey})
      if (absl::Status status = readValue(key, ignored); !status.ok())
        return status;
    for (absl::string_view line : {absl::string_view(), lockColumns}) {
      if (next >= lines.size() || lines[next] != line)
        return damaged(next + 1, absl::StrCat("expected '", line, "', found ",
                                              next < lines.size() ? inQuotes(lines[next]) : "the end of the file"));
      ++next;
    }
    return absl::OkStatus();
  }

  absl::Status readParameters() {
    absl::string_view value;
    if (absl::Status status = readValue("parameters: ", value); !status.ok())
      return status;
    const std::pair<absl::string_view, absl::string_view> halves =
        absl::StrSplit(value, absl::MaxSplits(" tensors, ", 1));
    absl::string_view second = halves.second;
    absl::ConsumeSuffix(&second, " elements");
    const std::optional<std::int64_t> tensors = parseCount(halves.first), elements = parseCount(second);
    if (!tensors || !elements)
      return damaged(next,
                     absl::StrCat("expected 'parameters: N tensors, N elements', found ", inQuotes(lines[next - 1])));
    lock.subject.parameters = *tensors;
    lock.subject.elements = *elements;
    return absl::OkStatus();
  }

  absl::Status readOperation() {
    const std::size_t number = next + 1;
    const std::vector<absl::string_view> fields = absl::StrSplit(lines[next++], " | ");
    if (fields.size() != 8)
      return damaged(number,
                     absl::StrCat("expected 8 columns, found ", fields.size(), ": ", inQuotes(lines[next - 1])));
    LockedOperation line;
    const std::optional<std::int64_t> count = parseCount(fields[3]);
    const std::optional<SampleBytes> bytes = parseSampleBytes(fields[5]);
    std::optional<std::vector<LockedCast>> casts = parseCasts(fields[6]);
    if (!count)
      return damaged(number, absl::StrCat("the count ", inQuotes(fields[3]), " is no whole number"));
    if (!bytes)
      return damaged(number, absl::StrCat("the bytes ", inQuotes(fields[5]), " are not of the form 'N + N a sample'"));
    if (!casts)
      return damaged(number, absl::StrCat("the casts ", inQuotes(fields[6]),
                                          " are not of the form 'N KIND TYPE -> TYPE, N a sample'"));
    if (!absl::CUnescape(fields[0], &line.cell) || !absl::CUnescape(fields[7], &line.reason))
      return damaged(number, "a backslash stands before no octal digits");
    line.operation = std::string(fields[1]);
    line.direction = std::string(fields[2]);
    line.count = *count;
    line.types = std::string(fields[4]);
    line.bytes = *bytes;
    line.casts = *std::move(casts);
    if (!lock.operations.empty() && !ComesBefore(lock.operations.back(), line))
      return damaged(number, absl::StrCat(inQuotes(line.cell), " ", line.operation,
                                          " is not in the order of Cells and ", "operations, or stands twice"));
    lock.operations.push_back(std::move(line));
    return absl::OkStatus();
  }

  /// The text is what printing makes of what was read, its sums and its checksum too.
  absl::Status checkWhole() const {
    const std::string printed = PrintPrecisionLock(lock);
    const std::vector<absl::string_view> expected = absl::StrSplit(printed, '\n');
    std::optional<std::size_t> other, checksum;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (absl::StartsWith(lines[i], checksumKey))
        checksum = i;
      else if (!other && lines[i] != expected[i])
        other = i;
    }
    if (other)
      return damaged(*other + 1, absl::StrCat(inQuotes(lines[*other]), " does not fit the lines below; they give ",
                                              inQuotes(expected[*other])));
    if (checksum && lines[*checksum] != expected[*checksum])
      return damaged(*checksum + 1, absl::StrCat("it has ", inQuotes(lines[*checksum]), ", its lines give ",
                                                 inQuotes(expected[*checksum]), ": it was edited, cut or damaged"));
    return absl::OkStatus();
  }

  std::vector<absl::string_view> lines;
  std::size_t next = 0; ///< the line that is read next
  PrecisionLock lock;
};

} // namespace

std::string PrintSampleBytes(const SampleBytes &bytes) {
  if (!bytes.linear)
    return std::string(notLinear);
  if (bytes.a_sample == 0)
    return absl::StrCat(bytes.fixed);
  return absl::StrCat(bytes.fixed == 0 ? "" : absl::StrCat(bytes.fixed, " + "), bytes.a_sample, aSample);
}

std::string PrintPrecisionLock(const PrecisionLock &lock) {
  const std::string head = printHead(lock);
  std::string body = absl::StrCat("\n", lockColumns, "\n");
  for (const LockedOperation &line : lock.operations)
    body += printOperation(line);
  runtime::Checksum checksum;
  checksum.Add(head);
  checksum.Add(body);
  return absl::StrCat(head, checksumKey, checksum.Text(), "\n", body);
}

absl::StatusOr<PrecisionLock> ParsePrecisionLock(absl::string_view text) { return LockReader(text).read(); }

} // namespace mpc::compiler
