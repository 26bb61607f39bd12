#include "compiler/report/level_difference.h"

#include <map>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/report/precision_table.h"
#include "compiler/report/text_table.h"

namespace mpc::compiler {
namespace {

/// Cell, operation, direction, position among those that share the three.
using Key = std::tuple<std::string, std::string, bool, int>;

/// The operations of a table by key, in program order.
std::vector<std::pair<Key, const PrecisionRow *>> keyed(const PrecisionTable &table) {
  std::map<Key, int> seen;
  std::vector<std::pair<Key, const PrecisionRow *>> rows;
  for (const PrecisionRow &row : table.rows) {
    const int position = seen[{row.path, row.op, row.backward, 0}]++;
    rows.push_back({{row.path, row.op, row.backward, position}, &row});
  }
  return rows;
}

/// "unscale (10), all_finite": each name once, in order.
std::string names(const std::vector<const PrecisionRow *> &rows) {
  std::vector<std::pair<std::string, int>> counts;
  for (const PrecisionRow *row : rows) {
    auto known = counts.begin();
    while (known != counts.end() && known->first != row->op)
      ++known;
    if (known == counts.end())
      counts.push_back({row->op, 1});
    else
      ++known->second;
  }
  return absl::StrJoin(counts, ", ", [](std::string *out, const auto &entry) {
    absl::StrAppend(out, entry.first, entry.second > 1 ? absl::StrCat(" (", entry.second, ")") : "");
  });
}

class Difference {
public:
  Difference(const PrecisionTable &from, const PrecisionTable &to, std::string fromName, std::string toName)
      : from(from), to(to), fromName(std::move(fromName)), toName(std::move(toName)) {}

  std::string print() const {
    return absl::StrCat("difference of @", to.function, " from ", fromName, " to ", toName, "\n\n", operations(), "\n",
                        casts(), "\n", totals());
  }

private:
  std::string operations() const {
    std::map<Key, const PrecisionRow *> before;
    for (const auto &[name, row] : keyed(from))
      before[name] = row;
    TextTable changes({"op", "Cell", fromName, toName, "why"});
    std::vector<const PrecisionRow *> onlyAfter, onlyBefore;
    int changed = 0, same = 0;
    for (const auto &[name, row] : keyed(to)) {
      const auto known = before.find(name);
      if (known == before.end()) {
        onlyAfter.push_back(row);
        continue;
      }
      const PrecisionRow &old = *known->second;
      if (old.types() == row->types()) {
        ++same;
      } else {
        ++changed;
        changes.add({row->op, row->path.empty() ? "-" : row->path, old.types(), row->types(),
                     row->reason.empty() ? "-" : row->reason});
      }
      before.erase(known);
    }
    for (const auto &[name, row] : keyed(from))
      if (before.count(name) > 0)
        onlyBefore.push_back(row);
    std::string text =
        absl::StrCat("operations (", changed, " changed, ", same, " the same)\n", changed > 0 ? changes.print() : "");
    if (!onlyBefore.empty())
      absl::StrAppend(&text, "  only at ", fromName, ": ", names(onlyBefore), "\n");
    if (!onlyAfter.empty())
      absl::StrAppend(&text, "  only at ", toName, ": ", names(onlyAfter), "\n");
    return text;
  }

  std::string casts() const {
    using Group = std::tuple<CastKind, std::string, std::string>;
    std::map<Group, std::pair<const CastGroup *, const CastGroup *>> groups;
    for (const CastGroup &cast : from.casts.groups())
      groups[{cast.kind, cast.from, cast.to}].first = &cast;
    for (const CastGroup &cast : to.casts.groups())
      groups[{cast.kind, cast.from, cast.to}].second = &cast;
    if (groups.empty())
      return "casts: none\n";
    TextTable text({"kind", "types", fromName, toName, "bytes more"});
    for (const auto &[name, sides] : groups) {
      const auto &[old, current] = sides;
      const std::int64_t more = (current ? current->bytes : 0) - (old ? old->bytes : 0);
      text.add({CastKindName(std::get<0>(name)), absl::StrCat(std::get<1>(name), " -> ", std::get<2>(name)),
                absl::StrCat(old ? old->count : 0), absl::StrCat(current ? current->count : 0), FormatCount(more)});
    }
    return absl::StrCat("casts (", from.casts.count(), " to ", to.casts.count(), ")\n", text.print());
  }

  std::string totals() const {
    TextTable text({"moved a step", fromName, toName});
    text.add({"by operations", FormatBytes(from.bytes()), FormatBytes(to.bytes())});
    text.add({"by casts", FormatBytes(from.casts.bytes()), FormatBytes(to.casts.bytes())});
    text.add({"low matrix work", share(from), share(to)});
    return absl::StrCat("totals\n", text.print());
  }

  static std::string share(const PrecisionTable &table) {
    const double flops = table.matrix_flops();
    return flops == 0 ? "-" : absl::StrFormat("%.1f %%", 100 * table.low_matrix_flops() / flops);
  }

  const PrecisionTable &from;
  const PrecisionTable &to;
  std::string fromName;
  std::string toName;
};

} // namespace

absl::StatusOr<std::string> LevelDifference(const NamedModule &from, const NamedModule &to,
                                            const std::string &function) {
  const absl::StatusOr<PrecisionTable> before = TabulatePrecision(*from.module, function);
  if (!before.ok())
    return before.status();
  const absl::StatusOr<PrecisionTable> after = TabulatePrecision(*to.module, function);
  if (!after.ok())
    return after.status();
  return Difference(*before, *after, from.name, to.name).print();
}

} // namespace mpc::compiler
