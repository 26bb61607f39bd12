#include "compiler/report/text_table.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "absl/strings/str_cat.h"

namespace mpc::compiler {

static std::string withUnit(double Value, double Step, const std::vector<const char *> &Units) {
  std::size_t Unit = 0;
  for (; Value >= Step && Unit + 1 < Units.size(); ++Unit)
    Value /= Step;
  std::array<char, 48> Text;
  std::snprintf(Text.data(), Text.size(), "%.1f %s", Value, Units[Unit]);
  return Text.data();
}

std::string FormatCount(std::int64_t Number) {
  std::string Digits = std::to_string(Number);
  for (std::size_t At = Digits.size(); At > 3; At -= 3)
    Digits.insert(At - 3, ",");
  return Digits;
}

std::string FormatBytes(std::int64_t Bytes) {
  if (Bytes < 1024)
    return absl::StrCat(Bytes, Bytes == 1 ? " byte" : " bytes");
  return withUnit(static_cast<double>(Bytes) / 1024, 1024, {"KiB", "MiB", "GiB", "TiB"});
}

std::string FormatCounted(std::int64_t Number, const char *Singular) {
  return absl::StrCat(FormatCount(Number), " ", Singular, Number == 1 ? "" : "s");
}

std::string FormatFlops(double Flops) {
  return withUnit(Flops / 1e3, 1000, {"kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"});
}

void TextTable::add(std::vector<std::string> Row) {
  widths_.resize(std::max(widths_.size(), Row.size()), 0);
  for (std::size_t I = 0; I < Row.size(); ++I)
    widths_[I] = std::max(widths_[I], Row[I].size());
  rows_.push_back(std::move(Row));
}

std::string TextTable::print() const {
  std::string Text;
  for (const std::vector<std::string> &Row : rows_) {
    std::string Line = " ";
    for (std::size_t I = 0; I < Row.size(); ++I)
      absl::StrAppend(&Line, " ", Row[I], std::string(widths_[I] - Row[I].size() + 1, ' '));
    Line.erase(Line.find_last_not_of(' ') + 1);
    absl::StrAppend(&Text, Line, "\n");
  }
  return Text;
}

} // namespace mpc::compiler
