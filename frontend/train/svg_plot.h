// Lines over the steps of a run as an SVG picture. Not part of the public API.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/train/plot_axis.h"
#include "frontend/train/plot_series.h"

namespace mpc::internal {

struct PlotLine {
  std::string name;
  const PlotSeries* series = nullptr;
  bool dots = false;  ///< marks each bin with a dot, as for evaluations
};

/// Lines that share an axis.
struct PlotPanel {
  std::string title;
  std::vector<PlotLine> lines;
  PlotAxis::Scale scale = PlotAxis::Scale::kLinear;
};

/// Panels below each other, over one axis of steps. The first one tells how many steps were skipped; ticks at the foot
/// of every panel show where. A line has a gap where no value is finite, and a cross at the head of its panel where
/// some value is not. Where a bin holds several steps, the line is their mean, before a band from the lowest to the
/// highest value.
///
/// The picture is well-formed XML without scripts, whatever the texts hold. Its size has a bound for each line. Colours
/// follow the reader's choice of a light or a dark page.
std::string DrawSvgPlot(const std::string& title, const std::vector<PlotPanel>& panels, const PlotSeries& skipped);

/// `text` as content of an XML element: control characters and bytes that are no UTF-8 become '?'. Text beyond 60 bytes
/// is cut.
std::string XmlText(std::string_view text);

}  // namespace mpc::internal
