#include "passes/autodiff/reverse_sweep.h"

#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/operation_properties.h"
#include "compiler/dialect/tensor_values.h"
#include "compiler/dialect/vjp_support.h"

using namespace mlir;

namespace mpc {

/// How many operations of a path a message lists before it leaves out the middle.
static constexpr size_t maxPathNotes = 8;

ReverseSweep::ReverseSweep(Block &body, ArrayRef<Input> inputs, Operation *end) : body(body), end(end), inputs(inputs) {
  markActive();
}

llvm::iterator_range<Block::iterator> ReverseSweep::operations() {
  return {body.begin(), end ? end->getIterator() : body.end()};
}

//===-- Activity -------------------------------------------------------------------------------------------------===//

bool ReverseSweep::dependsOnInputs(Operation &op) const {
  // A region reads the values around it.
  WalkResult found = op.walk([&](Operation *nested) {
    bool depends = llvm::any_of(nested->getOperands(), [&](Value operand) { return active.contains(operand); });
    return depends ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found.wasInterrupted();
}

void ReverseSweep::markActive() {
  for (const Input &in : inputs)
    active.insert(in.value);
  for (Operation &op : operations()) {
    if (isa<StopGradientOp>(op) || !dependsOnInputs(op))
      continue;
    for (Value result : op.getResults())
      // Where nothing computes in a type, a derivative that reaches it is an error, not zero.
      if (isFloating(result) || isCastOnly(elementOf(result)))
        active.insert(result);
  }
}

//===-- The sweep ------------------------------------------------------------------------------------------------===//

namespace {

/// Marks each new operation and gives it the scope of the forward operation it comes from.
class BackwardListener final : public OpBuilder::Listener {
public:
  void setSource(Operation *op) { scope = op ? scopeOf(op) : ScopeAttr(); }
  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) override {
    markBackward(op);
    if (scope)
      setScope(op, scope);
  }

private:
  ScopeAttr scope;
};

} // namespace

FailureOr<SmallVector<Value>> ReverseSweep::run(Value lossValue, Value lossCotangent) {
  loss = lossValue;
  contributions[loss].push_back(lossCotangent);

  SmallVector<Operation *> forward;
  for (Operation &op : operations())
    forward.push_back(&op);

  BackwardListener listener;
  OpBuilder builder(loss.getContext(), &listener);
  builder.setInsertionPoint(&body, operations().end());
  for (Operation *op : llvm::reverse(forward)) {
    listener.setSource(op);
    if (failed(differentiate(*op, builder)))
      return failure();
  }

  SmallVector<Value> gradients;
  DenseMap<Value, Value> summed;
  for (const Input &in : inputs) {
    auto [entry, isNew] = summed.try_emplace(in.value);
    if (isNew) {
      listener.setSource(reachedThrough.lookup(in.value));
      entry->second = cotangentOf(in.value, builder);
    }
    gradients.push_back(entry->second);
  }
  return gradients;
}

LogicalResult ReverseSweep::differentiate(Operation &op, OpBuilder &builder) {
  bool reached = llvm::any_of(op.getResults(), [&](Value result) { return contributions.contains(result); });
  // What depends on no input needs no rule: what makes the loss or an input may be such an operation.
  if (!reached || !dependsOnInputs(op))
    return success();
  auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
  if (!differentiable)
    return reportMissingRule(op);

  SmallVector<Value> resultCotangents;
  for (Value result : op.getResults())
    resultCotangents.push_back(cotangentOf(result, builder));
  SmallVector<bool> needed;
  for (Value operand : op.getOperands())
    needed.push_back(active.contains(operand));
  FailureOr<SmallVector<Value>> cotangents = differentiable.buildVjp(builder, resultCotangents, needed);
  if (failed(cotangents))
    return failure();
  if (cotangents->size() != op.getNumOperands())
    return op.emitOpError() << "has a derivative rule that returns " << cotangents->size() << " cotangents for "
                            << op.getNumOperands() << " operands";

  for (auto [operand, cotangent, isNeeded] : llvm::zip_equal(op.getOperands(), *cotangents, needed)) {
    if (!isNeeded || !cotangent)
      continue;
    if (cotangent.getType() != operand.getType())
      return op.emitOpError() << "has a derivative rule that returns " << cotangent.getType() << " for an operand of "
                              << operand.getType();
    contributions[operand].push_back(cotangent);
    reachedThrough.try_emplace(operand, &op);
  }
  return success();
}

Value ReverseSweep::cotangentOf(Value v, OpBuilder &builder) {
  auto entry = contributions.find(v);
  if (entry == contributions.end())
    return nullptr;
  if (entry->second.size() == 1)
    return entry->second.front();
  Operation *source = v.getDefiningOp() ? v.getDefiningOp() : reachedThrough.lookup(v);
  Value sum = SumNOp::create(builder, source ? source->getLoc() : v.getLoc(), v.getType(), entry->second);
  entry->second.assign({sum});
  return sum;
}

//===-- Diagnostics ----------------------------------------------------------------------------------------------===//

SmallVector<Operation *> ReverseSweep::pathFromLoss(Operation &op) const {
  SmallVector<Operation *> path;
  for (Operation *current = &op;;) {
    auto reached = llvm::find_if(current->getResults(), [&](Value result) { return contributions.contains(result); });
    if (*reached == loss)
      break;
    current = reachedThrough.lookup(*reached);
    path.push_back(current);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

SmallVector<Operation *> ReverseSweep::pathToInput(Operation &op, Value &reached) const {
  SmallVector<Operation *> path;
  Operation *current = &op;
  while (true) {
    current->walk([&](Operation *nested) {
      auto operand = llvm::find_if(nested->getOperands(), [&](Value v) { return active.contains(v); });
      if (operand == nested->operand_end())
        return WalkResult::advance();
      reached = *operand;
      return WalkResult::interrupt();
    });
    current = reached.getDefiningOp();
    if (!current || llvm::any_of(inputs, [&](const Input &in) { return in.value == reached; }))
      return path;
    path.push_back(current);
  }
}

static void attachPath(InFlightDiagnostic &error, ArrayRef<Operation *> path, StringRef first) {
  size_t hidden = path.size() > maxPathNotes ? path.size() - maxPathNotes : 0;
  for (auto [index, op] : llvm::enumerate(path)) {
    if (hidden && index >= maxPathNotes / 2 && index < maxPathNotes / 2 + hidden) {
      if (index == maxPathNotes / 2)
        error.attachNote(op->getLoc()) << "(" << hidden << " more operations)";
      continue;
    }
    error.attachNote(op->getLoc()) << (index == 0 ? first : StringRef("which is computed by ")) << describeWithCell(op);
  }
}

/// What has no rule. A derivative is no operation that a user writes: the message names the operation that it is of.
static std::string describeWithoutRule(Operation &op) {
  std::string rule = describeWithCell(&op) + " has no derivative rule (VJP)";
  StringRef written = op.getName().stripDialect().rsplit("_grad").first;
  if (!has<Property::GradientOp>(&op) || written.empty())
    return rule;
  return "'" + written.str() + "' has no second derivative: " + rule;
}

/// How a user differentiates without the rule.
static StringRef wayAround(Operation &op) {
  if (isa<AccumulateGradientOp>(op))
    return "gradients by parameters add up over the micro-batches of an update; ops::Grad by the parameters' tensors "
           "gives that of a micro-batch";
  return "mpc.stop_gradient on its operands makes it a constant";
}

LogicalResult ReverseSweep::reportMissingRule(Operation &op) const {
  Value reached;
  SmallVector<Operation *> toInput = pathToInput(op, reached);
  auto named = llvm::find_if(inputs, [&](const Input &in) { return in.value == reached; });
  InFlightDiagnostic error = op.emitError();
  error << describeWithoutRule(op) << ", but the gradient of " << named->name << " passes through it; "
        << wayAround(op);
  attachPath(error, pathFromLoss(op), "from the loss: computed by ");
  attachPath(error, toInput, "its operand is computed by ");
  error.attachNote(reached.getLoc()) << "from " << named->name;
  return error;
}

} // namespace mpc
