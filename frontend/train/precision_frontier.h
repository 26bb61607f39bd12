// Precisions of a training step between the fastest and the most exact one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/options/compile_options.h"
#include "compiler/report/precision_file.h"

namespace mpc {

/// Where the error of a low slot comes from; docs/amp.md derives both.
enum class SlotErrorSource {
  kEstimated,  ///< a few f32 steps for all slots; slots inside functions that the network calls are measured
  kMeasured,   ///< each slot is compiled and run as the only low one
};

/// Which error of a precision.
enum class FrontierError { kGradient, kLoss };

/// Errors of a precision against the same step at O0 from the same bits: parameters, batch, random numbers. Both are
/// relative.
struct PrecisionErrors {
  double gradient = 0;  ///< error of the gradient of all parameters, in the l2 norm
  double loss = 0;      ///< error of the loss, without its sign

  double Of(FrontierError which) const { return which == FrontierError::kGradient ? gradient : loss; }
};

/// What a precision errs by on several batches.
struct MeasuredErrors {
  PrecisionErrors rms;      ///< the roots of the mean squares over the batches
  PrecisionErrors largest;  ///< those of the worst batch
  PrecisionErrors bound;    ///< the largest with its distance to the least added, which another batch may add
};

struct PrecisionFrontierOptions {
  std::int64_t points = 5;   ///< corners of the hull that are run, >= 1
  std::int64_t steps = 10;   ///< timed runs of each, >= 1
  std::int64_t batches = 4;  ///< batches of the data set that errors are measured on, >= 1
  SlotErrorSource slot_errors = SlotErrorSource::kEstimated;
  std::int64_t directions = 2;  ///< random directions of an estimate, >= 1; each takes two f32 steps a batch
  FrontierError weighed = FrontierError::kGradient;  ///< the error of the hull; the other one is predicted beside it
  /// Each > 0. With one or both, corners are bisected for them. The fastest of those that were run and keep them
  /// (Point::Keeps) is chosen.
  std::optional<double> max_gradient_error;
  std::optional<double> max_loss_error;
  /// What predicted times follow from. Unset: the rates of this device, which are measured. `compiler::DeviceRates{}`:
  /// those that come with mpc, of a device with fast low matrix units.
  std::optional<compiler::DeviceRates> rates;
};

/// The lower hull of predicted time and error, and what some of its corners came to when they were run. docs/amp.md
/// derives the predictions.
struct PrecisionFrontier {
  struct Point {
    compiler::ChosenPrecision precision;
    std::int64_t low_slots = 0;
    double predicted_seconds = 0;  ///< time of casts, and what f32 slots take longer than low ones, in the forward pass
    double measured_seconds = 0;   ///< median time of a training step, update included
    PrecisionErrors predicted;     ///< predictions of `measured.rms`
    MeasuredErrors measured;

    /// Whether the bounds of the errors that `options` limit are within these limits.
    bool Keeps(const PrecisionFrontierOptions& options) const;
  };

  std::int64_t open_slots = 0;
  std::int64_t measured_slots = 0;                     ///< those that were run as the only low one
  std::map<std::string, PrecisionErrors> slot_errors;  ///< by the slot that alone is low; at most 1
  std::int64_t corners = 0;                            ///< size of the whole hull
  std::vector<Point> points;                           ///< the fastest first
  std::optional<std::size_t> chosen;                   ///< a place in `points`, where an error was limited

  /// A table for a terminal.
  std::string Table() const;
  /// Spearman's rank correlation of the predicted errors of the points and `measured.rms`; NaN for fewer than two.
  double RankCorrelation(FrontierError of) const;
};

}  // namespace mpc
