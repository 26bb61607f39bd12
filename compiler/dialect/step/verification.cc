// Verifies what requests for gradients, calls and guarded updates promise beside their types.
#include "compiler/dialect/inference_support.h"
#include "compiler/dialect/step_signature.h"
#include "runtime/program.h"

using namespace mlir;

namespace mpc {

// The function that an operation calls; emits an error and returns null where there is none.
template <typename CallOp> static func::FuncOp findCallee(CallOp op, SymbolTableCollection &symbols) {
  auto callee = symbols.lookupNearestSymbolFrom<func::FuncOp>(op, op.getCalleeAttr());
  if (!callee)
    op.emitOpError() << "calls '" << op.getCallee() << "', which is not a function of this module";
  return callee;
}

// Whether the inputs and results of an operation are those of the function that it calls.
template <typename CallOp> static LogicalResult verifySignature(CallOp op, func::FuncOp callee) {
  if (llvm::equal(callee.getArgumentTypes(), op.getInputs().getTypes()) &&
      llvm::equal(callee.getResultTypes(), op.getResultTypes()))
    return success();
  return op.emitOpError() << "maps (" << op.getInputs().getTypes() << ") to (" << op.getResultTypes() << "), but '"
                          << op.getCallee() << "' is " << callee.getFunctionType();
}

static LogicalResult verifySeed(Operation *op, RankedTensorType seed, RankedTensorType loss) {
  if (seed.getRank() == 0 || seed.getShape() == loss.getShape())
    return success();
  return op->emitOpError() << "seed is " << seed << "; it must be a scalar or have the loss's shape "
                           << shapeText(loss.getShape());
}

func::FuncOp ValueAndGradOp::getFunction() {
  return SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(getOperation(), getCalleeAttr());
}

LogicalResult ValueAndGradOp::verifySymbolUses(SymbolTableCollection &symbols) {
  func::FuncOp callee = findCallee(*this, symbols);
  if (!callee)
    return failure();
  FunctionType type = callee.getFunctionType();
  if (type.getInputs() != ArrayRef<mlir::Type>(llvm::to_vector(getInputs().getTypes())))
    return emitOpError() << "passes operands (" << getInputs().getTypes() << ") to '" << getCallee()
                         << "', which takes (" << type.getInputs() << ")";
  if (type.getNumResults() == 0)
    return emitOpError() << "needs a function that returns a loss; '" << getCallee() << "' returns nothing";
  size_t forward = type.getNumResults();
  if (getNumResults() != forward + getWrt().size())
    return emitOpError() << "has " << getNumResults() << " results, expected " << forward << " of '" << getCallee()
                         << "' and " << getWrt().size() << " gradients";
  for (auto [index, expected] : llvm::enumerate(type.getResults()))
    if (getResult(index).getType() != expected)
      return emitOpError() << "result " << index << " is " << getResult(index).getType() << ", '" << getCallee()
                           << "' returns " << expected;
  for (auto [index, position] : llvm::enumerate(getWrt()))
    if (getResult(forward + index).getType() != getInputs()[position].getType())
      return emitOpError() << "gradient " << index << " is " << getResult(forward + index).getType() << ", operand "
                           << position << " is " << getInputs()[position].getType();
  return success();
}

LogicalResult ValueAndGradOp::verify() {
  for (int64_t position : getWrt()) {
    if (position < 0 || position >= int64_t(getInputs().size()))
      return emitOpError() << "wrt names operand " << position << " of " << getInputs().size();
    if (!isFloating(getInputs()[position]))
      return emitOpError() << "wrt names operand " << position << " of type " << getInputs()[position].getType()
                           << "; only floating operands have gradients";
  }
  if (getNumResults() == 0)
    return emitOpError() << "has no loss";
  auto loss = dyn_cast<RankedTensorType>(getResult(0).getType());
  auto seed = cast<RankedTensorType>(getSeed().getType());
  if (!loss || !isFloating(getResult(0)))
    return emitOpError() << "differentiates the first result, which must be floating, got " << getResult(0).getType();
  return verifySeed(*this, seed, loss);
}

LogicalResult BackwardOp::verify() {
  auto loss = cast<RankedTensorType>(getLoss().getType());
  auto seed = cast<RankedTensorType>(getSeed().getType());
  if (failed(verifySeed(*this, seed, loss)))
    return failure();
  if (getWrt().size() != getGradients().size())
    return emitOpError() << "has " << getGradients().size() << " results for " << getWrt().size()
                         << " operands to differentiate by; the counts must agree";
  for (auto [index, operand, gradient] : llvm::enumerate(getWrt(), getGradients()))
    if (operand.getType() != gradient.getType())
      return emitOpError() << "gradient " << index << " is " << gradient.getType() << ", its operand is "
                           << operand.getType();
  return success();
}

func::FuncOp RepeatOp::getFunction() {
  return SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(getOperation(), getCalleeAttr());
}

static SmallVector<RepeatOp> callsOf(func::FuncOp function) {
  SmallVector<RepeatOp> calls;
  function.walk([&](RepeatOp call) { calls.push_back(call); });
  return calls;
}

static bool hasCall(func::FuncOp function) {
  return function.walk([](RepeatOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

// Whether this call looks at all calls among sequences: at least one does, the first one of the last sequence that
// calls. Each operation is looked at once until one is found.
static bool looksAtAllCalls(RepeatOp call, func::FuncOp caller) {
  for (Operation *before = call->getPrevNode(); before; before = before->getPrevNode())
    if (isa<RepeatOp>(before))
      return false;
  for (Operation *behind = caller->getNextNode(); behind; behind = behind->getNextNode())
    if (isSequence(behind) && hasCall(cast<func::FuncOp>(behind)))
      return false;
  return true;
}

// Whether a sequence calls itself, directly or through others.
static bool hasCycle(Block &functions, SymbolTableCollection &symbols) {
  struct Visit {
    func::FuncOp function;
    SmallVector<RepeatOp> left;
  };
  llvm::DenseMap<func::FuncOp, bool> isOpen;
  SmallVector<Visit> open;
  for (auto function : functions.getOps<func::FuncOp>()) {
    if (!isSequence(function) || !isOpen.try_emplace(function, true).second)
      continue;
    open.push_back({function, callsOf(function)});
    while (!open.empty()) {
      if (open.back().left.empty()) {
        isOpen[open.pop_back_val().function] = false;
        continue;
      }
      RepeatOp call = open.back().left.pop_back_val();
      auto callee = symbols.lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
      if (!callee)
        continue;
      auto [known, isNew] = isOpen.try_emplace(callee, true);
      if (isNew)
        open.push_back({callee, callsOf(callee)});
      else if (known->second)
        return true;
    }
  }
  return false;
}

// All that a cycle calls are sequences. So a call in another function is in none.
static LogicalResult verifyCalls(RepeatOp call, SymbolTableCollection &symbols) {
  auto caller = call->getParentOfType<func::FuncOp>();
  if (!caller || !isSequence(caller) || !looksAtAllCalls(call, caller) || !hasCycle(*caller->getBlock(), symbols))
    return success();
  for (Operation &op : llvm::reverse(*caller->getBlock()))
    if (auto function = dyn_cast<func::FuncOp>(op))
      for (RepeatOp each : callsOf(function))
        if (func::FuncOp callee = each.getFunction(); callee && llvm::is_contained(withCalled(callee), function))
          return each.emitOpError() << "calls '" << each.getCallee() << "', which calls '" << function.getSymName()
                                    << "' again";
  llvm_unreachable("a call is part of the cycle");
}

LogicalResult RepeatOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto callee = findCallee(*this, symbols);
  if (!callee)
    return failure();
  if (!isSequence(callee) || callee.isExternal())
    return emitOpError() << "calls '" << getCallee() << "', which has no "
                         << (callee.isExternal() ? "body" : MpcDialect::SequenceAttrHelper::getNameStr());
  if (failed(verifySignature(*this, callee)))
    return failure();
  return verifyCalls(*this, symbols);
}

LogicalResult RepeatOp::verify() {
  auto count = static_cast<int64_t>(getCount());
  if (count < 1 || count > runtime::kMostRuns)
    return emitOpError() << "calls its function " << count << " times; 1 is the least, " << runtime::kMostRuns
                         << " the most";
  if (getNumResults() == 0)
    return emitOpError() << "has no results, so that it computes nothing";
  return success();
}

LogicalResult CustomVjpOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto lookup = [&](FlatSymbolRefAttr name) { return symbols.lookupNearestSymbolFrom<func::FuncOp>(*this, name); };
  func::FuncOp callee = lookup(getCalleeAttr()), rule = lookup(getVjpAttr());
  if (!callee || !rule)
    return emitOpError() << "names '" << (callee ? getVjp() : getCallee())
                         << "', which is not a function of this module";
  if (failed(verifySignature(*this, callee)))
    return failure();
  SmallVector<Type> taken(getInputs().getTypes()), returned;
  llvm::append_range(taken, getResultTypes());
  llvm::append_range(taken, getResultTypes());
  for (Value input : getInputs())
    if (isFloating(input))
      returned.push_back(input.getType());
  if (!llvm::equal(rule.getArgumentTypes(), taken) || !llvm::equal(rule.getResultTypes(), returned))
    return emitOpError() << "needs a rule '" << getVjp() << "' from inputs, outputs and cotangents (" << taken
                         << ") to one cotangent a floating input (" << returned << "), got " << rule.getFunctionType();
  return success();
}

// Sums are balanced binary trees over ranks.
static LogicalResult verifyProcesses(Operation *op, int64_t processes) {
  if (processes < 1 || !llvm::isPowerOf2_64(uint64_t(processes)))
    return op->emitOpError() << "is for " << processes << " processes; their number is a power of two";
  return success();
}

LogicalResult AllReduceOp::verify() {
  if (getX().getType() != getY().getType())
    return emitOpError() << "gives " << getY().getType() << " of " << getX().getType() << "; the sum keeps the type";
  return verifyProcesses(*this, getProcesses());
}

LogicalResult AllReduceMaxOp::verify() { return verifyProcesses(*this, getProcesses()); }

LogicalResult ProcessRankOp::verify() { return verifyProcesses(*this, getProcesses()); }

LogicalResult AllGatherOp::verify() {
  if (getElementTypeOrSelf(getX().getType()) != getElementTypeOrSelf(getY().getType()))
    return emitOpError() << "gives " << getY().getType() << " of " << getX().getType() << "; elements keep their type";
  return verifyProcesses(*this, getProcesses());
}

LogicalResult AllReduceStartOp::verify() {
  if (getProcesses() != 1)
    return emitOpError() << "sums over " << getProcesses() << " processes; a Program runs in one";
  if (!getY().hasOneUse())
    return emitOpError() << "has " << llvm::range_size(getY().getUses())
                         << " readers; one mpc.all_reduce_wait must read what it starts";
  Operation *reader = *getY().user_begin();
  if (!isa<AllReduceWaitOp>(reader) || reader->getBlock() != (*this)->getBlock())
    return (emitOpError() << "has no mpc.all_reduce_wait in its block").attachNote(reader->getLoc())
           << "'" << reader->getName() << "' reads what it starts";
  return success();
}

LogicalResult AllReduceWaitOp::verify() {
  if (!getX().getDefiningOp<AllReduceStartOp>())
    return emitOpError() << "waits for what no mpc.all_reduce_start has begun";
  return success();
}

LogicalResult GuardedUpdateOp::verify() {
  if (cast<RankedTensorType>(getCondition().getType()).getRank() != 0)
    return emitOpError() << "condition must be a scalar, got " << getCondition().getType();
  FailureOr<YieldOp> end = yieldOf(*this);
  if (failed(end))
    return failure();
  YieldOp yield = *end;
  if (yield.getValues().size() != getNumResults() || getOld().size() != getNumResults())
    return emitOpError() << "has " << getNumResults() << " results, " << yield.getValues().size()
                         << " yielded values and " << getOld().size() << " old values; the counts must agree";
  for (auto [result, yielded, old] : llvm::zip_equal(getResults(), yield.getValues(), getOld()))
    if (result.getType() != yielded.getType() || result.getType() != old.getType())
      return resultError(cast<OpResult>(result)) << ", yielded " << yielded.getType() << ", old " << old.getType();
  for (Operation &op : getBody().front().without_terminator()) {
    bool allowed = op.hasTrait<StateUpdate>() || has<Property::PreparesUpdate>(&op);
    if (!allowed)
      return (emitOpError() << "may hold only updates of state, unscale, clip_by_norm, casts and constants")
                 .attachNote(op.getLoc())
             << "'" << op.getName() << "' is none of these";
  }
  return success();
}

} // namespace mpc
