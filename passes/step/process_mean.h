// What a step does with values of the other processes that train together.
#pragma once

#include "compiler/dialect/dialect.h"

namespace mpc {

/// What a finite check finds.
struct Finding {
  mlir::Value finite; ///< whether all that it looks at is finite
  /// The position of the first gradient that is not; -1 where all is finite, -2 where the loss alone is not.
  mlir::Value firstBad;
};

/// How processes that train together add their gradients.
struct GradientExchange {
  int64_t processes = 1;
  bool divides = true;      ///< by the number of processes, so that the sum is the mean
  mlir::FloatType low = {}; ///< what gradients are rounded to before they are added, and at each addition; null: f32
};

/// Adds to a step what it exchanges with other processes. Of one process alone the means are what they are made of, and
/// nothing is added. Results have the same bits in all processes.
class ProcessMean {
public:
  explicit ProcessMean(GradientExchange exchange) : exchange(exchange), processes(exchange.processes) {}

  int64_t size() const { return processes; }
  bool isAlone() const { return processes == 1; }
  /// Whether gradients are rounded to a low type where they are added, by one process too.
  bool addsLow() const { return bool(exchange.low); }
  /// Whether the sum over processes is divided by their number.
  bool divides() const { return exchange.divides; }
  /// \p v, which is f32, rounded to the low type. It is \p v itself where f32 adds.
  mlir::Value rounded(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value v) const;
  /// The mean over processes of \p gradient, of its type, where the builder stands; or the sum. The low type adds, or
  /// f32.
  mlir::Value mean(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value gradient) const;
  /// The sum over processes of \p share where the builder stands. It has the type that adds.
  mlir::Value sum(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value share) const;
  /// What all of several processes found, where the builder stands. Of several bad gradients the largest position
  /// stays, and any position goes before -2.
  Finding agree(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value firstBad) const;

private:
  GradientExchange exchange;
  int64_t processes;
};

} // namespace mpc
