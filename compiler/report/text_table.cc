#include "compiler/report/text_table.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "absl/strings/str_cat.h"

namespace mpc::compiler {

static std::string withUnit(double value, double step, const std::vector<const char *> &units) {
  std::size_t unit = 0;
  for (; value >= step && unit + 1 < units.size(); ++unit)
    value /= step;
  std::array<char, 48> text;
  std::snprintf(text.data(), text.size(), "%.1f %s", value, units[unit]);
  return text.data();
}

std::string FormatCount(std::int64_t number) {
  std::string digits = std::to_string(number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3; at -= 3)
    digits.insert(at - 3, ",");
  return digits;
}

std::string FormatBytes(std::int64_t bytes) {
  if (bytes < 1024)
    return absl::StrCat(bytes, bytes == 1 ? " byte" : " bytes");
  return withUnit(static_cast<double>(bytes) / 1024, 1024, {"KiB", "MiB", "GiB", "TiB"});
}

std::string FormatCounted(std::int64_t number, const char *singular) {
  return absl::StrCat(FormatCount(number), " ", singular, number == 1 ? "" : "s");
}

std::string FormatFlops(double flops) {
  return withUnit(flops / 1e3, 1000, {"kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"});
}

void TextTable::add(std::vector<std::string> row) {
  columnWidths.resize(std::max(columnWidths.size(), row.size()), 0);
  for (std::size_t i = 0; i < row.size(); ++i)
    columnWidths[i] = std::max(columnWidths[i], row[i].size());
  tableRows.push_back(std::move(row));
}

std::string TextTable::print() const {
  std::string text;
  for (const std::vector<std::string> &row : tableRows) {
    std::string line = " ";
    for (std::size_t i = 0; i < row.size(); ++i)
      absl::StrAppend(&line, " ", row[i], std::string(columnWidths[i] - row[i].size() + 1, ' '));
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

} // namespace mpc::compiler
