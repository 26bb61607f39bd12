// Accumulation over micro-steps: one function, run once a micro-step, whose optimizers and scalers act in the last one.
#pragma once

#include "passes/step/process_mean.h"
#include "passes/step/step_edit.h"
#include "llvm/ADT/DenseMap.h"

#include <string>

namespace mpc {

/// The micro-step of a function and the accumulators that outlive it; and the processes that run micro-steps at once. A
/// step of one micro-step in one process has neither: what its methods are given they give back, and nothing is added.
/// Elsewhere addNumber, soFar and appendResults leave the builder behind what they add.
class MicroSteps {
public:
  MicroSteps(StepEdit &edit, int64_t count, GradientExchange exchange)
      : edit(edit), count(count), processes(exchange) {}

  /// Whether the function runs several times a step.
  bool accumulates() const { return count > 1; }
  /// Whether updates read a mean of gradients, over micro-steps or processes.
  bool takesMeans() const { return accumulates() || !processes.isAlone(); }
  /// The processes that run micro-steps at once.
  const ProcessMean &getProcesses() const { return processes; }
  /// Adds the number of the micro-step. It precedes the methods below.
  void addNumber();
  /// The number of the micro-step, from 0. Null: there is one.
  mlir::Value getNumber() const { return number; }
  /// Whether the micro-step is the last one. Null: there is one.
  mlir::Value getLast() const { return isLast; }

  /// What the checks of \p request found in the micro-steps so far, in all processes. \p found is what this
  /// micro-step's check finds. Of several bad gradients the largest position stays, and any position goes before -2.
  /// New operations stand behind the one that gives `found.firstBad`.
  Finding soFar(unsigned request, Finding found);
  /// In the last micro-step the mean of gradient \p position of \p request over all micro-steps and processes. Before
  /// it, a value that follows from the micro-steps so far. It is built where the builder stands. \p term is the
  /// unscaled gradient, or the scaled one where processes add low. The result has the type of \p term.
  mlir::Value meanSoFar(unsigned request, unsigned position, mlir::Value term);
  /// What state \p old was before the first micro-step. It is built once, behind \p old or, for an argument, behind a
  /// comparison of addNumber. The builder stays where it stands.
  mlir::Value beforeFirst(mlir::Value old);
  /// \p updated in the last micro-step and \p old before it, where the builder stands.
  mlir::Value inLast(mlir::Value updated, mlir::Value old);

  /// Returns the accumulators and the number of the next micro-step.
  void appendResults();

private:
  struct Accumulator {
    mlir::Value updated;
    std::string name;
  };

  mlir::Value sumSoFar(unsigned request, unsigned position, mlir::Value term);

  StepEdit &edit;
  int64_t count;
  ProcessMean processes;
  mlir::Value number, isFirst, isLast;
  llvm::SmallVector<Accumulator> accumulators;
  llvm::DenseMap<mlir::Value, mlir::Value> backups; ///< what state was before the first micro-step
};

} // namespace mpc
