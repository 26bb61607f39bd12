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
  mlir::Operation *op = nullptr;
  mlir::Value loss;
  llvm::SmallVector<mlir::Value> gradients;
  llvm::SmallVector<mlir::Value> differentiatedBy; ///< what the gradients are of, in their order
  int64_t lossId = -1;

  mlir::OpOperand &seed() const;
};

/// Whether \p op asks for gradients that updates read: a request by values of the batch is an operation like others.
bool isLossRequest(mlir::Operation *op);

/// The state that an update chain starts from: follows \p updated through state updates to their state operands.
mlir::Value stateBefore(mlir::Value updated);

/// Whether state update \p op waits for a flag, which is its last operand then.
bool hasPredicate(mlir::Operation *op);

/// A set of requests by their place in the step.
using RequestSet = llvm::SmallBitVector;

/// Looks at the first block of a function, where no operation has a region of its own but guarded updates.
///
/// Gradients and forward values are followed through every operation but state updates. A skipped state update keeps
/// its state, so nothing that is not finite passes it.
class StepFlow {
public:
  explicit StepFlow(mlir::func::FuncOp function);

  llvm::ArrayRef<GradientRequest> getRequests() const { return requests; }

  /// The requests whose gradients reach \p v.
  RequestSet gradientsInto(mlir::Value v) const;
  /// The requests that decide whether state update \p op happens. For an optimizer they are those whose gradients reach
  /// any of its updates. The updates of one scope path form an optimizer. Without a path, the updates that read one
  /// counter do, and a counter of role "step" belongs to all of them. For running statistics they are the requests
  /// whose forward pass their batch feeds. Empty: no request in particular.
  RequestSet deciding(mlir::Operation *op) const;
  /// Whether gradients reach \p op, or the optimizer it belongs to, or \p op counts the steps of an optimizer.
  bool isOptimizer(mlir::Operation *op) const;
  /// Whether \p op moves the counter of a random generator.
  bool isGenerator(mlir::Operation *op) const;
  /// The requests behind a state value that no update computes, and whether gradients or updates are among what it is
  /// computed from. What has the scope path of an optimizer is decided as its updates are.
  RequestSet behind(mlir::Value v, bool &followsUpdate) const;
  /// Whether the loss of \p request depends on \p op, through state updates too.
  bool lossDependsOn(unsigned request, mlir::Operation *op) const { return fullSlices[request].contains(op); }

  /// Whether the loss of \p request is computed from \p op, or by it, with no state update between them.
  bool lossReads(unsigned request, mlir::Operation *op) const {
    return op && (op == requests[request].op || slices[request].contains(op));
  }

  /// Whether a check of \p request may wait for \p op: it follows from no update but those that the loss follows from.
  bool precedesUpdatesOf(mlir::Operation *op, unsigned request) const;

  /// The role of the function argument that \p state is, or follows from through updates; none for other values.
  std::optional<Role> roleOf(mlir::Value state) const { return mpc::roleOf(stateBefore(state)); }
  /// The name of gradient \p position of \p request in messages and state: the parameter's name, or "gradient3".
  std::string gradientName(unsigned request, unsigned position) const;

private:
  using Slice = llvm::DenseSet<mlir::Operation *>;

  void collectRequests();
  void followGradients();
  void followForward();
  void collectOptimizers();
  RequestSet none() const { return RequestSet(requests.size()); }
  /// Returns the requests whose gradients reach an operand of \p op.
  RequestSet gradientsReadBy(mlir::Operation *op) const;
  RequestSet feeding(mlir::Operation *update) const;

  mlir::Block &body;
  llvm::SmallVector<GradientRequest> requests;
  llvm::DenseMap<mlir::Value, RequestSet> gradients;
  llvm::SmallVector<Slice> slices;     ///< what each loss is computed from, up to state updates
  llvm::SmallVector<Slice> fullSlices; ///< what each loss is computed from, through state updates
  llvm::StringMap<RequestSet> byPath;
  llvm::DenseMap<mlir::Value, RequestSet> byCounter;
  RequestSet withoutPath;
};

} // namespace mpc
