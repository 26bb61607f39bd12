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
std::vector<std::pair<Key, const PrecisionRow *>> keyed(const PrecisionTable &Table) {
  std::map<Key, int> Seen;
  std::vector<std::pair<Key, const PrecisionRow *>> Rows;
  for (const PrecisionRow &Row : Table.rows) {
    const int Position = Seen[{Row.path, Row.op, Row.backward, 0}]++;
    Rows.push_back({{Row.path, Row.op, Row.backward, Position}, &Row});
  }
  return Rows;
}

std::string types(const PrecisionRow &Row) {
  return absl::StrCat(Row.inputs.empty() ? "-" : Row.inputs, " -> ", Row.outputs.empty() ? "-" : Row.outputs);
}

/// "unscale (10), all_finite": each name once, in order.
std::string names(const std::vector<const PrecisionRow *> &Rows) {
  std::vector<std::pair<std::string, int>> Counts;
  for (const PrecisionRow *Row : Rows) {
    auto Known = Counts.begin();
    while (Known != Counts.end() && Known->first != Row->op)
      ++Known;
    if (Known == Counts.end())
      Counts.push_back({Row->op, 1});
    else
      ++Known->second;
  }
  return absl::StrJoin(Counts, ", ", [](std::string *Out, const auto &Entry) {
    absl::StrAppend(Out, Entry.first, Entry.second > 1 ? absl::StrCat(" (", Entry.second, ")") : "");
  });
}

class Difference {
public:
  Difference(const PrecisionTable &From, const PrecisionTable &To, std::string FromName, std::string ToName)
      : From(From), To(To), FromName(std::move(FromName)), ToName(std::move(ToName)) {}

  std::string print() const {
    return absl::StrCat("difference of @", To.function, " from ", FromName, " to ", ToName, "\n\n", operations(), "\n",
                        casts(), "\n", totals());
  }

private:
  std::string operations() const {
    std::map<Key, const PrecisionRow *> Before;
    for (const auto &[Name, Row] : keyed(From))
      Before[Name] = Row;
    TextTable Changes({"op", "Cell", FromName, ToName, "why"});
    std::vector<const PrecisionRow *> OnlyAfter, OnlyBefore;
    int Changed = 0, Same = 0;
    for (const auto &[Name, Row] : keyed(To)) {
      const auto Known = Before.find(Name);
      if (Known == Before.end()) {
        OnlyAfter.push_back(Row);
        continue;
      }
      const PrecisionRow &Old = *Known->second;
      if (types(Old) == types(*Row)) {
        ++Same;
      } else {
        ++Changed;
        Changes.add({Row->op, Row->path.empty() ? "-" : Row->path, types(Old), types(*Row),
                     Row->reason.empty() ? "-" : Row->reason});
      }
      Before.erase(Known);
    }
    for (const auto &[Name, Row] : keyed(From))
      if (Before.count(Name) > 0)
        OnlyBefore.push_back(Row);
    std::string Text =
        absl::StrCat("operations (", Changed, " changed, ", Same, " the same)\n", Changed > 0 ? Changes.print() : "");
    if (!OnlyBefore.empty())
      absl::StrAppend(&Text, "  only at ", FromName, ": ", names(OnlyBefore), "\n");
    if (!OnlyAfter.empty())
      absl::StrAppend(&Text, "  only at ", ToName, ": ", names(OnlyAfter), "\n");
    return Text;
  }

  std::string casts() const {
    using Group = std::tuple<CastKind, std::string, std::string>;
    std::map<Group, std::pair<const CastGroup *, const CastGroup *>> Groups;
    for (const CastGroup &Cast : From.casts.groups())
      Groups[{Cast.kind, Cast.from, Cast.to}].first = &Cast;
    for (const CastGroup &Cast : To.casts.groups())
      Groups[{Cast.kind, Cast.from, Cast.to}].second = &Cast;
    if (Groups.empty())
      return "casts: none\n";
    TextTable Text({"kind", "types", FromName, ToName, "bytes more"});
    for (const auto &[Name, Sides] : Groups) {
      const auto &[Old, New] = Sides;
      const std::int64_t More = (New ? New->bytes : 0) - (Old ? Old->bytes : 0);
      Text.add({CastKindName(std::get<0>(Name)), absl::StrCat(std::get<1>(Name), " -> ", std::get<2>(Name)),
                absl::StrCat(Old ? Old->count : 0), absl::StrCat(New ? New->count : 0),
                absl::StrCat(More < 0 ? "-" : "", FormatCount(More < 0 ? -More : More))});
    }
    return absl::StrCat("casts (", From.casts.count(), " to ", To.casts.count(), ")\n", Text.print());
  }

  std::string totals() const {
    TextTable Text({"moved a step", FromName, ToName});
    Text.add({"by operations", FormatBytes(From.bytes()), FormatBytes(To.bytes())});
    Text.add({"by casts", FormatBytes(From.casts.bytes()), FormatBytes(To.casts.bytes())});
    Text.add({"low matrix work", share(From), share(To)});
    return absl::StrCat("totals\n", Text.print());
  }

  static std::string share(const PrecisionTable &Table) {
    const double Flops = Table.matrix_flops();
    return Flops == 0 ? "-" : absl::StrFormat("%.1f %%", 100 * Table.low_matrix_flops() / Flops);
  }

  const PrecisionTable &From;
  const PrecisionTable &To;
  std::string FromName;
  std::string ToName;
};

} // namespace

absl::StatusOr<std::string> LevelDifference(const NamedModule &From, const NamedModule &To,
                                            const std::string &Function) {
  const absl::StatusOr<PrecisionTable> Before = TabulatePrecision(*From.module, Function);
  if (!Before.ok())
    return Before.status();
  const absl::StatusOr<PrecisionTable> After = TabulatePrecision(*To.module, Function);
  if (!After.ok())
    return After.status();
  return Difference(*Before, *After, From.name, To.name).print();
}

} // namespace mpc::compiler
