#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/report/range_table.h"
#include "compiler/report/text_table.h"

#include <array>
#include <cmath>

namespace mpc::compiler {

static const char *wordOf(RangeVerdict verdict) {
  switch (verdict) {
  case RangeVerdict::Cannot:
    return "cannot";
  case RangeVerdict::May:
    return "may";
  case RangeVerdict::Will:
    return "will";
  }
  return "may";
}

/// The Cell, or what is cast outside of Cells.
static std::string placeOf(const RangeRow &row) {
  if (!row.path.empty())
    return row.path;
  return row.of.empty() ? "-" : row.of;
}

static std::string numberText(double number) { return std::isnan(number) ? "-" : absl::StrFormat("%.3g", number); }

static std::string assumedText(const RangeTable &table, const RangeAssumptions &assumed) {
  std::string inputs = assumed.inputs ? absl::StrFormat("in [%.4g, %.4g]", assumed.inputs->low, assumed.inputs->high)
                                      : "unbounded, and expected to be about 1 (--data-range says more)";
  std::string scale = assumed.loss_scale > 0 ? absl::StrFormat("%.10g", assumed.loss_scale) : "any in [1, 2^126]";
  return absl::StrCat("ranges of @", table.function, "\nassumed: parameters ",
                      assumed.state.empty() ? "as their initialisers make them" : "as the file has them",
                      "; floating inputs ", inputs, "; loss scale ", scale, "\n\n");
}

/// "overflow: 40 cannot, 12 may, 0 will".
static std::string countsText(const RangeTable &table, const char *what, RangeVerdict RangeRow::*verdict) {
  std::array<std::int64_t, 3> counts{};
  for (const RangeRow &row : table.rows)
    ++counts[static_cast<std::size_t>(row.*verdict)];
  return absl::StrCat(what, ": ", counts[0], " cannot, ", counts[1], " may, ", counts[2], " will");
}

static std::string derivedText(const RangeTable &table) {
  if (table.derived_scale == 0)
    return table.unknown == 0 ? "derived loss scale: none, no f16 tensor grows with a scale\n"
                              : absl::StrCat("derived loss scale: none, nothing is expected of ",
                                             FormatCounted(table.unknown, "tensor"), " that grow with it\n");
  std::string text = absl::StrFormat("derived loss scale: %.10g, where %s is expected to reach %.3g\n",
                                     table.derived_scale, table.derived_from, table.derived_peak * table.derived_scale);
  if (table.unknown > 0)
    absl::StrAppend(&text, "of ", FormatCounted(table.unknown, "tensor"), " nothing is expected\n");
  return text;
}

std::string PrintRanges(const RangeTable &table, const RangeAssumptions &assumptions) {
  TextTable rows({"#", "op", "Cell", "direction", "type", "bounds", "expected", "overflow", "underflow"});
  std::int64_t ordinal = 0;
  for (const RangeRow &row : table.rows)
    rows.add({absl::StrCat(++ordinal), row.op, placeOf(row), row.backward ? "backward" : "forward", row.type,
              absl::StrFormat("[%.4g, %.4g]", row.low, row.high), numberText(row.expected), wordOf(row.overflow),
              wordOf(row.underflow)});
  std::string text = assumedText(table, assumptions);
  if (table.rows.empty())
    absl::StrAppend(&text, "no tensor has a 16-bit type\n");
  else
    absl::StrAppend(&text, rows.print(), "\n",
                    FormatCounted(static_cast<std::int64_t>(table.rows.size()), "low tensor"), "; ",
                    countsText(table, "overflow", &RangeRow::overflow), "; ",
                    countsText(table, "underflow to zero", &RangeRow::underflow), "\n");
  absl::StrAppend(&text, derivedText(table));
  if (!table.unbounded.empty())
    absl::StrAppend(&text, "nothing is known of the results of ", absl::StrJoin(table.unbounded, ", "), "\n");
  for (const std::string &warning : OverflowWarnings(table))
    absl::StrAppend(&text, "\nwarning: ", warning, "\n");
  return text;
}

std::vector<std::string> OverflowWarnings(const RangeTable &table) {
  std::vector<std::string> warnings;
  for (const RangeRow &row : table.rows) {
    if (row.overflow != RangeVerdict::Will)
      continue;
    std::string text = absl::StrFormat("%s%s%s will overflow %s: one element is at least %.4g in size", row.op,
                                       row.path.empty() ? "" : " in ", row.path, row.type, row.peak);
    for (const std::string &link : row.chain)
      absl::StrAppend(&text, "\n  ", link);
    warnings.push_back(text);
  }
  return warnings;
}

} // namespace mpc::compiler
