#include "tools/mpc-bench/chart.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace mpc::tools {
namespace {

// Pixels.
constexpr double kChartWidth = 760;
constexpr double kLabels = 250;  ///< left of the bars
constexpr double kValues = 60;   ///< right of them
constexpr double kTop = 64;
constexpr double kBar = 16;
constexpr double kGap = 12;  ///< between groups
constexpr double kBottom = 34;
constexpr std::size_t kPeerColours = 4;

constexpr char kStyle[] = R"(<style>
text { font: 13px system-ui, sans-serif; fill: #1f2328; }
.title { font-weight: 600; }
.small { font-size: 11px; fill: #59636e; }
.grid { stroke: #d1d9e0; }
.one { stroke: #1f2328; stroke-dasharray: 4 3; }
.whisker { stroke: #1f2328; }
.peer0 { fill: #2f6fdb; } .peer1 { fill: #d9822b; } .peer2 { fill: #2d9f6f; } .peer3 { fill: #9a5fc9; }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc; }
.small { fill: #9198a1; }
.grid { stroke: #3d444d; }
.one, .whisker { stroke: #f0f6fc; }
.peer0 { fill: #5b93f0; } .peer1 { fill: #e39a4f; } .peer2 { fill: #45b788; } .peer3 { fill: #b583de; }
}
</style>
)";

struct Bar {
  std::size_t peer = 0;  ///< index of its name
  double median = 0, p5 = 0, p95 = 0;
};

struct Group {
  std::string label;
  std::string sizes;  ///< sizes of the network, where they are not as published
  std::vector<Bar> bars;

  double height() const {
    const double lines = sizes.empty() ? kBar : 2 * kBar;
    return std::max(lines, kBar * static_cast<double>(bars.size()));
  }
};

struct Bars {
  std::vector<std::string> peers;  ///< in order of appearance
  std::vector<Group> groups;
  double longest = 1;
};

std::string Label(const Json& row) {
  return absl::StrCat(row["model"].get<std::string>(), " b", row["batch"].get<std::int64_t>(), ", ",
                      row["mode"].get<std::string>());
}

/// "tokens 256, width 384".
std::string Sizes(const Json& row) {
  std::vector<std::string> sizes;
  for (const auto& [name, size] : row["sizes"].items()) sizes.push_back(absl::StrCat(name, " ", size.dump()));
  return absl::StrJoin(sizes, ", ");
}

Bars CollectBars(const std::vector<Json>& rows) {
  Bars found;
  for (const Json& row : rows) {
    if (!row.contains("peer")) continue;
    Group group = {.label = Label(row), .sizes = Sizes(row), .bars = {}};
    const Group* const last = found.groups.empty() ? nullptr : &found.groups.back();
    if (last == nullptr || last->label != group.label || last->sizes != group.sizes) {
      found.groups.push_back(std::move(group));
    }
    const std::string peer = row["peer"]["name"].get<std::string>();
    const auto known = std::find(found.peers.begin(), found.peers.end(), peer);
    const auto index = static_cast<std::size_t>(known - found.peers.begin());
    if (known == found.peers.end()) found.peers.push_back(peer);
    const Json& ratio = row["ratio"];
    found.groups.back().bars.push_back(
        {index, ratio["median"].get<double>(), ratio["p5"].get<double>(), ratio["p95"].get<double>()});
    found.longest = std::max(found.longest, found.groups.back().bars.back().p95);
  }
  return found;
}

std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

std::string Text(double x, double y, const std::string& attributes, const std::string& text) {
  return absl::StrFormat("<text x=\"%.1f\" y=\"%.1f\"%s>%s</text>\n", x, y, attributes, Escaped(text));
}

std::string Line(const char* kind, double x1, double y1, double x2, double y2) {
  return absl::StrFormat("<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", kind, x1, y1, x2,
                         y2);
}

std::string Rectangle(std::size_t peer, double x, double y, double width, double height) {
  return absl::StrFormat("<rect class=\"peer%d\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"2\"/>\n",
                         peer % kPeerColours, x, y, width, height);
}

/// 1, 2 or 5 times a power of ten: at most eight of them up to `longest`.
double GridStep(double longest) {
  for (double power = 0.1;; power *= 10) {
    for (const double step : {1.0, 2.0, 5.0}) {
      if (longest <= 8 * step * power) return step * power;
    }
  }
}

}  // namespace

std::string RatioChart(const std::vector<Json>& rows) {
  const Bars found = CollectBars(rows);
  double height = kTop + kBottom;
  for (const Group& group : found.groups) height += group.height() + kGap;
  const double scale = (kChartWidth - kLabels - kValues) / found.longest;
  const auto x_of = [&](double ratio) { return kLabels + scale * ratio; };

  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
      "role=\"img\" aria-label=\"Step time of each peer over that of mpc\">\n",
      kChartWidth, height, kChartWidth, height);
  svg += kStyle;
  svg += Text(8, 20, " class=\"title\"", "Step time of each peer over mpc's (above 1 mpc is faster)");
  double legend = 8;
  for (std::size_t peer = 0; peer < found.peers.size(); ++peer) {
    svg += Rectangle(peer, legend, 32, 12, 12);
    svg += Text(legend + 18, 42, "", found.peers[peer]);
    legend += 36 + 8 * static_cast<double>(found.peers[peer].size());
  }
  const double step = GridStep(found.longest);
  for (int line = 0; line * step <= found.longest; ++line) {
    const double ratio = line * step;
    svg += Line("grid", x_of(ratio), kTop - 6, x_of(ratio), height - kBottom);
    svg += Text(x_of(ratio), height - kBottom + 16, " class=\"small\" text-anchor=\"middle\"",
                absl::StrFormat("%g", std::round(ratio * 100) / 100));
  }
  double y = kTop;
  for (const Group& group : found.groups) {
    const double middle = y + group.height() / 2;
    svg += Text(kLabels - 10, group.sizes.empty() ? middle + 4 : middle - 3, " text-anchor=\"end\"", group.label);
    if (!group.sizes.empty()) {
      svg += Text(kLabels - 10, middle + 12, " class=\"small\" text-anchor=\"end\"", group.sizes);
    }
    double top = middle - kBar * static_cast<double>(group.bars.size()) / 2;
    for (const Bar& bar : group.bars) {
      svg += Rectangle(bar.peer, kLabels, top + 1, scale * bar.median, kBar - 2);
      svg += Line("whisker", x_of(bar.p5), top + kBar / 2, x_of(bar.p95), top + kBar / 2);
      svg += Text(x_of(bar.p95) + 6, top + kBar - 4, "", absl::StrFormat("%.2f", bar.median));
      top += kBar;
    }
    y += group.height() + kGap;
  }
  svg += Line("one", x_of(1), kTop - 6, x_of(1), height - kBottom);
  return svg + "</svg>\n";
}

}  // namespace mpc::tools
