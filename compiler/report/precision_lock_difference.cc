#include "compiler/report/precision_lock_difference.h"

#include <array>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/report/text_table.h"

namespace mpc::compiler {
namespace {

/// A table of more rows would hide what matters.
constexpr int mostRows = 60;

/// The reason of what follows an earlier compilation; see SayReason.
constexpr const char storedReason[] = "stored assignment";

/// "61,684 elements in 8 parameters".
std::string parametersOf(const LockSubject &subject) {
  return absl::StrCat(FormatCount(subject.elements), " elements in ", FormatCounted(subject.parameters, "parameter"));
}

/// "1,200 + 11,456 a sample".
std::string readable(const SampleBytes &bytes) {
  if (!bytes.linear)
    return "not linear";
  if (bytes.a_sample == 0)
    return FormatCount(bytes.fixed);
  return absl::StrCat(bytes.fixed == 0 ? "" : absl::StrCat(FormatCount(bytes.fixed), " + "),
                      FormatCount(bytes.a_sample), " a sample");
}

/// A table of which only the first rows are shown.
class ShortTable {
public:
  explicit ShortTable(std::vector<std::string> header) : table(std::move(header)) {}
  void add(std::vector<std::string> row) {
    if (++rows <= mostRows)
      table.add(std::move(row));
  }
  int size() const { return rows; }
  std::string print() const {
    return absl::StrCat(table.print(), rows > mostRows ? absl::StrCat("  ... and ", rows - mostRows, " more\n") : "");
  }

private:
  TextTable table;
  int rows = 0;
};

/// An operation of both locks; null where one has none.
struct OperationSides {
  const LockedOperation *locked = nullptr;
  const LockedOperation *present = nullptr;
  /// What names it.
  const LockedOperation &either() const { return present ? *present : *locked; }
};

class LockDifference {
public:
  LockDifference(const PrecisionLock &locked, const PrecisionLock &present) : locked(locked), present(present) {
    const auto before = [](const LockedOperation *a, const LockedOperation *b) { return ComesBefore(*a, *b); };
    std::map<const LockedOperation *, OperationSides, decltype(before)> byName(before);
    for (const LockedOperation &line : locked.operations)
      byName[&line].locked = &line;
    for (const LockedOperation &line : present.operations)
      byName[&line].present = &line;
    for (const auto &[name, both] : byName)
      sides.push_back(both);
  }

  std::string print() const {
    std::string text = absl::StrCat(operations(), casts());
    if (locked.subject.parameters != present.subject.parameters || locked.subject.elements != present.subject.elements)
      absl::StrAppend(&text, "parameters: ", parametersOf(locked.subject), " in the lock, ",
                      parametersOf(present.subject), " now; the lock may be of another network\n");
    return text.empty() ? "" : absl::StrCat(text, totals());
  }

private:
  static std::string typesOf(const LockedOperation *line) {
    if (!line || line->count == 0)
      return "none";
    // Types that differ have their counts already.
    const bool counts = line->count > 1 && !absl::StrContains(line->types, " x ");
    return counts ? absl::StrCat(line->count, " x ", line->types) : line->types;
  }

  static std::string bytesOf(const LockedOperation *line) { return line ? readable(line->bytes) : "-"; }

  static std::string whyOf(const OperationSides &both) {
    if (!both.present || !both.locked || both.present->reason == both.locked->reason)
      return both.either().reason;
    return absl::StrCat(both.present->reason, " (was: ", both.locked->reason, ")");
  }

  static bool sameReason(const OperationSides &both) {
    return both.locked->reason == both.present->reason || absl::StrContains(both.present->reason, storedReason);
  }

  static bool sameOperation(const OperationSides &both) {
    if (!both.locked || !both.present)
      return both.either().count == 0;
    return both.locked->count == both.present->count && both.locked->types == both.present->types &&
           both.locked->bytes == both.present->bytes && sameReason(both);
  }

  static std::string nameOf(const LockedOperation &line) {
    return line.direction == "forward" ? line.operation : absl::StrCat(line.operation, ", ", line.direction);
  }

  std::string operations() const {
    ShortTable table({"Cell", "operation", "in the lock", "now", "bytes in the lock", "bytes now", "why"});
    for (const OperationSides &both : sides)
      if (!sameOperation(both))
        table.add({both.either().cell, nameOf(both.either()), typesOf(both.locked), typesOf(both.present),
                   bytesOf(both.locked), bytesOf(both.present), whyOf(both)});
    return table.size() == 0 ? "" : absl::StrCat("operations (", table.size(), " differ)\n", table.print());
  }

  using CastName = std::tuple<CastKind, std::string, std::string>;
  using CastSides = std::pair<const LockedCast *, const LockedCast *>;

  static std::map<CastName, CastSides> castsOf(const OperationSides &both) {
    std::map<CastName, CastSides> casts;
    if (both.locked)
      for (const LockedCast &cast : both.locked->casts)
        casts[{cast.kind, cast.from, cast.to}].first = &cast;
    if (both.present)
      for (const LockedCast &cast : both.present->casts)
        casts[{cast.kind, cast.from, cast.to}].second = &cast;
    return casts;
  }

  std::string casts() const {
    ShortTable table({"of", "in Cell", "kind", "types", "in the lock", "now", "bytes in the lock", "bytes now"});
    for (const OperationSides &both : sides)
      for (const auto &[name, pair] : castsOf(both)) {
        const auto &[old, current] = pair;
        if (old && current && *old == *current)
          continue;
        table.add({nameOf(both.either()), both.either().cell, CastKindName(std::get<0>(name)),
                   absl::StrCat(std::get<1>(name), " -> ", std::get<2>(name)), absl::StrCat(old ? old->count : 0),
                   absl::StrCat(current ? current->count : 0), old ? readable(old->bytes) : "-",
                   current ? readable(current->bytes) : "-"});
      }
    return table.size() == 0 ? "" : absl::StrCat("casts (", table.size(), " differ)\n", table.print());
  }

  std::string totals() const {
    TextTable table({"bytes moved", "in the lock", "now"});
    table.add({"by operations", readable(locked.bytes()), readable(present.bytes())});
    table.add({"by casts", readable(locked.castBytes()), readable(present.castBytes())});
    return absl::StrCat("totals (", locked.casts(), " casts in the lock, ", present.casts(), " now)\n", table.print());
  }

  const PrecisionLock &locked;
  const PrecisionLock &present;
  std::vector<OperationSides> sides; ///< in the order of lines
};

} // namespace

absl::Status CheckLockSubject(const PrecisionLock &locked, const PrecisionLock &present) {
  const LockSubject &of = locked.subject, &is = present.subject;
  struct Entry {
    const char *what;
    std::string LockSubject::*member;
  };
  static constexpr std::array<Entry, 6> entries = {{{"network", &LockSubject::network},
                                                    {"step", &LockSubject::step},
                                                    {"device", &LockSubject::device},
                                                    {"level", &LockSubject::level},
                                                    {"low type", &LockSubject::low},
                                                    {"loss scale", &LockSubject::loss_scale}}};
  for (const auto &[what, member] : entries)
    if (of.*member != is.*member)
      return absl::InvalidArgumentError(absl::StrCat("it is the lock of another ", what, ": of ", of.*member,
                                                     ", and it is compared with ", is.*member));
  return absl::OkStatus();
}

std::string PrecisionLockDifference(const PrecisionLock &locked, const PrecisionLock &present) {
  return LockDifference(locked, present).print();
}

} // namespace mpc::compiler
