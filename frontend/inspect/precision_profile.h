// Which exponents a network's activations and gradients need, and what a low type would lose of them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "frontend/inspect/value_statistics.h"

namespace mpc {

/// Gathers the exponents of values of steps computed in f32. Says what the low type would lose of them at two loss
/// scales: the one they were taken at and the best one.
///
/// An element is *lost* in f16 if it is not zero and rounds to zero (below 2^-25), *subnormal* from there to 2^-14,
/// *overflown* from 2^16. The best scale is a power of two in [1, 2^24] without overflow in any gradient. Of these it
/// loses the fewest gradient elements, then has the fewest subnormal ones; the smallest of equals.
class PrecisionProfile {
 public:
  /// One row: the activations or the gradients of one Cell.
  struct Row {
    std::string cell;
    bool backward = false;
    std::array<std::int64_t, 256> exponents{};  ///< as in ValueStatistics
    std::int64_t zeros = 0;
    double largest = 0;
  };
  /// Shares of the elements, in [0, 1].
  struct Loss {
    double lost = 0;
    double subnormal = 0;
    double overflown = 0;
  };

  explicit PrecisionProfile(DType low = DType::kF16) : low_(low) {}

  /// Adds what the operations of one step computed; its gradients carry `loss_scale`.
  void Add(const std::vector<ValueStatistics>& values, double loss_scale);

  bool empty() const { return rows_.empty(); }
  const std::vector<Row>& rows() const { return rows_; }
  /// The scale of the last step.
  double current_scale() const { return current_scale_; }
  double best_scale() const;
  /// What the low type loses of a row at a scale (which acts on gradients alone).
  Loss LossOfRow(const Row& row, double scale) const;
  /// The Cells that level auto is told to keep in f32. More than `limit` of the elements of their activations or
  /// gradients are lost or overflown at the best scale.
  std::vector<std::string> LossyCells(double limit = 0.01) const;

  /// A table for a terminal.
  std::string Table() const;
  /// {"low", "current_scale", "best_scale", "rows": [{"cell", "direction", "elements", "zeros", "largest", "exponents":
  /// {"-3": n, ...}, "current": {"lost", "subnormal", "overflown"}, "best": {...}}]}.
  std::string ToJson() const;
  /// One strip of exponents a row, darker where more elements are, with the limits of the low type.
  std::string ToSvg() const;
  /// Writes table (.txt), JSON (.json) or picture (.svg) by the ending of `path`. The file is written beside `path`,
  /// synced and renamed. Errors: another ending; what writing reports.
  absl::Status Save(const std::string& path) const;

 private:
  DType low_;
  double current_scale_ = 1;
  std::vector<Row> rows_;  ///< gradients are kept without the scale
};

struct LossyCellOptions {
  double limit = 0.01;       ///< share of values, above which a Cell is lossy
  std::optional<DType> low;  ///< the type that the profile has to be of; none: any
};

/// The `lossy cells` of a profile that was saved as JSON. Errors: the path and what is wrong with it; a profile of
/// another low type than the options name.
absl::StatusOr<std::vector<std::string>> LossyCellsOfProfile(const std::string& path,
                                                             const LossyCellOptions& options = {});

}  // namespace mpc
