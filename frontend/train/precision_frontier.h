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

struct PrecisionFrontierOptions {
  std::int64_t points = 5;   ///< corners of the hull that are run, >= 1
  std::int64_t steps = 10;   ///< timed runs of each, >= 1
  std::int64_t batches = 4;  ///< batches of the data set that errors are measured on, >= 1
  SlotErrorSource slot_errors = SlotErrorSource::kEstimated;
  std::int64_t directions = 2;  ///< random directions of an estimate, >= 1; each takes two f32 steps a batch
  /// > 0: corners are bisected for this error. The fastest of those that were run and keep it (Point::Keeps) is chosen.
  std::optional<double> max_gradient_error;
  /// What predicted times follow from. Unset: the rates of this device, which are measured. `compiler::DeviceRates{}`:
  /// those that come with mpc, of a device with fast low matrix units.
  std::optional<compiler::DeviceRates> rates;
};

/// The lower hull of predicted time and error, and what some of its corners came to when they were run.
///
/// The error of a precision is that of the gradient of all parameters, relative, in the l2 norm. It is against the same
/// step at O0 from the same bits: parameters, batch, random numbers. The measured error of a point is the largest of
/// its batches. docs/amp.md derives the prediction.
struct PrecisionFrontier {
  struct Point {
    compiler::ChosenPrecision precision;
    std::int64_t low_slots = 0;
    double predicted_seconds = 0;  ///< time of casts, and what f32 slots take longer than low ones, in the forward pass
    double predicted_error = 0;
    double measured_error = 0;    ///< the largest of the batches
    double error_spread = 0;      ///< the largest of the batches less the least: what another batch may add
    double loss_error = 0;        ///< relative, the largest of the batches
    double measured_seconds = 0;  ///< median time of loss and gradients, without the update

    /// Whether an error of `limit` is kept, also where another batch adds the spread.
    bool Keeps(double limit) const { return measured_error + error_spread <= limit; }
  };

  std::int64_t open_slots = 0;
  std::int64_t measured_slots = 0;            ///< those that were run as the only low one
  std::map<std::string, double> slot_errors;  ///< errors of the gradient, by the slot that alone is low
  std::int64_t corners = 0;                   ///< size of the whole hull
  std::vector<Point> points;                  ///< the fastest first
  std::optional<std::size_t> chosen;          ///< a place in `points`, where an error was given

  /// A table for a terminal.
  std::string Table() const;
  /// Spearman's rank correlation of the predicted and the measured errors of the points; NaN for fewer than two.
  double RankCorrelation() const;
};

}  // namespace mpc
