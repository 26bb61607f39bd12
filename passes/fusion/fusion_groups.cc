#include "passes/fusion/fusion_groups.h"

#include "compiler/analysis/phases.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/tensor_values.h"
#include "passes/fusion/gradient_parts.h"
#include "passes/fusion/kept_values.h"
#include "passes/fusion/lone_operations.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace mpc {

using codegen::FusionPlan;

// What happens to gradients and state after the backward pass belongs to the update.
static bool isPartOfUpdate(Operation *op) {
  auto select = dyn_cast<SelectOp>(op);
  return op->hasTrait<StateUpdate>() || has<Property::Scaling>(op) ||
         (select && elementCount(select.getCondition()) == 1);
}

static bool readsF64(Operation *op) {
  return llvm::any_of(op->getOperandTypes(), [](Type type) { return getElementTypeOrSelf(type).isF64(); });
}

static FusionTraffic costOf(const FusionBody &body, const FusionPlan &plan) {
  llvm::SmallPtrSet<void *, 8> stored;
  for (Value v : body.outputs)
    stored.insert(v.getAsOpaquePointer());
  return fusionTraffic(plan, [&](Value v) { return stored.contains(v.getAsOpaquePointer()); });
}

//===-- Candidates
//-------------------------------------------------------------------------------------------------===//

llvm::Expected<FusionPlan> FusionGroups::planOf(const FusionBody &body) const {
  if (body.inputs.size() + body.outputs.size() > costs.maxTensors)
    return llvm::createStringError(
        llvm::formatv("the region would read and write more than {0} tensors", costs.maxTensors));
  return FusionPlan::create(body.operations);
}

std::string FusionGroups::obstacle(Operation *op) {
  if (isa<FusionOp>(op))
    return "it is a region already";
  if (isPartOfUpdate(op))
    return "it is part of an update of state";
  if (op->use_empty())
    return "nothing reads it";
  if (!isa<FusibleOpInterface>(op))
    return "it is not computed element by element";
  if (readsF64(op))
    return "it computes in f64";
  FusionBody body = fusionBody({op});
  llvm::Expected<FusionPlan> plan = planOf(body);
  if (!plan)
    return llvm::toString(plan.takeError());
  unsigned group = *groups.groupOf(op);
  groupCosts[group] = costOf(body, *plan);
  bytesAlone[group] = groupCosts[group].bytes;
  if (has<Property::GradientPart>(op))
    groupCosts[group].launches = 0;
  return "";
}

bool FusionGroups::isFusible(Operation *op) const {
  auto known = obstacles.find(op);
  return known != obstacles.end() && known->second.empty();
}

bool FusionGroups::isRegionAlone(Operation *op) const {
  if (costs.alsoAlone == LoneFusions::None || !obstacles.lookup(op).empty())
    return false;
  if (costs.alsoAlone == LoneFusions::ExpensiveElements)
    return hasExpensiveElements(op);
  return has<Property::GeneratedOnCpu>(op) ||
         (costs.alsoAlone == LoneFusions::WithoutKernelOrWorthIt && isWorthAlone(op));
}

FusionGroups::FusionGroups(Block &body, const FusionCosts &costs) : costs(costs), groups(body) {
  groupCosts.resize(groups.size());
  bytesAlone.resize(groups.size());
  for (unsigned group = 0; group < groups.size(); ++group) {
    Operation *op = groups.members(group).front();
    obstacles[op] = obstacle(op);
  }
  for (unsigned group = 0; group < groups.size(); ++group)
    propose(group);
  mergeBest();
  for (unsigned group : groups.schedule()) {
    ArrayRef<Operation *> members = groups.members(group);
    if (members.size() > 1 || isRegionAlone(members.front()))
      describe(group);
  }
}

//===-- Merging
//----------------------------------------------------------------------------------------------------===//

// The operations that read a value, behind views or not.
static void collectReaders(Value v, OperationSet &readers) {
  for (Operation *user : v.getUsers()) {
    if (auto view = dyn_cast<ViewLikeOpInterface>(user))
      collectReaders(view.getViewDest(), readers);
    else
      readers.insert(user);
  }
}

// Whether nothing that the operation reads or writes is larger: sharing a load of it pays.
bool FusionGroups::isWhole(Value v, Operation *op) {
  auto [known, isNew] = largest.try_emplace(op, 0);
  if (isNew)
    for (ValueRange values : {ValueRange(op->getOperands()), ValueRange(op->getResults())})
      for (Value other : values)
        known->second = std::max(known->second, elementCount(other));
  return known->second <= elementCount(v);
}

// Operations that hand values to a group or take values from it.
static OperationSet producersAndReaders(ArrayRef<Operation *> members) {
  OperationSet found;
  for (Operation *op : members) {
    for (Value operand : op->getOperands())
      if (Operation *producer = behindViews(operand).getDefiningOp())
        found.insert(producer);
    for (Value result : op->getResults())
      collectReaders(result, found);
  }
  found.set_subtract(members);
  return found;
}

static bool isEarlier(Operation *l, Operation *r) { return l->isBeforeInBlock(r); }

// Up to \p count entries of \p range that are not among \p members.
static auto firstOutside(auto range, ArrayRef<Operation *> members, unsigned count) {
  SmallVector<Operation *> found;
  for (auto it = range.begin(); it != range.end() && found.size() < count; ++it)
    if (!llvm::is_contained(members, *it))
      found.push_back(*it);
  return found;
}

ArrayRef<Operation *> FusionGroups::readersOfAll(Value source) {
  auto [entry, isNew] = wholeReaders.try_emplace(source);
  if (isNew) {
    OperationSet readers;
    collectReaders(source, readers);
    llvm::copy_if(readers, std::back_inserter(entry->second),
                  [&](Operation *reader) { return isFusible(reader) && isWhole(source, reader); });
    if (entry->second.size() > costs.maxSiblings)
      llvm::sort(entry->second, isEarlier);
  }
  return entry->second;
}

// Operations that read a whole tensor together with a group; where many do, those next to the group's in the block.
OperationSet FusionGroups::siblings(ArrayRef<Operation *> members) {
  OperationSet found;
  for (Operation *op : members)
    for (Value operand : op->getOperands()) {
      Value source = behindViews(operand);
      if (elementCount(source) == 1 || !isWhole(source, op))
        continue;
      ArrayRef<Operation *> readers = readersOfAll(source);
      if (readers.size() <= costs.maxSiblings) {
        found.insert_range(readers);
        continue;
      }
      size_t place = llvm::lower_bound(readers, op, isEarlier) - readers.begin();
      found.insert_range(firstOutside(llvm::reverse(readers.take_front(place)), members, costs.maxSiblings / 2));
      found.insert_range(firstOutside(readers.drop_front(place), members, costs.maxSiblings / 2));
    }
  found.set_subtract(members);
  return found;
}

SmallVector<unsigned> FusionGroups::neighbours(unsigned group) {
  llvm::SmallSetVector<unsigned, 8> found;
  OperationSet around = producersAndReaders(groups.members(group));
  around.insert_range(siblings(groups.members(group)));
  for (Operation *op : around)
    if (isFusible(op))
      found.insert(*groups.groupOf(op));
  return found.takeVector();
}

void FusionGroups::propose(unsigned group) {
  if (groups.members(group).empty() || !obstacles.lookup(groups.members(group).front()).empty())
    return;
  for (unsigned other : neighbours(group)) {
    Pair key = std::minmax(group, other);
    if (proposals.contains(key))
      continue;
    Merge merge = judge(key.first, key.second);
    merge.trial = trials++;
    if (merge.saved > 0)
      candidates.push({merge.saved, merge.trial, key});
    proposals[key] = std::move(merge);
    partners[group].push_back(other);
    partners[other].push_back(group);
  }
}

// An operation on values smaller than the space that no reduction of the region gives: its elements would be computed
// again for every row.
static Operation *smallAndUnreduced(const FusionBody &body, const FusionPlan &plan) {
  for (Operation *op : body.operations) {
    auto isSmall = [&](Value v) { return plan.extent(v) != codegen::Extent::Full; };
    auto isAtHand = [&](Value v) { return plan.available(v) == codegen::Availability(); };
    if (llvm::all_of(op->getResults(), isSmall) && llvm::all_of(op->getResults(), isAtHand) &&
        !isa<ViewLikeOpInterface>(op) && plan.getElements() > 1)
      return op;
  }
  return nullptr;
}

static std::string name(Operation *op) { return op->getName().stripDialect().str(); }

static std::string place(Operation *op) {
  StringRef path = pathOf(op);
  return path.empty() ? name(op) : name(op) + " in " + path.str();
}

bool FusionGroups::isReadBackward(Value v) {
  auto [known, isNew] = readBackward.try_emplace(v, false);
  if (isNew)
    known->second = mpc::isReadBackward(v);
  return known->second;
}

FusionGroups::Merge FusionGroups::judge(unsigned a, unsigned b) {
  SmallVector<Operation *> operations(groups.members(a));
  llvm::append_range(operations, groups.members(b));
  if (operations.size() > costs.maxOperations)
    return {0, llvm::formatv("the region would have more than {0} operations", costs.maxOperations)};
  if (llvm::any_of(operations, [](Operation *op) { return dialectOf(op).getChainAttrHelper().isAttrPresent(op); }))
    return {0, "it adds to what earlier chunks have left, as soon as their successor is there"};
  auto readBackward = [&](Value v) { return isReadBackward(v); };
  if (int64_t kept = bytesKeptMore(groups.members(a), groups.members(b), readBackward); kept > 0)
    return {0, llvm::formatv("{0} bytes more would be kept for the backward pass", kept)};
  llvm::sort(operations, isEarlier);
  FusionBody body = fusionBody(operations);
  llvm::Expected<FusionPlan> plan = planOf(body);
  if (!plan)
    return {0, llvm::toString(plan.takeError())};
  if (Operation *op = smallAndUnreduced(body, *plan))
    return {0, name(op) + " is smaller than the region and would be computed for every row"};
  FusionTraffic cost = costOf(body, *plan);
  if (cost.repeated)
    return {0, name(cost.repeated) + " would be computed in several phases"};
  int64_t bytes = groupCosts[a].bytes + groupCosts[b].bytes - cost.bytes;
  int64_t launches = int64_t(groupCosts[a].launches) + groupCosts[b].launches - cost.launches;
  int64_t saved = bytes + launches * costs.bytesPerLaunch;
  if (saved <= 0)
    return {0, llvm::formatv("the region would move {0} bytes more", -bytes)};
  return {saved, ""};
}

void FusionGroups::forgetProposals(unsigned group) {
  auto known = partners.find(group);
  if (known == partners.end())
    return;
  for (unsigned other : known->second)
    choices += proposals.erase(std::minmax(group, other));
  partners.erase(known);
}

void FusionGroups::mergeBest() {
  for (; !candidates.empty(); ++choices) {
    Candidate best = candidates.top();
    candidates.pop();
    auto proposal = proposals.find(best.groups);
    if (proposal == proposals.end() || proposal->second.trial != best.trial)
      continue;
    auto [a, b] = best.groups;
    if (Operation *between = groups.between(a, b)) {
      proposal->second = {0, "a way leads out of the region and back through " + place(between)};
      continue;
    }
    groups.merge(a, b);
    FusionBody body = fusionBody(groups.members(a));
    groupCosts[a] = costOf(body, llvm::cantFail(planOf(body)));
    bytesAlone[a] += bytesAlone[b];
    forgetProposals(a);
    forgetProposals(b);
    propose(a);
  }
}

//===-- Explanation
//------------------------------------------------------------------------------------------------===//

std::string FusionGroups::whyNot(unsigned group, Operation *other) const {
  if (std::string obstacle = obstacles.lookup(other); !obstacle.empty())
    return obstacle;
  return proposals.lookup(std::minmax(group, *groups.groupOf(other))).obstacle;
}

void FusionGroups::describe(unsigned group) {
  ArrayRef<Operation *> members = groups.members(group);
  FusionGroup region{group, SmallVector<Operation *>(members), bytesAlone[group] - groupCosts[group].bytes, {}};
  for (Operation *op : producersAndReaders(members))
    if (obstacles.contains(op) && !isa<ConstantOp>(op))
      region.leftOut.push_back({op, whyNot(group, op)});
  regions.push_back(std::move(region));
}

} // namespace mpc
