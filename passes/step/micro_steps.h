// Accumulation over micro-steps: functions that run once a micro-step, and whose optimizers and scalers act in the
// last.
#pragma once

#include "passes/step/process_mean.h"
#include "passes/step/step_edit.h"
#include "llvm/ADT/DenseMap.h"

#include <string>

namespace mpc {

/// The micro-step of a function and the accumulators that outlive it; and the processes that run micro-steps at once. A
/// step of one micro-step in one process has neither: what its methods are given they give back, and nothing is added.
/// Elsewhere addNumber, soFar and appendResults leave the builder behind what they add.
///
/// One process that accumulates runs one function, which tells the last micro-step from the others. Of several
/// processes the last micro-step of each reduces. It is a function of its own, so that no condition decides about a
/// collective.
class MicroSteps {
public:
  /// \p count: micro-steps of each process. \p isLast: of several processes that accumulate, the function is the last
  /// micro-step of an update, else one before it.
  MicroSteps(StepEdit &edit, int64_t count, ProcessMean processes, bool isLast)
      : edit(edit), count(count), processes(processes), reduces(count == 1 || isLast) {}

  /// Whether the function runs several times a step.
  bool accumulates() const { return count > 1; }
  /// Whether the function itself finds out if it is the last micro-step.
  bool tellsLast() const { return accumulates() && processes.isAlone(); }
  /// Whether updates happen in the function, always or where a flag says so.
  bool updates() const { return reduces || processes.isAlone(); }
  /// Whether updates read a mean of gradients, over micro-steps or processes.
  bool takesMeans() const { return accumulates() || !processes.isAlone(); }
  /// Whether gradients are rounded to a low type where they are added. They are added while they are scaled, so that
  /// small ones stay.
  bool addsLow() const { return takesMeans() && processes.addsLow(); }
  /// Whether a sum of finite gradients may not be finite.
  bool mayOverflow() const { return addsLow() || (!processes.isAlone() && !processes.divides()); }
  const ProcessMean &getProcesses() const { return processes; }
  /// The micro-batches of an update, in all processes.
  int64_t batchesOfUpdate() const { return count * processes.size(); }

  /// Adds the number of the micro-step. It precedes the methods below.
  void addNumber();
  /// The number of the micro-step, from 0. Null: there is one.
  mlir::Value getNumber() const { return number; }
  /// Whether the micro-step is the last one. Null where tellsLast is false.
  mlir::Value getLast() const { return isLast; }
  /// Of several processes: the number of the micro-batch among those of the update, where \p builder stands.
  mlir::Value batchNumber(mlir::OpBuilder &builder, mlir::Location loc) const;

  /// What the checks of \p request found in the micro-steps so far, in all processes where the function reduces.
  /// \p found is what this micro-step's check finds, of norms too where \p hasNorms. Of several bad gradients the
  /// largest position stays. Any position goes before -2, and a gradient or a loss before a norm. New operations stand
  /// behind the one that gives `found.firstBad`.
  Finding soFar(unsigned request, Finding found, bool hasNorms);
  /// In the last micro-step the mean of gradient \p position of \p request over all micro-steps and processes. Before
  /// it, a value that follows from the micro-steps so far. It is built where the builder stands. \p term is the
  /// unscaled gradient, or the scaled one where addsLow. The result has the type of \p term.
  mlir::Value meanSoFar(unsigned request, unsigned position, mlir::Value term);
  /// The same of \p weight, a scalar of f32 that says what the micro-step counts. f32 adds it. \p name is that of its
  /// accumulators.
  mlir::Value meanOfWeights(llvm::StringRef name, mlir::Value weight);
  /// Of several processes: \p batch, a statistic of this micro-step that moves \p state, as those of all micro-batches.
  /// They are in the order of an update, along a first axis of batchesOfUpdate. Null where the function does not
  /// reduce.
  mlir::Value ofAllBatches(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value batch, mlir::Value state);
  /// What state \p old was before the first micro-step, where the function tells the last. It is built once, behind
  /// \p old or, for an argument, behind a comparison of addNumber. The builder stays where it stands.
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

  std::string accumulatorName(unsigned request, unsigned position) const;
  /// The sum over micro-steps, and over processes where the function reduces. \p by says what adds.
  mlir::Value sumSoFar(const ProcessMean &by, llvm::StringRef name, llvm::StringRef of, mlir::Value term);
  /// \p term such that its share of \p divisor micro-steps is rounded to the low type.
  mlir::Value withRoundedShare(mlir::Value term, int64_t divisor);

  StepEdit &edit;
  int64_t count;
  ProcessMean processes;
  bool reduces;
  mlir::Value number, isFirst, isLast;
  llvm::SmallVector<Accumulator> accumulators;
  llvm::DenseMap<mlir::Value, mlir::Value> backups; ///< what state was before the first micro-step
};

} // namespace mpc
