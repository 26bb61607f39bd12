#include "compiler/lowering/storage_assignment.h"

#include "compiler/codegen/fusion_aliasing.h"
#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/step_signature.h"
#include "compiler/lowering/lowering.h"

using namespace mlir;

namespace mpc::compiler {

StorageAssignment::StorageAssignment(func::FuncOp function, const runtime::Device *target)
    : target(target), dependences(function.getBody().front()) {
  for (auto view : function.getBody().front().getOps<ViewLikeOpInterface>())
    parent[view.getViewDest()] = root(view.getViewSource());
  for (Operation *op : dependences.getOperations())
    if (!isa<ConstantOp>(op))
      instructions.push_back(op);
  findBuckets();
  placeStateInPlace(function);

  size_t end = instructions.size();
  auto extend = [&](Value root, size_t at) {
    auto [it, isNew] = lives.try_emplace(root, at, at);
    if (!isNew) {
      it->second.first = std::min(it->second.first, at);
      it->second.second = std::max(it->second.second, at);
    }
  };
  // Inputs are copied in before the first instruction.
  for (BlockArgument argument : function.getArguments())
    extend(root(argument), 0);
  for (auto [index, op] : llvm::enumerate(instructions)) {
    auto [first, last] = runsWith(index);
    for (Value read : dependences.reads(*dependences.numberOf(op)))
      extend(root(read), last);
    for (Value result : op->getResults()) {
      extend(root(result), first);
      extend(root(result), last);
    }
  }
  for (Value result : function.getBody().front().getTerminator()->getOperands())
    extend(root(result), end);
  reuseDyingOperands();
}

void StorageAssignment::findBuckets() {
  llvm::DenseMap<int64_t, Range> byNumber;
  auto bucketOf = [](Operation *op) { return dialectOf(op).getBucketAttrHelper().getAttr(op); };
  for (auto [index, op] : llvm::enumerate(instructions))
    if (IntegerAttr bucket = bucketOf(op))
      byNumber.try_emplace(bucket.getInt(), index, index).first->second.second = index;
  for (auto [index, op] : llvm::enumerate(instructions))
    if (IntegerAttr bucket = bucketOf(op))
      buckets[index] = byNumber.lookup(bucket.getInt());
}

StorageAssignment::Range StorageAssignment::runsWith(size_t index) const {
  auto known = buckets.find(index);
  return known == buckets.end() ? Range(index, index) : known->second;
}

llvm::DenseMap<Value, int64_t> StorageAssignment::readsAtOnce(Range range) const {
  llvm::DenseMap<Value, int64_t> reads;
  for (Operation *op : ArrayRef(instructions).slice(range.first, range.second - range.first + 1))
    for (Value operand : op->getOperands())
      ++reads[root(operand)];
  return reads;
}

Value StorageAssignment::root(Value v) const {
  for (auto it = parent.find(v); it != parent.end(); it = parent.find(v))
    v = it->second;
  return v;
}

std::pair<size_t, size_t> StorageAssignment::life(Value root) const {
  auto it = lives.find(root);
  return it == lives.end() ? std::pair<size_t, size_t>(0, 0) : it->second;
}

std::vector<FusionAlias> StorageAssignment::aliases(FusionOp fusion) const {
  std::vector<FusionAlias> pairs;
  for (auto [output, written] : llvm::enumerate(fusion.getOutputs()))
    for (auto [input, read] : llvm::enumerate(fusion.getInputs()))
      if (root(written) == root(read))
        pairs.emplace_back(output, input);
  return pairs;
}

Aliasing aliasingOf(Operation *op, const runtime::Device *target) {
  // A result begins as its operand.
  if (isa<RepeatOp>(op))
    return [](unsigned result, unsigned operand) { return result == operand; };
  if (auto fusion = dyn_cast<FusionOp>(op)) {
    llvm::Expected<codegen::FusionPlan> plan = codegen::FusionPlan::create(fusion);
    if (!plan) {
      llvm::consumeError(plan.takeError());
      return [](unsigned, unsigned) { return false; };
    }
    return [region = codegen::FusionAliasing(fusion, *plan)](unsigned result, unsigned operand) {
      return region.mayAlias(result, operand);
    };
  }
  return [kernel = op->getName().stripDialect(), target](unsigned result, unsigned operand) {
    return target && target->MayAlias(std::string_view(kernel.data(), kernel.size()), result, operand);
  };
}

bool StorageAssignment::mayAlias(Operation *op, unsigned result, unsigned operand) {
  if (op != asked)
    aliasing = aliasingOf(op, target);
  asked = op;
  return aliasing(result, operand);
}

std::string StorageAssignment::obstacleInSequence(OpResult update, Value old) const {
  auto reads = [&](Value operand) { return root(operand) == old; };
  if (llvm::count_if(update.getOwner()->getOperands(), reads) > 1)
    return nameWithPath(update.getOwner()) + " reads the old value twice";
  for (Value operand : llvm::make_filter_range(update.getOwner()->getOperands(), reads))
    if (operand.getType() != update.getType())
      return nameWithPath(update.getOwner()) + " reads the old value in another shape";
  return "";
}

std::string StorageAssignment::obstacleInside(OpResult update, Value old) {
  Operation *writer = update.getOwner();
  unsigned index = update.getResultNumber();
  if (isSequence(writer->getParentOp()))
    if (std::string obstacle = obstacleInSequence(update, old); !obstacle.empty())
      return obstacle;
  if (isa<FusionOp>(writer) || isSequence(writer->getParentOp())) {
    for (auto [other, operand] : llvm::enumerate(writer->getOperands()))
      if (root(operand) == old && !mayAlias(writer, index, other))
        return nameWithPath(writer) + " reads the old value when it has begun to write the new one";
    return "";
  }
  if (!writer->hasTrait<StateUpdate>())
    return nameWithPath(writer) + " is no in-place update";
  // A low copy follows the parameter and has no operand of its own.
  bool lowCopy = isLowCopy(update);
  if (!lowCopy && root(writer->getOperand(index)) != old)
    return nameWithPath(writer) + " does not update this state";
  for (auto [other, operand] : llvm::enumerate(writer->getOperands()))
    if ((lowCopy || other != index) && root(operand) == old)
      return nameWithPath(writer) + (lowCopy ? " reads what it writes" : " reads the old value twice");
  return "";
}

std::string StorageAssignment::inPlaceObstacle(OpResult update, Value old) {
  Operation *writer = update.getOwner();
  if (std::string obstacle = obstacleInside(update, old); !obstacle.empty())
    return obstacle;
  assert(dependences.numberOf(writer) && "the writer is an operation of the block");
  unsigned written = *dependences.numberOf(writer);
  for (unsigned reader : dependences.readersOf(old))
    if (reader > written)
      return nameWithPath(dependences.getOperations()[reader]) + " reads the old value after the update";
  return "";
}

void StorageAssignment::placeStateInPlace(func::FuncOp function) {
  StepSignature signature(function);
  Operation *terminator = function.getBody().front().getTerminator();
  llvm::DenseSet<Value> returned;
  for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
    std::optional<unsigned> argument = signature.argumentOf(index);
    if (!argument || root(value) == function.getArgument(*argument))
      continue;
    mlir::Value old = function.getArgument(*argument);
    auto update = dyn_cast<OpResult>(value);
    std::string obstacle = !update                          ? "the new value is another state or an input"
                           : !returned.insert(value).second ? "the new value becomes several states"
                           : parent.contains(value) || isa<ConstantOp>(update.getOwner())
                               ? "the new value is a view or a constant"
                               : inPlaceObstacle(update, old);
    if (obstacle.empty())
      parent[value] = old;
    else
      copies.push_back({static_cast<unsigned>(index), obstacle});
  }
}

void StorageAssignment::reuseDyingOperands() {
  // Operands that run at once are no results of each other, so that what is counted holds for the whole range.
  std::optional<Range> counted;
  llvm::DenseMap<Value, int64_t> reads;
  auto readsOnce = [&](Value storage, Range range) {
    if (counted != range)
      reads = readsAtOnce(range);
    counted = range;
    return reads.lookup(storage) == 1;
  };
  for (auto [index, op] : llvm::enumerate(instructions)) {
    Range range = runsWith(index);
    auto [first, last] = range;
    for (OpResult result : op->getResults()) {
      if (root(result) != result || result.use_empty())
        continue;
      for (OpOperand &operand : op->getOpOperands()) {
        Value candidate = root(operand.get());
        auto life = lives.find(candidate);
        bool temporary = !isa<BlockArgument>(candidate) && !candidate.getDefiningOp<ConstantOp>();
        bool dies = life != lives.end() && life->second.second == last && life->second.first < first;
        bool sameSpec = operand.get().getType() == result.getType() && candidate.getType() == result.getType();
        if (!temporary || !dies || !sameSpec || !readsOnce(candidate, range) ||
            !mayAlias(op, result.getResultNumber(), operand.getOperandNumber()))
          continue;
        assert(lives.contains(result) && "every result has a life");
        life->second.second = lives.lookup(result).second;
        lives.erase(result);
        parent[result] = candidate;
        break;
      }
    }
  }
}

} // namespace mpc::compiler
