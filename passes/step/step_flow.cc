#include "passes/step/step_flow.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/tensor_values.h"

using namespace mlir;

namespace mpc {

OpOperand &GradientRequest::seed() const {
  unsigned position = op->getNumOperands() - 1;
  return op->getOpOperand(position);
}

bool isLossRequest(Operation *op) {
  auto backward = dyn_cast<BackwardOp>(op);
  return has<Property::GradientRequest>(op) && !(backward && backward.getByValues());
}

static bool isUpdate(Operation *op) { return op && (op->hasTrait<StateUpdate>() || isa<GuardedUpdateOp>(op)); }

Value stateBefore(Value updated) {
  while (Operation *op = updated.getDefiningOp()) {
    unsigned result = cast<OpResult>(updated).getResultNumber();
    if (auto guard = dyn_cast<GuardedUpdateOp>(op))
      updated = guard.getOld()[result];
    else if (op->hasTrait<StateUpdate>() && !isLowCopy(cast<OpResult>(updated)))
      updated = op->getOperand(result);
    else
      break;
  }
  return updated;
}

bool hasPredicate(Operation *op) {
  return op->getNumOperands() > 0 && elementOf(op->getOperands().back()).isInteger(1);
}

StepFlow::StepFlow(func::FuncOp function) : body(function.getBody().front()) {
  collectRequests();
  followGradients();
  followForward();
  collectOptimizers();
}

void StepFlow::collectRequests() {
  for (Operation &op : body) {
    if (!isLossRequest(&op))
      continue;
    GradientRequest request;
    request.op = &op;
    if (auto step = dyn_cast<ValueAndGradOp>(op)) {
      request.loss = step.getOutputs().front();
      llvm::append_range(request.gradients, step.getOutputs().take_back(step.getWrt().size()));
      for (int64_t position : step.getWrt())
        request.differentiatedBy.push_back(step.getInputs()[position]);
      request.lossId = step.getLossId();
    } else {
      auto backward = cast<BackwardOp>(op);
      request.loss = backward.getLoss();
      llvm::append_range(request.gradients, backward.getGradients());
      llvm::append_range(request.differentiatedBy, backward.getWrt());
      request.lossId = backward.getLossId();
    }
    requests.push_back(std::move(request));
  }
}

void StepFlow::followGradients() {
  for (auto [index, request] : llvm::enumerate(requests))
    for (Value gradient : request.gradients) {
      RequestSet &set = gradients.try_emplace(gradient, none()).first->second;
      set.set(index);
    }
  for (Operation &op : body) {
    if (isUpdate(&op) || isLossRequest(&op))
      continue;
    RequestSet set = gradientsReadBy(&op);
    if (set.any())
      for (Value result : op.getResults())
        gradients.try_emplace(result, set);
  }
}

RequestSet StepFlow::gradientsInto(Value v) const {
  auto it = gradients.find(v);
  return it == gradients.end() ? none() : it->second;
}

RequestSet StepFlow::gradientsReadBy(Operation *op) const {
  RequestSet set = none();
  for (Value operand : op->getOperands())
    set |= gradientsInto(operand);
  return set;
}

static llvm::DenseSet<Operation *> sliceOf(Operation *from, bool throughUpdates) {
  llvm::DenseSet<Operation *> found;
  SmallVector<Operation *> worklist{from};
  while (!worklist.empty())
    for (Value operand : worklist.pop_back_val()->getOperands()) {
      Operation *op = operand.getDefiningOp();
      if (op && (throughUpdates || !isUpdate(op)) && found.insert(op).second)
        worklist.push_back(op);
    }
  return found;
}

void StepFlow::followForward() {
  for (const GradientRequest &request : requests) {
    slices.push_back(sliceOf(request.op, false));
    fullSlices.push_back(sliceOf(request.op, true));
  }
}

bool StepFlow::precedesUpdatesOf(Operation *op, unsigned request) const {
  return llvm::all_of(sliceOf(op, /*throughUpdates=*/true),
                      [&](Operation *behind) { return !isUpdate(behind) || lossDependsOn(request, behind); });
}

// A counter alone reads no gradient: it belongs to the optimizer of its path or, without paths, to the one that reads
// the same counter.
void StepFlow::collectOptimizers() {
  for (Operation &op : body) {
    if (!op.hasTrait<StateUpdate>() || isa<BatchNormRunningUpdateOp>(op))
      continue;
    RequestSet set = gradientsReadBy(&op);
    if (!pathOf(&op).empty()) {
      byPath.try_emplace(pathOf(&op), none()).first->second |= set;
      continue;
    }
    for (Value operand : op.getOperands())
      byCounter.try_emplace(operand, none()).first->second |= set;
    withoutPath |= set;
  }
}

// Calls `visit` once for each operation but constants that `values` follow from. It says whether to go on with what the
// operation reads.
static void followBack(SmallVector<Value> values, llvm::function_ref<bool(Operation *)> visit) {
  llvm::DenseSet<Operation *> seen;
  while (!values.empty()) {
    Operation *op = values.pop_back_val().getDefiningOp();
    if (op && !isa<ConstantOp>(op) && seen.insert(op).second && visit(op))
      llvm::append_range(values, op->getOperands());
  }
}

RequestSet StepFlow::feeding(Operation *update) const {
  RequestSet set = none();
  followBack(SmallVector<Value>(update->getOperands().drop_front(update->getNumResults())), [&](Operation *op) {
    if (isUpdate(op))
      return false;
    bool found = false;
    for (auto [index, request] : llvm::enumerate(requests))
      if (op == request.op || slices[index].contains(op)) {
        set.set(index);
        found = true;
      }
    return !found;
  });
  return set;
}

RequestSet StepFlow::deciding(Operation *op) const {
  if (isa<BatchNormRunningUpdateOp>(op))
    return feeding(op);
  if (StringRef path = pathOf(op); !path.empty())
    return byPath.lookup(path);
  if (isa<IncrementOp>(op)) {
    RequestSet set = byCounter.lookup(op->getOperand(0));
    return set.none() && roleOf(op->getOperand(0)) == Role::kStep ? withoutPath : set;
  }
  return gradientsReadBy(op);
}

bool StepFlow::isOptimizer(Operation *op) const {
  if (isa<BatchNormRunningUpdateOp>(op))
    return false;
  // No gradient reaches an optimizer whose parameters are all frozen. It still counts steps.
  bool countsSteps = isa<IncrementOp>(op) && roleOf(op->getOperand(0)) == Role::kStep;
  return countsSteps || deciding(op).any();
}

bool StepFlow::isGenerator(Operation *op) const {
  auto counter = dyn_cast<IncrementOp>(op);
  return counter && roleOf(counter.getCounter()) == Role::kRng;
}

RequestSet StepFlow::behind(Value v, bool &followsUpdate) const {
  followsUpdate = gradientsInto(v).any();
  RequestSet set = none();
  followBack({v}, [&](Operation *op) {
    if (op->hasTrait<StateUpdate>()) {
      followsUpdate |= isOptimizer(op);
      set |= deciding(op);
      return false;
    }
    // What an optimizer computes beside its updates is decided as they are.
    if (RequestSet own = byPath.lookup(pathOf(op)); own.any()) {
      followsUpdate = true;
      set |= own;
      return false;
    }
    bool isRequest = false;
    for (auto [index, request] : llvm::enumerate(requests)) {
      isRequest |= request.op == op;
      if (request.op == op || slices[index].contains(op))
        set.set(index);
    }
    return !isRequest;
  });
  return set;
}

std::string StepFlow::gradientName(unsigned request, unsigned position) const {
  StringRef name = nameOf(stateBefore(requests[request].differentiatedBy[position]));
  return name.empty() ? "gradient" + std::to_string(position) : name.str();
}

} // namespace mpc
