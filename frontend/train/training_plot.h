// A picture of a run. MindSpore has none; its MindInsight draws in a browser.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "frontend/train/callback.h"
#include "frontend/train/plot_series.h"

namespace mpc {

struct TrainingPlotOptions {
  std::string filename;  ///< ends in ".svg"; its folder exists
  std::string title = "training";
};

/// Draws the numbers of a run over the global step as one SVG file. The file is written anew at the end of every epoch.
/// It shows the loss, results of evaluation and the loss scale. With ModelOptions::record_learning_rate it shows the
/// learning rate, too. Skipped steps are marked. Results whose names have "loss" in them are drawn beside the loss.
/// Those from 0 to 1 share a panel, and each other one has its own.
///
///     TrainingPlot plot({.filename = "run.svg"});
///     absl::Status trained = model.Fit(10, train_set, valid_set, {}, {plot});
///
/// A new run begins a new picture, and a resumed run draws what it trains itself. Thousands of steps are thinned: the
/// line is a mean, before a band from the lowest to the highest value. So the file stays below 40 KiB for each line.
/// The file is made beside its place, synced and renamed: a reader sees a whole picture. Numbers are the records of the
/// step: no step waits for the plot on a device that runs ahead. A file that cannot be written ends the run with an
/// error, before its first step where that can be told.
class TrainingPlot : public Callback {
 public:
  explicit TrainingPlot(TrainingPlotOptions options);

  /// Adds results of an evaluation that is not Model::Fit's, measured after `global_step` of this run.
  void AddEvaluation(std::int64_t global_step, const std::map<std::string, double>& results);
  /// The picture as it is now: XML.
  std::string Svg() const;

  void OnTrainBegin(RunContext& context) override;
  void OnStepEnd(RunContext& context) override;
  void OnEpochEnd(RunContext& context) override;

 private:
  absl::Status CheckOptions() const;

  TrainingPlotOptions options_;
  internal::PlotSeries losses_, learning_rates_, loss_scales_, skipped_;
  std::map<std::string, internal::PlotSeries> evaluations_;
  std::int64_t last_step_ = 0;
};

}  // namespace mpc
