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

/// A position that a check finds, where it looks at norms behind the gradients. A norm of means is bad everywhere
/// because of one bad gradient. So it counts only where no gradient of any micro-step or process is bad.
class FindingBesideNorms {
public:
  /// \p found by a check of \p gradients, and norms behind them where \p hasNorms. New operations stand where the
  /// builder does.
  FindingBesideNorms(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value found, int64_t gradients, bool hasNorms);

  /// What is found of the gradients and the loss.
  mlir::Value getOfGradients() const { return ofGradients; }
  /// \p ofAll, which is what is found of all gradients, or the norm where that is nothing. It stands where the builder
  /// does.
  mlir::Value withNorms(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value ofAll) const;

private:
  mlir::Value ofGradients;
  mlir::Value ofNorms; ///< null: there are none
};

/// How processes that train together add their gradients.
struct GradientExchange {
  int64_t processes = 1;
  bool divides = true;      ///< by the number of processes, so that the sum is the mean
  mlir::FloatType low = {}; ///< what gradients are rounded to before they are added, and at each addition; null: f32
};

/// The finding of \p firstBad, where \p builder stands.
Finding findingOf(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value firstBad);

/// Adds to a step what it exchanges with other processes. Of one process alone the means are what they are made of, and
/// nothing is added. Results have the same bits in all processes.
class ProcessMean {
public:
  explicit ProcessMean(GradientExchange exchange) : exchange(exchange), processes(exchange.processes) {}

  int64_t size() const { return processes; }
  bool isAlone() const { return processes == 1; }
  /// Whether gradients are rounded to a low type where they are added, by one process too.
  bool addsLow() const { return bool(exchange.low); }
  /// The same processes, where f32 adds.
  ProcessMean inF32() const { return ProcessMean({exchange.processes, exchange.divides}); }
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
  mlir::Value agree(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value firstBad) const;

private:
  GradientExchange exchange;
  int64_t processes;
};

} // namespace mpc
