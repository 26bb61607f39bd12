#include "compiler/report/precision_lock.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mpc::compiler {
namespace {

/// Takes the digits at the beginning of \p text, without leading zeros.
std::string_view takeNumber(std::string_view &text) {
  std::size_t end = 0;
  while (end < text.size() && absl::ascii_isdigit(static_cast<unsigned char>(text[end])))
    ++end;
  std::string_view digits = text.substr(0, end);
  text.remove_prefix(end);
  while (digits.size() > 1 && digits.front() == '0')
    digits.remove_prefix(1);
  return digits;
}

/// Below 0 where \p a comes first, above 0 where \p b does. Runs of digits compare as numbers.
int compareCells(std::string_view a, std::string_view b) {
  const std::string_view wholeA = a, wholeB = b;
  const auto atDigit = [](std::string_view text) { return absl::ascii_isdigit(static_cast<unsigned char>(text[0])); };
  while (!a.empty() && !b.empty()) {
    if (atDigit(a) && atDigit(b)) {
      const std::string_view numberA = takeNumber(a), numberB = takeNumber(b);
      if (numberA.size() != numberB.size())
        return numberA.size() < numberB.size() ? -1 : 1;
      if (int order = numberA.compare(numberB); order != 0)
        return order;
      continue;
    }
    if (a[0] != b[0])
      return static_cast<unsigned char>(a[0]) < static_cast<unsigned char>(b[0]) ? -1 : 1;
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  if (a.empty() != b.empty())
    return a.empty() ? -1 : 1;
  return wholeA.compare(wholeB);
}

/// Cell, operation, direction.
using OperationKey = std::tuple<std::string, std::string, std::string>;
using CastKey = std::tuple<CastKind, std::string, std::string>;

/// The casts or the operations of a line, on one number of samples.
struct Amount {
  std::int64_t count = 0;
  std::int64_t bytes = 0;
};

struct Gathered {
  Amount amount;
  std::map<std::string, std::int64_t> types, reasons;
  std::map<CastKey, Amount> casts;
};

using GatheredOperations = std::map<OperationKey, Gathered>;

std::string orDash(const std::string &text) { return text.empty() ? "-" : text; }

GatheredOperations gather(const PrecisionTable &table) {
  GatheredOperations lines;
  for (const PrecisionRow &row : table.rows) {
    Gathered &line = lines[{orDash(row.path), row.op, DirectionName(row.backward, row.update)}];
    ++line.amount.count;
    line.amount.bytes += row.bytes;
    ++line.types[row.types()];
    ++line.reasons[orDash(row.reason)];
  }
  for (const CastRecord &cast : table.cast_records) {
    Gathered &line = lines[{orDash(cast.path), cast.op, DirectionName(cast.backward, cast.update)}];
    Amount &amount = line.casts[{cast.kind, cast.from, cast.to}];
    ++amount.count;
    amount.bytes += cast.bytes;
  }
  return lines;
}

/// "f16 -> f16", or "2 x f16 -> f16 / 1 x f32 -> f32".
std::string oneOrCounted(const std::map<std::string, std::int64_t> &texts) {
  if (texts.empty())
    return "-";
  if (texts.size() == 1)
    return texts.begin()->first;
  return absl::StrJoin(texts, " / ", [](std::string *out, const auto &entry) {
    absl::StrAppend(out, entry.second, " x ", entry.first);
  });
}

class TwoBatches {
public:
  TwoBatches(const SampledTable &first, const SampledTable &second) : first(first), second(second) {}

  absl::StatusOr<std::vector<LockedOperation>> lock() const {
    const GatheredOperations few = gather(*first.table);
    GatheredOperations more = gather(*second.table);
    std::vector<LockedOperation> lines;
    for (const auto &[key, line] : few) {
      const auto known = more.find(key);
      if (known == more.end() || !agree(line, known->second))
        return differ(key);
      lines.push_back(lineOf(key, line, known->second));
      more.erase(known);
    }
    if (!more.empty())
      return differ(more.begin()->first);
    std::sort(lines.begin(), lines.end(), ComesBefore);
    return lines;
  }

private:
  static bool agree(const Gathered &a, const Gathered &b) {
    const auto sameCount = [](const auto &x, const auto &y) {
      return x.first == y.first && x.second.count == y.second.count;
    };
    return a.amount.count == b.amount.count && a.types == b.types &&
           std::equal(a.casts.begin(), a.casts.end(), b.casts.begin(), b.casts.end(), sameCount);
  }

  absl::Status differ(const OperationKey &key) const {
    const auto &[cell, operation, direction] = key;
    return absl::FailedPreconditionError(absl::StrCat(
        "the precision of ", operation, cell == "-" ? "" : absl::StrCat(" in ", cell), " (", direction, ") is one on ",
        first.samples, " samples and another one on ", second.samples, ": a lock holds what does not depend on them"));
  }

  SampleBytes growth(std::int64_t atFirst, std::int64_t atSecond) const {
    const std::int64_t samples = second.samples - first.samples, bytes = atSecond - atFirst;
    if (bytes % samples != 0)
      return {0, 0, false};
    const SampleBytes grown{atFirst - bytes / samples * first.samples, bytes / samples};
    return grown.fixed < 0 || grown.a_sample < 0 ? SampleBytes{0, 0, false} : grown;
  }

  LockedOperation lineOf(const OperationKey &key, const Gathered &few, const Gathered &more) const {
    const auto &[cell, operation, direction] = key;
    LockedOperation line{cell,
                         operation,
                         direction,
                         few.amount.count,
                         oneOrCounted(few.types),
                         growth(few.amount.bytes, more.amount.bytes),
                         {},
                         oneOrCounted(few.reasons)};
    for (const auto &[cast, amount] : few.casts)
      line.casts.push_back({std::get<0>(cast), std::get<1>(cast), std::get<2>(cast), amount.count,
                            growth(amount.bytes, more.casts.at(cast).bytes)});
    return line;
  }

  const SampledTable &first;
  const SampledTable &second;
};

} // namespace

SampleBytes operator+(const SampleBytes &a, const SampleBytes &b) {
  return a.linear && b.linear ? SampleBytes{a.fixed + b.fixed, a.a_sample + b.a_sample} : SampleBytes{0, 0, false};
}

SampleBytes PrecisionLock::bytes() const {
  SampleBytes sum;
  for (const LockedOperation &line : operations)
    sum = sum + line.bytes;
  return sum;
}

SampleBytes PrecisionLock::castBytes() const {
  SampleBytes sum;
  for (const LockedOperation &line : operations)
    for (const LockedCast &cast : line.casts)
      sum = sum + cast.bytes;
  return sum;
}

std::int64_t PrecisionLock::casts() const {
  std::int64_t sum = 0;
  for (const LockedOperation &line : operations)
    for (const LockedCast &cast : line.casts)
      sum += cast.count;
  return sum;
}

bool ComesBefore(const LockedOperation &a, const LockedOperation &b) {
  if (int order = compareCells(a.cell, b.cell); order != 0)
    return order < 0;
  return std::tie(a.operation, a.direction) < std::tie(b.operation, b.direction);
}

absl::StatusOr<std::vector<LockedOperation>> LockOperations(const SampledTable &first, const SampledTable &second) {
  return TwoBatches(first, second).lock();
}

} // namespace mpc::compiler
