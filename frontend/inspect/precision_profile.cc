#include "frontend/inspect/precision_profile.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/atomic_file.h"
#include "runtime/file_content.h"

namespace mpc {
namespace {

using Json = nlohmann::ordered_json;
using Exponents = std::array<std::int64_t, 256>;

constexpr int kBias = 127;
constexpr int kLargestScaleExponent = 24;

/// Exponents at which a low type stops holding values.
struct Range {
  int lost_below;       ///< magnitudes under 2^this round to zero
  int subnormal_below;  ///< under 2^this they lose bits
  int overflown_from;   ///< from 2^this they are infinite
};

Range RangeOf(DType low) {
  const DTypeInfo& info = InfoOf(low);
  return {info.least_exponent - info.precision, info.least_exponent, info.largest_exponent + 1};
}

std::int64_t Total(const Exponents& exponents) {
  return std::accumulate(exponents.begin(), exponents.end(), std::int64_t{0});
}

int ExponentOf(double scale) { return std::ilogb(scale); }

/// Moves finite non-zero magnitudes by a power of two.
Exponents Shifted(const Exponents& exponents, int by) {
  Exponents moved{};
  moved[0] = exponents[0];
  moved[255] = exponents[255];
  for (int bin = 1; bin < 255; ++bin) moved[std::clamp(bin + by, 1, 254)] += exponents[bin];
  return moved;
}

/// Parameters and inputs belong to no operation's row.
bool IsComputed(const ValueStatistics& value) {
  return value.operation != "parameter" && value.operation != "statistic" && value.operation != "input";
}

std::string DirectionOf(const PrecisionProfile::Row& row) { return row.backward ? "gradients" : "activations"; }

Json ToJsonObject(const PrecisionProfile::Loss& loss) {
  return {{"lost", loss.lost}, {"subnormal", loss.subnormal}, {"overflown", loss.overflown}};
}

/// Errors: the profile of `path` is of another type than `low`, or does not say of which.
absl::Status CheckLowType(const std::string& path, const Json& profile, std::optional<DType> low) {
  if (!low.has_value()) return absl::OkStatus();
  const auto found = profile.find("low");
  if (found == profile.end() || !found->is_string()) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is no precision profile: it has no \"low\", its type"));
  }
  const std::string name(DTypeName(*low)), given = *found;
  if (given == name) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path, " is a profile of ", given, ", and the low type here is ", name,
                                                 ": other values are lost; make a profile with this type"));
}

}  // namespace

void PrecisionProfile::Add(const std::vector<ValueStatistics>& values, double loss_scale) {
  current_scale_ = loss_scale;
  for (const ValueStatistics& value : values) {
    if (!IsComputed(value)) continue;
    auto row = std::find_if(rows_.begin(), rows_.end(), [&](const Row& existing) {
      return existing.cell == value.cell && existing.backward == value.backward;
    });
    if (row == rows_.end()) {
      rows_.push_back({value.cell, value.backward, {}, 0, 0});
      row = rows_.end() - 1;
    }
    const int shift = value.backward ? -ExponentOf(loss_scale) : 0;
    const Exponents unscaled = Shifted(value.exponents, shift);
    for (std::size_t bin = 0; bin < unscaled.size(); ++bin) row->exponents[bin] += unscaled[bin];
    row->zeros += value.zeros;
    row->largest = std::max(row->largest, std::ldexp(value.largest, shift));
  }
}

PrecisionProfile::Loss PrecisionProfile::LossOfRow(const Row& row, double scale) const {
  const Range range = RangeOf(low_);
  const int shift = row.backward ? ExponentOf(scale) : 0;
  // f32 subnormals share a bin with zeros; bfloat16 holds what f32 does.
  std::int64_t lost = low_ == DType::kF16 ? row.exponents[0] - row.zeros : 0, subnormal = 0,
               overflown = row.exponents[255];
  for (int bin = 1; bin < 255; ++bin) {
    const int exponent = bin - kBias + shift;
    if (exponent < range.lost_below) {
      lost += row.exponents[bin];
    } else if (exponent < range.subnormal_below) {
      subnormal += row.exponents[bin];
    } else if (exponent >= range.overflown_from) {
      overflown += row.exponents[bin];
    }
  }
  const double total = static_cast<double>(std::max<std::int64_t>(1, Total(row.exponents)));
  return {static_cast<double>(lost) / total, static_cast<double>(subnormal) / total,
          static_cast<double>(overflown) / total};
}

double PrecisionProfile::best_scale() const {
  double best = 1;
  auto best_cost = std::make_tuple(std::numeric_limits<double>::infinity(), 0.0, 0.0);
  for (int exponent = 0; exponent <= kLargestScaleExponent; ++exponent) {
    const double scale = std::ldexp(1.0, exponent);
    double lost = 0, subnormal = 0, overflown = 0;
    for (const Row& row : rows_) {
      if (!row.backward) continue;
      const double elements = static_cast<double>(Total(row.exponents));
      const Loss loss = LossOfRow(row, scale);
      lost += loss.lost * elements;
      subnormal += loss.subnormal * elements;
      overflown += loss.overflown * elements;
    }
    const auto cost = std::make_tuple(overflown, lost, subnormal);
    if (cost < best_cost) std::tie(best, best_cost) = std::make_tuple(scale, cost);
  }
  return best;
}

std::vector<std::string> PrecisionProfile::LossyCells(double limit) const {
  std::vector<std::string> cells;
  const double scale = best_scale();
  for (const Row& row : rows_) {
    const Loss loss = LossOfRow(row, scale);
    if (loss.lost + loss.overflown <= limit || row.cell.empty()) continue;
    if (std::find(cells.begin(), cells.end(), row.cell) == cells.end()) cells.push_back(row.cell);
  }
  return cells;
}

std::string PrecisionProfile::Table() const {
  const double best = best_scale();
  std::string text = absl::StrFormat("precision profile for %s: loss scale %.10g, best %.10g\n",
                                     std::string(DTypeName(low_)), current_scale_, best);
  absl::StrAppendFormat(&text, "%-28s %-11s %10s %10s %7s | %-23s | %-23s\n", "", "", "", "", "",
                        "at the current scale", "at the best scale");
  absl::StrAppendFormat(&text, "%-28s %-11s %10s %10s %7s | %7s %7s %7s | %7s %7s %7s\n", "Cell", "values", "elements",
                        "largest", "zero %", "lost %", "subn. %", "over %", "lost %", "subn. %", "over %");
  for (const Row& row : rows_) {
    const Loss now = LossOfRow(row, current_scale_), then = LossOfRow(row, best);
    const std::int64_t total = Total(row.exponents);
    absl::StrAppendFormat(
        &text, "%-28s %-11s %10d %10.3g %7.2f | %7.2f %7.2f %7.2f | %7.2f %7.2f %7.2f\n", row.cell, DirectionOf(row),
        total, row.largest,
        100.0 * static_cast<double>(row.zeros) / static_cast<double>(std::max<std::int64_t>(1, total)), 100 * now.lost,
        100 * now.subnormal, 100 * now.overflown, 100 * then.lost, 100 * then.subnormal, 100 * then.overflown);
  }
  return text;
}

std::string PrecisionProfile::ToJson() const {
  const double best = best_scale();
  Json rows = Json::array();
  for (const Row& row : rows_) {
    Json exponents = Json::object();
    for (int bin = 1; bin < 255; ++bin) {
      if (row.exponents[bin] != 0) exponents[std::to_string(bin - kBias)] = row.exponents[bin];
    }
    rows.push_back({{"cell", row.cell},
                    {"direction", DirectionOf(row)},
                    {"elements", Total(row.exponents)},
                    {"zeros", row.zeros},
                    {"not_finite", row.exponents[255]},
                    {"largest", row.largest},
                    {"exponents", std::move(exponents)},
                    {"current", ToJsonObject(LossOfRow(row, current_scale_))},
                    {"best", ToJsonObject(LossOfRow(row, best))}});
  }
  const Json profile = {{"low", std::string(DTypeName(low_))},
                        {"current_scale", current_scale_},
                        {"best_scale", best},
                        {"rows", std::move(rows)}};
  return profile.dump(1) + "\n";
}

std::string PrecisionProfile::ToSvg() const {
  constexpr int kFirst = -48, kLast = 24, kCell = 8, kRow = 14, kLabel = 300, kTop = 40;
  const Range range = RangeOf(low_);
  const double best = best_scale();
  const int width = kLabel + (kLast - kFirst + 1) * kCell + 10;
  const int height = kTop + static_cast<int>(rows_.size()) * kRow + 20;
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"monospace\" "
      "font-size=\"10\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
      "<text x=\"4\" y=\"14\">exponents at loss scale %.10g (best %.10g); lines: limits of %s</text>\n",
      width, height, current_scale_, best, std::string(DTypeName(low_)));
  const auto x_of = [&](int exponent) { return kLabel + (exponent - kFirst) * kCell; };
  for (int exponent = kFirst; exponent <= kLast; exponent += 8) {
    absl::StrAppendFormat(&svg, "<text x=\"%d\" y=\"%d\">2^%d</text>\n", x_of(exponent), kTop - 6, exponent);
  }
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    const Exponents shown = Shifted(row.exponents, row.backward ? ExponentOf(current_scale_) : 0);
    const int y = kTop + static_cast<int>(i) * kRow;
    absl::StrAppendFormat(&svg, "<text x=\"4\" y=\"%d\">%s %s</text>\n", y + kRow - 4, row.cell, DirectionOf(row));
    const std::int64_t most = *std::max_element(shown.begin() + 1, shown.begin() + 255);
    for (int exponent = kFirst; exponent <= kLast && most > 0; ++exponent) {
      const std::int64_t elements = shown[exponent + kBias];
      if (elements == 0) continue;
      // Square root: rare exponents stay visible.
      const double shade = std::sqrt(static_cast<double>(elements) / static_cast<double>(most));
      absl::StrAppendFormat(&svg,
                            "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\" "
                            "fill-opacity=\"%.3f\"/>\n",
                            x_of(exponent), y + 1, kCell, kRow - 2, row.backward ? "#b03030" : "#2050a0",
                            std::max(0.05, shade));
    }
  }
  for (const int limit : {range.lost_below, range.subnormal_below, range.overflown_from}) {
    if (limit < kFirst || limit > kLast) continue;
    absl::StrAppendFormat(&svg, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"black\"/>\n", x_of(limit), kTop,
                          x_of(limit), height - 20);
  }
  return svg + "</svg>\n";
}

absl::Status PrecisionProfile::Save(const std::string& path) const {
  std::string content;
  if (absl::EndsWith(path, ".json")) {
    content = ToJson();
  } else if (absl::EndsWith(path, ".svg")) {
    content = ToSvg();
  } else if (absl::EndsWith(path, ".txt")) {
    content = Table();
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("a precision profile is written as .txt, .json or .svg, got '", path, "'"));
  }
  return runtime::WriteTextFile(path, content);
}

absl::StatusOr<std::vector<std::string>> LossyCellsOfProfile(const std::string& path, const LossyCellOptions& options) {
  absl::StatusOr<std::vector<std::uint8_t>> content = runtime::ReadFileContent(path);
  if (!content.ok()) return content.status();
  const Json profile = Json::parse(content->begin(), content->end(), nullptr, /*allow_exceptions=*/false);
  const auto malformed = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is no precision profile: ", what));
  };
  if (!profile.is_object() || !profile.contains("rows") || !profile["rows"].is_array()) {
    return malformed("it has no \"rows\"");
  }
  if (absl::Status status = CheckLowType(path, profile, options.low); !status.ok()) return status;
  std::vector<std::string> cells;
  for (const Json& row : profile["rows"]) {
    const Json best = row.is_object() ? row.value("best", Json::object()) : Json::object();
    if (!row.is_object() || !row.contains("cell") || !row["cell"].is_string() || !best.contains("lost") ||
        !best["lost"].is_number() || !best.contains("overflown") || !best["overflown"].is_number()) {
      return malformed("a row needs \"cell\" and \"best\" with \"lost\" and \"overflown\"");
    }
    const std::string cell = row["cell"];
    const bool lossy = best["lost"].get<double>() + best["overflown"].get<double>() > options.limit;
    if (lossy && !cell.empty() && std::find(cells.begin(), cells.end(), cell) == cells.end()) cells.push_back(cell);
  }
  return cells;
}

}  // namespace mpc
