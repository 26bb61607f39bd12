#include "passes/step/update_groups.h"

#include "compiler/dialect/dialect.h"
using namespace mlir;

namespace mpc {

UpdateGroups::UpdateGroups(Block &body, const StepFlow &flow, llvm::function_ref<UpdateKey(Operation *)> keyOf)
    : flow(flow) {
  unsigned requestsSeen = 0;
  SmallVector<std::pair<Operation *, UpdateKey>> waiting;
  for (Operation &op : body) {
    requestsSeen += isLossRequest(&op);
    if (!op.hasTrait<StateUpdate>()) {
      needsOf[&op] = reads(&op);
      continue;
    }
    UpdateKey key = keyOf(&op);
    if (!key.any && !key.last && key.requests.none())
      needsOf[&op] = reads(&op);
    else if (isDecided(key, requestsSeen))
      add(&op, key);
    else if (canWait(&op))
      waiting.push_back({&op, key});
    else
      needsOf[&op] = reads(&op);
  }
  for (auto &[op, key] : waiting)
    add(op, key);
  sortRegions();
}

bool UpdateGroups::canWait(Operation *update) const {
  return llvm::all_of(update->getUsers(), [](Operation *user) { return isa<func::ReturnOp>(user); });
}

bool UpdateGroups::isDecided(const UpdateKey &key, unsigned requestsSeen) const {
  unsigned count = flow.getRequests().size();
  return requestsSeen == count || (!key.any && key.requests.find_last() < int(requestsSeen));
}

UpdateGroups::Mask UpdateGroups::reads(Operation *op, unsigned except) const {
  Mask read = 0;
  for (Value operand : op->getOperands()) {
    Operation *definition = operand.getDefiningOp();
    if (!definition)
      continue;
    auto region = regionOf.find(definition);
    if (region == regionOf.end())
      read |= needsOf.lookup(definition);
    else if (region->second != except)
      read |= Mask(1) << region->second;
  }
  return read;
}

UpdateGroups::Mask UpdateGroups::closure(Mask reached) const {
  for (Mask last = 0; last != reached;) {
    last = reached;
    for (auto [index, need] : llvm::enumerate(needs))
      if (reached >> index & 1)
        reached |= need;
  }
  return reached;
}

void UpdateGroups::add(Operation *update, const UpdateKey &key) {
  Mask ofRequests = 0;
  for (auto [index, request] : llvm::enumerate(flow.getRequests()))
    if (key.any || (index < key.requests.size() && key.requests.test(index)))
      ofRequests |= needsOf.lookup(request.op);
  for (unsigned index = 0; index < regions.size(); ++index) {
    Mask need = reads(update, index) | ofRequests;
    if (!(regions[index].key == key) || closure(need) >> index & 1)
      continue;
    regions[index].updates.insert(update);
    needs[index] |= need;
    regionOf[update] = index;
    return;
  }
  Mask need = reads(update) | ofRequests;
  if (regions.size() == maxRegions) {
    needsOf[update] = need;
    return;
  }
  regionOf[update] = regions.size();
  regions.push_back({key, {}});
  regions.back().updates.insert(update);
  needs.push_back(need);
}

// Regions do not read from each other in a circle, so one is always ready.
void UpdateGroups::sortRegions() {
  SmallVector<UpdateGroup> sorted;
  Mask done = 0;
  while (sorted.size() < regions.size())
    for (unsigned index = 0; index < regions.size(); ++index)
      if (!(done >> index & 1) && !(needs[index] & ~done)) {
        done |= Mask(1) << index;
        sorted.push_back(regions[index]);
      }
  regions = std::move(sorted);
  for (auto [index, region] : llvm::enumerate(regions))
    for (Operation *update : region.updates)
      regionOf[update] = index;
}

} // namespace mpc
