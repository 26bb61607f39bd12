#include "frontend/train/svg_plot.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mpc::internal {
namespace {

// Pixels.
constexpr double kWidth = 760;
constexpr double kLeft = 76;  ///< left end of the axis
constexpr double kRight = 20;
constexpr double kTop = 34;
constexpr double kHead = 30;     ///< height of a panel's title and names
constexpr double kHeight = 140;  ///< height of a panel without its head
constexpr double kBottom = 44;

constexpr std::size_t kColours = 5;
constexpr std::size_t kLongestName = 60;

constexpr char kStyle[] = R"(<style>
text { font: 12px system-ui, sans-serif; fill: #1f2328; }
.title { font-size: 14px; font-weight: 600; }
.head { font-weight: 600; }
.small { font-size: 11px; fill: #59636e; }
.grid { stroke: #d1d9e0; stroke-width: 1; }
.frame { fill: none; stroke: #8b949e; stroke-width: 1; }
.line { fill: none; stroke-width: 1.5; stroke-linejoin: round; stroke-linecap: round; }
.band { stroke: none; fill-opacity: 0.18; }
.c0 { stroke: #2f6fdb; } .c1 { stroke: #d9822b; } .c2 { stroke: #2d9f6f; } .c3 { stroke: #9a5fc9; }
.c4 { stroke: #59636e; }
.f0 { fill: #2f6fdb; } .f1 { fill: #d9822b; } .f2 { fill: #2d9f6f; } .f3 { fill: #9a5fc9; } .f4 { fill: #59636e; }
.skipped { stroke: #cf222e; stroke-width: 1.5; }
text.skips { fill: #cf222e; }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc; }
.small { fill: #9198a1; }
.grid { stroke: #3d444d; }
.skipped { stroke: #f85149; }
text.skips { fill: #f85149; }
}
</style>
)";

using Bin = PlotSeries::Bin;

/// Whether XML has the character of several bytes that begins with these. It has none that is longer than need be, or
/// beyond the last one. It has no halves of pairs of UTF-16, and no U+FFFE or U+FFFF.
bool IsCharacter(unsigned char first, unsigned char second, unsigned char third) {
  if (first == 0xE0) return second >= 0xA0;
  if (first == 0xED) return second < 0xA0;
  if (first == 0xEF) return second != 0xBF || third < 0xBE;
  if (first == 0xF0) return second >= 0x90;
  return first != 0xF4 || second < 0x90;
}

/// The bytes of the character of UTF-8 that `text` begins with; 0: there is none.
std::size_t CharacterLength(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const std::size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  return IsCharacter(first, byte(1), length > 2 ? byte(2) : 0) ? length : 0;
}

std::string Text(double x, double y, const char* attributes, std::string_view text) {
  return absl::StrFormat("<text x=\"%.1f\" y=\"%.1f\"%s>%s</text>\n", x, y, attributes, XmlText(text));
}

std::string Line(const std::string& kind, double x1, double y1, double x2, double y2) {
  return absl::StrFormat("<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", kind, x1, y1, x2,
                         y2);
}

/// The steps of everything that is drawn, as an axis.
PlotAxis StepAxis(const std::vector<PlotPanel>& panels, const PlotSeries& skipped) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max(), last = -1;
  const auto include = [&](const PlotSeries& series) {
    if (series.bins().empty()) return;
    first = std::min(first, series.bins().front().first_step);
    last = std::max(last, series.bins().back().last_step);
  };
  include(skipped);
  for (const PlotPanel& panel : panels) {
    for (const PlotLine& line : panel.lines) include(*line.series);
  }
  if (last < 0) return {PlotAxis::Scale::kWhole, 0, 1};
  // The axis begins at 0, but for a run that is the rest of a longer one.
  if (first < last / 4) first = 0;
  return {PlotAxis::Scale::kWhole, static_cast<double>(first == last ? first - 1 : first), static_cast<double>(last)};
}

/// From the lowest to the highest value. A logarithmic scale is left where a value is not positive, and taken where
/// values differ by a factor of 1000.
PlotAxis ValueAxis(const PlotPanel& panel) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const PlotLine& line : panel.lines) {
    for (const Bin& bin : line.series->bins()) {
      if (bin.count == 0) continue;
      low = std::min(low, bin.low);
      high = std::max(high, bin.high);
    }
  }
  if (low > high) return {PlotAxis::Scale::kLinear, 0, 1};
  PlotAxis::Scale scale = panel.scale;
  if (scale != PlotAxis::Scale::kLinear && low < 1e-300) scale = PlotAxis::Scale::kLinear;
  if (scale == PlotAxis::Scale::kLinear && low >= 1e-300 && high / low >= 1000) scale = PlotAxis::Scale::kDecimal;
  return {scale, low, high};
}

/// One panel whose head begins at `top`.
class PanelDrawing {
 public:
  PanelDrawing(const PlotPanel& panel, const PlotAxis& steps, double top)
      : panel_(panel), steps_(steps), values_(ValueAxis(panel)), top_(top + kHead) {}

  std::string Draw(const PlotSeries& skipped, bool names_steps) const {
    std::string svg = Grid(names_steps) + Head();
    for (std::size_t i = 0; i < panel_.lines.size(); ++i) {
      svg += Band(i) + Curve(i) + Dots(i) + Crosses(i);
    }
    std::string skips;
    for (const Bin& bin : skipped.bins()) skips += absl::StrFormat("M%.1f %.1fv-8", XOf(bin), top_ + kHeight);
    if (!skips.empty()) absl::StrAppend(&svg, "<path class=\"skipped\" d=\"", skips, "\"/>\n");
    return svg;
  }

 private:
  double XOf(double step) const { return kLeft + (kWidth - kLeft - kRight) * steps_.PlaceOf(step); }
  double XOf(const Bin& bin) const {
    return XOf((static_cast<double>(bin.first_step) + static_cast<double>(bin.last_step)) / 2);
  }
  double YOf(double value) const { return top_ + kHeight * (1 - values_.PlaceOf(value)); }
  static std::string Class(const char* letter, std::size_t line) { return absl::StrCat(letter, line % kColours); }

  std::string Grid(bool names_steps) const {
    std::string svg;
    for (const PlotAxis::Tick& tick : values_.ticks()) {
      const double y = top_ + kHeight * (1 - tick.place);
      svg += Line("grid", kLeft, y, kWidth - kRight, y);
      svg += Text(kLeft - 6, y + 4, " class=\"small\" text-anchor=\"end\"", tick.label);
    }
    for (const PlotAxis::Tick& tick : steps_.ticks()) {
      const double x = kLeft + (kWidth - kLeft - kRight) * tick.place;
      svg += Line("grid", x, top_, x, top_ + kHeight);
      if (names_steps) svg += Text(x, top_ + kHeight + 16, " class=\"small\" text-anchor=\"middle\"", tick.label);
    }
    return svg + absl::StrFormat("<rect class=\"frame\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
                                 kLeft, top_, kWidth - kLeft - kRight, kHeight);
  }

  /// The title, then each line's name and last value in its colour.
  std::string Head() const {
    const double y = top_ - 8;
    const std::string title = absl::StrCat(panel_.title, values_.logarithmic() ? ", logarithmic" : "");
    std::string svg = Text(kLeft, y, " class=\"head\"", title);
    double x = kLeft + 24 + 7 * static_cast<double>(std::min(title.size(), kLongestName));
    for (std::size_t i = 0; i < panel_.lines.size(); ++i) {
      const PlotLine& line = panel_.lines[i];
      const std::string last = line.series->count() > 0 ? " " + ValueText(line.series->last()) : "";
      svg += Line(absl::StrCat("line ", Class("c", i)), x, y - 4, x + 16, y - 4);
      svg += Text(x + 22, y, " class=\"small\"", line.name.substr(0, kLongestName - last.size()) + last);
      x += 46 + 6.5 * static_cast<double>(std::min(line.name.size() + last.size(), kLongestName));
    }
    return svg;
  }

  /// A loss scale is a power of two as a rule.
  std::string ValueText(double value) const {
    int exponent = 0;
    const bool power = panel_.scale == PlotAxis::Scale::kBinary && std::frexp(value, &exponent) == 0.5;
    return power ? PowerOfTwo(exponent - 1) : absl::StrFormat("%.4g", value);
  }

  /// Between the lowest and the highest value of each bin, for each run of bins that have any.
  std::string Band(std::size_t index) const {
    std::string svg, above, below;
    bool wide = false;
    const auto finish = [&] {
      if (wide) absl::StrAppend(&svg, "<path class=\"band ", Class("f", index), "\" d=\"M", above, below, "z\"/>\n");
      above.clear();
      below.clear();
      wide = false;
    };
    for (const Bin& bin : panel_.lines[index].series->bins()) {
      if (bin.count == 0) {
        finish();
        continue;
      }
      wide = wide || bin.high > bin.low;
      above += absl::StrFormat("%.1f %.1f ", XOf(bin), YOf(bin.high));
      below.insert(0, absl::StrFormat("%.1f %.1f ", XOf(bin), YOf(bin.low)));
    }
    finish();
    return svg;
  }

  std::string Curve(std::size_t index) const {
    std::string path;
    bool drawing = false;
    for (const Bin& bin : panel_.lines[index].series->bins()) {
      if (bin.count > 0) {
        // A point without neighbours is drawn by the round ends of a line without a length.
        path += absl::StrFormat("%s%.1f %.1f%s", drawing ? "L" : "M", XOf(bin), YOf(bin.mean), drawing ? "" : "h0");
      }
      drawing = bin.count > 0;
    }
    if (path.empty()) return "";
    return absl::StrCat("<path class=\"line ", Class("c", index), "\" d=\"", path, "\"/>\n");
  }

  std::string Dots(std::size_t index) const {
    std::string svg;
    if (!panel_.lines[index].dots) return svg;
    for (const Bin& bin : panel_.lines[index].series->bins()) {
      if (bin.count == 0) continue;
      absl::StrAppendFormat(&svg, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n", Class("f", index),
                            XOf(bin), YOf(bin.mean));
    }
    return svg;
  }

  std::string Crosses(std::size_t index) const {
    std::string path;
    for (const Bin& bin : panel_.lines[index].series->bins()) {
      if (bin.not_finite > 0) path += absl::StrFormat("M%.1f %.1fl6 6m0 -6l-6 6", XOf(bin) - 3, top_ + 3);
    }
    if (path.empty()) return "";
    return absl::StrCat("<path class=\"line ", Class("c", index), "\" d=\"", path, "\"/>\n");
  }

  const PlotPanel& panel_;
  const PlotAxis& steps_;
  PlotAxis values_;
  double top_;
};

}  // namespace

std::string XmlText(std::string_view text) {
  std::string escaped;
  std::size_t taken = 0;
  while (!text.empty() && taken < kLongestName) {
    const std::size_t length = CharacterLength(text);
    const auto byte = static_cast<unsigned char>(text[0]);
    if (length == 0 || byte < 0x20 || byte == 0x7F) {
      escaped += '?';
    } else if (text[0] == '&') {
      escaped += "&amp;";
    } else if (text[0] == '<') {
      escaped += "&lt;";
    } else if (text[0] == '>') {
      escaped += "&gt;";
    } else {
      escaped += text.substr(0, length);
    }
    taken += std::max<std::size_t>(length, 1);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return escaped;
}

std::string DrawSvgPlot(const std::string& title, const std::vector<PlotPanel>& panels, const PlotSeries& skipped) {
  const double height = kTop + (kHead + kHeight) * static_cast<double>(panels.size()) + kBottom;
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
      "role=\"img\">\n",
      kWidth, height, kWidth, height);
  absl::StrAppend(&svg, "<title>", XmlText(title), "</title>\n", kStyle);
  svg += Text(kLeft, 22, " class=\"title\"", title);
  if (skipped.count() > 0) {
    const std::string steps = skipped.count() == 1 ? "1 step skipped" : absl::StrCat(skipped.count(), " steps skipped");
    svg += Text(kWidth - kRight, 22, " class=\"skips\" text-anchor=\"end\"", steps);
  }
  const PlotAxis steps = StepAxis(panels, skipped);
  double top = kTop;
  for (const PlotPanel& panel : panels) {
    svg += PanelDrawing(panel, steps, top).Draw(skipped, &panel == &panels.back());
    top += kHead + kHeight;
  }
  svg += Text((kLeft + kWidth - kRight) / 2, top + 34, " class=\"small\" text-anchor=\"middle\"", "step");
  return svg + "</svg>\n";
}

}  // namespace mpc::internal
