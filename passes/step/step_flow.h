// Finds which losses a training step differentiates, and what their gradients and forward values reach.
#pragma once

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/state_attributes.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/StringMap.h"

#include <string>

namespace mpc {

/// An mpc.value_and_grad or mpc.backward.
struct GradientRequest {
  mlir::Operation *Op = nullptr;
  mlir::Value Loss;
  llvm::SmallVector<mlir::Value> Gradients;
  llvm::SmallVector<mlir::Value> DifferentiatedBy; ///< what the gradients are of, in their order
  int64_t LossId = -1;

  mlir::OpOperand &seed() const;
};

/// The state that an update chain starts from: follows \p New through state updates to their state operands.
mlir::Value stateBefore(mlir::Value New);

/// A set of requests by their place in the step.
using RequestSet = llvm::SmallBitVector;

/// Looks at the first block of a function, where no operation has a region of its own but guarded updates.
///
/// Gradients and forward values are followed through every operation but state updates. A skipped state update keeps
/// its state, so nothing that is not finite passes it.
class StepFlow {
public:
  explicit StepFlow(mlir::func::FuncOp Function);

  llvm::ArrayRef<GradientRequest> requests() const { return Requests; }

  /// The requests whose gradients reach \p V.
  RequestSet gradientsInto(mlir::Value V) const;
  /// The requests that decide whether state update \p Op happens. For an optimizer they are those whose gradients reach
  /// any of its updates. The updates of one scope path form an optimizer. Without a path, the updates that read one
  /// counter do, and a counter of role "step" belongs to all of them. For running statistics they are the requests
  /// whose forward pass their batch feeds. Empty: no request in particular.
  RequestSet deciding(mlir::Operation *Op) const;
  /// Whether gradients reach \p Op, or the optimizer it belongs to.
  bool isOptimizer(mlir::Operation *Op) const;
  /// The requests behind a state value that no update computes, and whether gradients or updates are among what it is
  /// computed from.
  RequestSet behind(mlir::Value V, bool &FollowsUpdate) const;
  /// Whether the loss of \p Request depends on \p Op, through state updates too.
  bool lossDependsOn(unsigned Request, mlir::Operation *Op) const { return FullSlices[Request].contains(Op); }

  /// Whether a check of \p Request may wait for \p Op: it follows from no update but those that the loss follows from.
  bool precedesUpdatesOf(mlir::Operation *Op, unsigned Request) const;

  /// The role of the function argument that \p State is, or follows from through updates; none for other values.
  std::optional<Role> roleOf(mlir::Value State) const { return mpc::roleOf(stateBefore(State)); }
  /// The name of gradient \p Position of \p Request in messages and state: the parameter's name, or "gradient3".
  std::string gradientName(unsigned Request, unsigned Position) const;

private:
  using Slice = llvm::DenseSet<mlir::Operation *>;

  void collectRequests();
  void followGradients();
  void followForward();
  void collectOptimizers();
  RequestSet none() const { return RequestSet(Requests.size()); }
  /// Returns the requests whose gradients reach an operand of \p Op.
  RequestSet gradientsReadBy(mlir::Operation *Op) const;
  RequestSet feeding(mlir::Operation *Update) const;

  mlir::Block &Body;
  llvm::SmallVector<GradientRequest> Requests;
  llvm::DenseMap<mlir::Value, RequestSet> Gradients;
  llvm::SmallVector<Slice> Slices;     ///< what each loss is computed from, up to state updates
  llvm::SmallVector<Slice> FullSlices; ///< what each loss is computed from, through state updates
  llvm::StringMap<RequestSet> ByPath;
  llvm::DenseMap<mlir::Value, RequestSet> ByCounter;
  RequestSet WithoutPath;
};

} // namespace mpc
