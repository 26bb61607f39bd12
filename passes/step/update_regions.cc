#include "passes/step/update_regions.h"

#include "compiler/dialect/dialect.h"
using namespace mlir;

namespace mpc {

UpdateRegions::UpdateRegions(Block &Body, const StepFlow &Flow, llvm::function_ref<UpdateKey(Operation *)> KeyOf)
    : Flow(Flow) {
  unsigned RequestsSeen = 0;
  SmallVector<std::pair<Operation *, UpdateKey>> Waiting;
  for (Operation &Op : Body) {
    RequestsSeen += has<Property::GradientRequest>(&Op);
    if (!Op.hasTrait<StateUpdate>()) {
      NeedsOf[&Op] = reads(&Op);
      continue;
    }
    UpdateKey Key = KeyOf(&Op);
    if (!Key.Any && !Key.Last && Key.Requests.none())
      NeedsOf[&Op] = reads(&Op);
    else if (isDecided(Key, RequestsSeen))
      add(&Op, Key);
    else if (canWait(&Op))
      Waiting.push_back({&Op, Key});
    else
      NeedsOf[&Op] = reads(&Op);
  }
  for (auto &[Op, Key] : Waiting)
    add(Op, Key);
  sortRegions();
}

bool UpdateRegions::canWait(Operation *Update) const {
  return llvm::all_of(Update->getUsers(), [](Operation *User) { return isa<func::ReturnOp>(User); });
}

bool UpdateRegions::isDecided(const UpdateKey &Key, unsigned RequestsSeen) const {
  unsigned Count = Flow.requests().size();
  return RequestsSeen == Count || (!Key.Any && Key.Requests.find_last() < int(RequestsSeen));
}

UpdateRegions::Mask UpdateRegions::reads(Operation *Op, unsigned Except) const {
  Mask Read = 0;
  for (Value Operand : Op->getOperands()) {
    Operation *Definition = Operand.getDefiningOp();
    if (!Definition)
      continue;
    auto Region = RegionOf.find(Definition);
    if (Region == RegionOf.end())
      Read |= NeedsOf.lookup(Definition);
    else if (Region->second != Except)
      Read |= Mask(1) << Region->second;
  }
  return Read;
}

UpdateRegions::Mask UpdateRegions::closure(Mask Reached) const {
  for (Mask Last = 0; Last != Reached;) {
    Last = Reached;
    for (auto [Index, Need] : llvm::enumerate(Needs))
      if (Reached >> Index & 1)
        Reached |= Need;
  }
  return Reached;
}

void UpdateRegions::add(Operation *Update, const UpdateKey &Key) {
  Mask OfRequests = 0;
  for (auto [Index, Request] : llvm::enumerate(Flow.requests()))
    if (Key.Any || (Index < Key.Requests.size() && Key.Requests.test(Index)))
      OfRequests |= NeedsOf.lookup(Request.Op);
  for (unsigned Index = 0; Index < Regions.size(); ++Index) {
    Mask Need = reads(Update, Index) | OfRequests;
    if (!(Regions[Index].Key == Key) || closure(Need) >> Index & 1)
      continue;
    Regions[Index].Updates.insert(Update);
    Needs[Index] |= Need;
    RegionOf[Update] = Index;
    return;
  }
  Mask Need = reads(Update) | OfRequests;
  if (Regions.size() == MaxRegions) {
    NeedsOf[Update] = Need;
    return;
  }
  RegionOf[Update] = Regions.size();
  Regions.push_back({Key, {}});
  Regions.back().Updates.insert(Update);
  Needs.push_back(Need);
}

// Regions do not read from each other in a circle, so one is always ready.
void UpdateRegions::sortRegions() {
  SmallVector<UpdateRegion> Sorted;
  Mask Done = 0;
  while (Sorted.size() < Regions.size())
    for (unsigned Index = 0; Index < Regions.size(); ++Index)
      if (!(Done >> Index & 1) && !(Needs[Index] & ~Done)) {
        Done |= Mask(1) << Index;
        Sorted.push_back(Regions[Index]);
      }
  Regions = std::move(Sorted);
  for (auto [Index, Region] : llvm::enumerate(Regions))
    for (Operation *Update : Region.Updates)
      RegionOf[Update] = Index;
}

} // namespace mpc
