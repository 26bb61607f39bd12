#include "passes/step/step_flow.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
using namespace mlir;

namespace mpc {

OpOperand &GradientRequest::seed() const {
  unsigned Position = Op->getNumOperands() - 1;
  return Op->getOpOperand(Position);
}

static bool isUpdate(Operation *Op) { return Op && (Op->hasTrait<StateUpdate>() || isa<GuardedUpdateOp>(Op)); }

Value stateBefore(Value New) {
  while (Operation *Op = New.getDefiningOp()) {
    unsigned Result = cast<OpResult>(New).getResultNumber();
    if (auto Guard = dyn_cast<GuardedUpdateOp>(Op))
      New = Guard.getOld()[Result];
    else if (Op->hasTrait<StateUpdate>() && !isShadow(cast<OpResult>(New)))
      New = Op->getOperand(Result);
    else
      break;
  }
  return New;
}

StepFlow::StepFlow(func::FuncOp Function) : Body(Function.getBody().front()) {
  collectRequests();
  followGradients();
  followForward();
  collectOptimizers();
}

void StepFlow::collectRequests() {
  for (Operation &Op : Body) {
    GradientRequest Request;
    Request.Op = &Op;
    if (auto Step = dyn_cast<ValueAndGradOp>(Op)) {
      Request.Loss = Step.getOutputs().front();
      llvm::append_range(Request.Gradients, Step.getOutputs().take_back(Step.getWrt().size()));
      for (int64_t Position : Step.getWrt())
        Request.DifferentiatedBy.push_back(Step.getInputs()[Position]);
      Request.LossId = Step.getLossId();
    } else if (auto Backward = dyn_cast<BackwardOp>(Op)) {
      Request.Loss = Backward.getLoss();
      llvm::append_range(Request.Gradients, Backward.getGradients());
      llvm::append_range(Request.DifferentiatedBy, Backward.getWrt());
      Request.LossId = Backward.getLossId();
    } else {
      continue;
    }
    Requests.push_back(std::move(Request));
  }
}

void StepFlow::followGradients() {
  for (auto [Index, Request] : llvm::enumerate(Requests))
    for (Value Gradient : Request.Gradients) {
      RequestSet &Set = Gradients.try_emplace(Gradient, none()).first->second;
      Set.set(Index);
    }
  for (Operation &Op : Body) {
    if (isUpdate(&Op) || has<Property::GradientRequest>(&Op))
      continue;
    RequestSet Set = gradientsReadBy(&Op);
    if (Set.any())
      for (Value Result : Op.getResults())
        Gradients.try_emplace(Result, Set);
  }
}

RequestSet StepFlow::gradientsInto(Value V) const {
  auto It = Gradients.find(V);
  return It == Gradients.end() ? none() : It->second;
}

RequestSet StepFlow::gradientsReadBy(Operation *Op) const {
  RequestSet Set = none();
  for (Value Operand : Op->getOperands())
    Set |= gradientsInto(Operand);
  return Set;
}

static llvm::DenseSet<Operation *> sliceOf(Operation *From, bool ThroughUpdates) {
  llvm::DenseSet<Operation *> Found;
  SmallVector<Operation *> Worklist{From};
  while (!Worklist.empty())
    for (Value Operand : Worklist.pop_back_val()->getOperands()) {
      Operation *Op = Operand.getDefiningOp();
      if (Op && (ThroughUpdates || !isUpdate(Op)) && Found.insert(Op).second)
        Worklist.push_back(Op);
    }
  return Found;
}

void StepFlow::followForward() {
  for (const GradientRequest &Request : Requests) {
    Slices.push_back(sliceOf(Request.Op, false));
    FullSlices.push_back(sliceOf(Request.Op, true));
  }
}

bool StepFlow::precedesUpdatesOf(Operation *Op, unsigned Request) const {
  return llvm::all_of(sliceOf(Op, /*ThroughUpdates=*/true),
                      [&](Operation *Behind) { return !isUpdate(Behind) || lossDependsOn(Request, Behind); });
}

// A counter alone reads no gradient: it belongs to the optimizer of its path or, without paths, to the one that reads
// the same counter.
void StepFlow::collectOptimizers() {
  for (Operation &Op : Body) {
    if (!Op.hasTrait<StateUpdate>() || isa<BatchNormRunningUpdateOp>(Op))
      continue;
    RequestSet Set = gradientsReadBy(&Op);
    if (!pathOf(&Op).empty()) {
      ByPath.try_emplace(pathOf(&Op), none()).first->second |= Set;
      continue;
    }
    for (Value Operand : Op.getOperands())
      ByCounter.try_emplace(Operand, none()).first->second |= Set;
    WithoutPath |= Set;
  }
}

// Calls `Visit` once for each operation but constants that `Values` follow from. It says whether to go on with what the
// operation reads.
static void followBack(SmallVector<Value> Values, llvm::function_ref<bool(Operation *)> Visit) {
  llvm::DenseSet<Operation *> Seen;
  while (!Values.empty()) {
    Operation *Op = Values.pop_back_val().getDefiningOp();
    if (Op && !isa<ConstantOp>(Op) && Seen.insert(Op).second && Visit(Op))
      llvm::append_range(Values, Op->getOperands());
  }
}

RequestSet StepFlow::feeding(Operation *Update) const {
  RequestSet Set = none();
  followBack(SmallVector<Value>(Update->getOperands().drop_front(Update->getNumResults())), [&](Operation *Op) {
    if (isUpdate(Op))
      return false;
    bool Found = false;
    for (auto [Index, Request] : llvm::enumerate(Requests))
      if (Op == Request.Op || Slices[Index].contains(Op)) {
        Set.set(Index);
        Found = true;
      }
    return !Found;
  });
  return Set;
}

RequestSet StepFlow::deciding(Operation *Op) const {
  if (isa<BatchNormRunningUpdateOp>(Op))
    return feeding(Op);
  if (StringRef Path = pathOf(Op); !Path.empty())
    return ByPath.lookup(Path);
  if (isa<IncrementOp>(Op)) {
    RequestSet Set = ByCounter.lookup(Op->getOperand(0));
    return Set.none() && roleOf(Op->getOperand(0)) == Role::kStep ? WithoutPath : Set;
  }
  return gradientsReadBy(Op);
}

bool StepFlow::isOptimizer(Operation *Op) const { return !isa<BatchNormRunningUpdateOp>(Op) && deciding(Op).any(); }

RequestSet StepFlow::behind(Value V, bool &FollowsUpdate) const {
  FollowsUpdate = gradientsInto(V).any();
  RequestSet Set = none();
  followBack({V}, [&](Operation *Op) {
    if (Op->hasTrait<StateUpdate>()) {
      FollowsUpdate |= isOptimizer(Op);
      Set |= deciding(Op);
      return false;
    }
    bool IsRequest = false;
    for (auto [Index, Request] : llvm::enumerate(Requests)) {
      IsRequest |= Request.Op == Op;
      if (Request.Op == Op || Slices[Index].contains(Op))
        Set.set(Index);
    }
    return !IsRequest;
  });
  return Set;
}

std::string StepFlow::gradientName(unsigned Request, unsigned Position) const {
  StringRef Name = nameOf(stateBefore(Requests[Request].DifferentiatedBy[Position]));
  return Name.empty() ? "gradient" + std::to_string(Position) : Name.str();
}

} // namespace mpc
