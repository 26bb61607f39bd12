#include "frontend/train/training_plot.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "frontend/train/svg_plot.h"
#include "runtime/atomic_file.h"

namespace mpc {
namespace {

using internal::PlotLine;
using internal::PlotPanel;
using internal::PlotSeries;

bool IsLoss(const std::string& name) { return absl::StrContains(name, "loss"); }

/// Accuracies, precisions, areas.
bool IsShare(const PlotSeries& series) {
  return std::all_of(series.bins().begin(), series.bins().end(),
                     [](const PlotSeries::Bin& bin) { return bin.count == 0 || (bin.low >= 0 && bin.high <= 1); });
}

}  // namespace

TrainingPlot::TrainingPlot(TrainingPlotOptions options) : options_(std::move(options)) {}

absl::Status TrainingPlot::CheckOptions() const {
  if (options_.filename.empty()) return absl::InvalidArgumentError("TrainingPlot: filename is empty");
  if (!absl::EndsWith(options_.filename, ".svg")) {
    return absl::InvalidArgumentError(
        absl::StrCat("TrainingPlot: a picture is written as .svg, got '", options_.filename, "'"));
  }
  return runtime::CheckWritable(options_.filename);
}

void TrainingPlot::OnTrainBegin(RunContext& context) {
  losses_ = learning_rates_ = loss_scales_ = skipped_ = {};
  evaluations_.clear();
  last_step_ = context.global_step;
  context.Fail(CheckOptions());
}

void TrainingPlot::OnStepEnd(RunContext& context) {
  // While gradients are accumulated the global step stands still.
  if (context.global_step == last_step_) return;
  last_step_ = context.global_step;
  losses_.Add(last_step_, context.loss());
  loss_scales_.Add(last_step_, context.loss_scale);
  if (context.learning_rate.has_value()) learning_rates_.Add(last_step_, *context.learning_rate);
  if (context.overflow) skipped_.Add(last_step_, 1);
}

void TrainingPlot::OnEpochEnd(RunContext& context) {
  AddEvaluation(context.global_step, context.eval_results());
  if (context.failure().ok()) context.Fail(runtime::WriteTextFile(options_.filename, Svg()));
}

void TrainingPlot::AddEvaluation(std::int64_t global_step, const std::map<std::string, double>& results) {
  for (const auto& [name, value] : results) evaluations_[name].Add(global_step, value);
}

std::string TrainingPlot::Svg() const {
  std::vector<PlotPanel> panels = {{.title = "loss", .lines = {{"training", &losses_}}}};
  PlotPanel shares = {.title = "metrics"};
  std::vector<PlotPanel> others;
  for (const auto& [name, series] : evaluations_) {
    const PlotLine line = {.name = name, .series = &series, .dots = true};
    if (IsLoss(name)) {
      panels.front().lines.push_back(line);
    } else if (IsShare(series)) {
      shares.lines.push_back(line);
    } else {
      others.push_back({.title = name, .lines = {line}});
    }
  }
  if (!shares.lines.empty()) panels.push_back(std::move(shares));
  std::move(others.begin(), others.end(), std::back_inserter(panels));
  if (!learning_rates_.bins().empty()) panels.push_back({.title = "learning rate", .lines = {{"", &learning_rates_}}});
  panels.push_back(
      {.title = "loss scale", .lines = {{"", &loss_scales_}}, .scale = internal::PlotAxis::Scale::kBinary});
  return internal::DrawSvgPlot(options_.title, panels, skipped_);
}

}  // namespace mpc
