// Runs precisions of a Model's step between the fastest and the most exact one. Not part of the public API.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "frontend/train/gradient_probe.h"
#include "frontend/train/precision_frontier.h"

namespace mpc {

/// Predicts and measures errors against the step at O0.
class Model::Impl::FrontierSearch {
 public:
  /// `batches`: one or more, of equal types.
  FrontierSearch(GradientProbe& probe, std::vector<data::Row> batches, const PrecisionFrontierOptions& options)
      : probe_(probe), batches_(std::move(batches)), options_(options) {}

  /// The errors with `slots`. Errors: a loss or gradient that is not finite at O0.
  absl::StatusOr<MeasuredErrors> Measure(const compiler::PrecisionMap& slots);

  /// The frontier of `network`, the name of the precisions that it gives. Errors also: no slot is open.
  absl::StatusOr<PrecisionFrontier> Run(const std::string& network);

 private:
  using SlotErrors = std::map<std::string, PrecisionErrors>;
  using Hull = std::vector<compiler::PredictedPrecision>;
  using Points = std::map<std::size_t, PrecisionFrontier::Point>;  ///< by the corner of the hull

  const std::string& low() const { return probe_.compile_options().dtype; }

  absl::Status RunExact();
  /// In f16 gradients need a scale. It is the largest power of 8 below 2^16 with which all of them are finite where
  /// every open slot is low.
  absl::Status ChooseSeed(const std::vector<std::string>& open);
  /// `measured` receives the number of slots that were run one by one.
  absl::StatusOr<SlotErrors> ErrorsOfSlots(const std::vector<std::string>& open, std::int64_t& measured);
  /// The roots of the mean squares over the batches.
  absl::StatusOr<PrecisionErrors> MeasureSlot(const std::vector<std::string>& open, const std::string& slot);
  absl::StatusOr<std::vector<compiler::PredictedPrecision>> Predict(const compiler::Module& traced,
                                                                    const SlotErrors& errors) const;
  PrecisionErrors PredictedErrors(const compiler::PredictedPrecision& corner) const;
  /// Runs corners into the points of `frontier`, the fastest first. The most exact one is always among them.
  absl::Status RunCorners(const std::string& network, const Hull& hull, PrecisionFrontier& frontier);
  absl::Status RunCorner(const std::string& network, const Hull& hull, std::size_t corner, Points& points);
  /// Looks for the fastest corner that keeps the limits, until `wanted` points have been run. The gradient's error
  /// falls from corner to corner. That of the loss is one draw a batch and may not. So where it is limited, runs that
  /// are left go to the corners before the one that was found, the nearest first.
  absl::Status Bisect(const std::string& network, const Hull& hull, std::size_t wanted, Points& points);
  bool limits_errors() const { return options_.max_gradient_error.has_value() || options_.max_loss_error.has_value(); }
  /// The fastest corner that is predicted to keep the limits.
  std::size_t PlaceWithin(const Hull& hull) const;
  absl::StatusOr<MeasuredErrors> RunErrors(const compiler::PrecisionMap& slots);
  /// Of what was compiled last, on batch number `batch`. Infinite where it is not finite.
  absl::StatusOr<PrecisionErrors> ErrorsOnBatch(std::size_t batch);
  absl::StatusOr<PrecisionFrontier::Point> RunPoint(const std::string& network,
                                                    const compiler::PredictedPrecision& corner);
  void Choose(PrecisionFrontier& frontier) const;

  GradientProbe& probe_;
  std::vector<data::Row> batches_;
  PrecisionFrontierOptions options_;
  std::vector<GradientProbe::LossAndGradients> exact_;
  double seed_ = 1;
};

}  // namespace mpc
