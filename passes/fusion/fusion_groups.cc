#include "passes/fusion/fusion_groups.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "passes/fusion/gradient_parts.h"
#include "passes/fusion/kept_values.h"
#include "passes/fusion/lone_operations.h"
#include "passes/fusion/region_body.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace mpc {

using codegen::RegionPlan;

static int64_t elementsOf(Value V) {
  auto Type = dyn_cast<RankedTensorType>(V.getType());
  return Type && Type.hasStaticShape() ? Type.getNumElements() : 0;
}

// What happens to gradients and state after the backward pass belongs to the update.
static bool isPartOfUpdate(Operation *Op) {
  auto Select = dyn_cast<SelectOp>(Op);
  return Op->hasTrait<StateUpdate>() || has<Property::Scaling>(Op) ||
         (Select && elementsOf(Select.getCondition()) == 1);
}

static bool readsF64(Operation *Op) {
  return llvm::any_of(Op->getOperandTypes(), [](Type Type) { return getElementTypeOrSelf(Type).isF64(); });
}

static llvm::Expected<RegionPlan> planOf(const RegionBody &Body) { return RegionPlan::of(Body.Operations); }

static RegionCost costOf(const RegionBody &Body, const RegionPlan &Plan) {
  llvm::SmallPtrSet<void *, 8> Stored;
  for (Value V : Body.Outputs)
    Stored.insert(V.getAsOpaquePointer());
  return regionCost(Plan, [&](Value V) { return Stored.contains(V.getAsOpaquePointer()); });
}

//===-- Candidates
//-------------------------------------------------------------------------------------------------===//

std::string FusionGroups::obstacle(Operation *Op) {
  if (isa<FusionOp>(Op))
    return "it is a region already";
  if (isPartOfUpdate(Op))
    return "it is part of an update of state";
  if (Op->use_empty())
    return "nothing reads it";
  if (!isa<FusibleOpInterface>(Op))
    return "it is not computed element by element";
  if (readsF64(Op))
    return "it computes in f64";
  RegionBody Body = regionBody({Op});
  llvm::Expected<RegionPlan> Plan = planOf(Body);
  if (!Plan)
    return llvm::toString(Plan.takeError());
  unsigned Group = *Groups.groupOf(Op);
  GroupCosts[Group] = costOf(Body, *Plan);
  BytesAlone[Group] = GroupCosts[Group].Bytes;
  if (has<Property::GradientPart>(Op))
    GroupCosts[Group].Launches = 0;
  return "";
}

bool FusionGroups::isRegionAlone(Operation *Op) const {
  if (Costs.AlsoAlone == LoneRegions::None || !Obstacles.lookup(Op).empty())
    return false;
  return has<Property::GeneratedOnCpu>(Op) ||
         (Costs.AlsoAlone == LoneRegions::WithoutKernelOrWorthIt && isWorthAlone(Op));
}

FusionGroups::FusionGroups(Block &Body, const FusionCosts &Costs) : Costs(Costs), Groups(Body) {
  GroupCosts.resize(Groups.size());
  BytesAlone.resize(Groups.size());
  for (unsigned Group = 0; Group < Groups.size(); ++Group) {
    Operation *Op = Groups.members(Group).front();
    Obstacles[Op] = obstacle(Op);
  }
  for (unsigned Group = 0; Group < Groups.size(); ++Group)
    propose(Group);
  mergeBest();
  for (unsigned Group : Groups.schedule()) {
    ArrayRef<Operation *> Members = Groups.members(Group);
    if (Members.size() > 1 || isRegionAlone(Members.front()))
      describe(Group);
  }
}

//===-- Merging
//----------------------------------------------------------------------------------------------------===//

using OperationSet = llvm::SmallSetVector<Operation *, 8>;

// The operations that read a value, behind views or not.
static void collectReaders(Value V, OperationSet &Readers) {
  for (Operation *User : V.getUsers()) {
    if (auto View = dyn_cast<ViewLikeOpInterface>(User))
      collectReaders(View.getViewDest(), Readers);
    else
      Readers.insert(User);
  }
}

// Whether nothing that the operation reads or writes is larger: sharing a load of it pays.
static bool isWhole(Value V, Operation *Op) {
  auto IsLarger = [&](Value Other) { return elementsOf(Other) > elementsOf(V); };
  return llvm::none_of(Op->getOperands(), IsLarger) && llvm::none_of(Op->getResults(), IsLarger);
}

// Operations that hand values to a group or take values from it.
static OperationSet producersAndReaders(ArrayRef<Operation *> Members) {
  OperationSet Found;
  for (Operation *Op : Members) {
    for (Value Operand : Op->getOperands())
      if (Operation *Producer = behindViews(Operand).getDefiningOp())
        Found.insert(Producer);
    for (Value Result : Op->getResults())
      collectReaders(Result, Found);
  }
  Found.set_subtract(Members);
  return Found;
}

// Operations that read a whole tensor together with a group.
static OperationSet siblings(ArrayRef<Operation *> Members) {
  OperationSet Found;
  for (Operation *Op : Members)
    for (Value Operand : Op->getOperands()) {
      Value Source = behindViews(Operand);
      if (elementsOf(Source) == 1 || !isWhole(Source, Op))
        continue;
      OperationSet Readers;
      collectReaders(Source, Readers);
      Found.insert_range(llvm::make_filter_range(Readers, [&](Operation *Reader) { return isWhole(Source, Reader); }));
    }
  Found.set_subtract(Members);
  return Found;
}

SmallVector<unsigned> FusionGroups::neighbours(unsigned Group) const {
  llvm::SmallSetVector<unsigned, 8> Found;
  OperationSet Around = producersAndReaders(Groups.members(Group));
  Around.insert_range(siblings(Groups.members(Group)));
  for (Operation *Op : Around)
    if (auto Known = Obstacles.find(Op); Known != Obstacles.end() && Known->second.empty())
      Found.insert(*Groups.groupOf(Op));
  return Found.takeVector();
}

void FusionGroups::propose(unsigned Group) {
  if (Groups.members(Group).empty() || !Obstacles.lookup(Groups.members(Group).front()).empty())
    return;
  for (unsigned Other : neighbours(Group)) {
    Pair Key = std::minmax(Group, Other);
    if (Proposals.contains(Key))
      continue;
    ++Trials;
    Proposals[Key] = judge(Key.first, Key.second);
  }
}

// An operation on values smaller than the space that no reduction of the region gives: its elements would be computed
// again for every row.
static Operation *smallAndUnreduced(const RegionBody &Body, const RegionPlan &Plan) {
  for (Operation *Op : Body.Operations) {
    auto IsSmall = [&](Value V) { return Plan.extent(V) != codegen::Extent::Full; };
    auto IsAtHand = [&](Value V) { return Plan.available(V) == codegen::Availability(); };
    if (llvm::all_of(Op->getResults(), IsSmall) && llvm::all_of(Op->getResults(), IsAtHand) &&
        !isa<ViewLikeOpInterface>(Op) && Plan.elements() > 1)
      return Op;
  }
  return nullptr;
}

static std::string name(Operation *Op) { return Op->getName().stripDialect().str(); }

static std::string place(Operation *Op) {
  StringRef Path = pathOf(Op);
  return Path.empty() ? name(Op) : name(Op) + " in " + Path.str();
}

FusionGroups::Merge FusionGroups::judge(unsigned A, unsigned B) const {
  SmallVector<Operation *> Operations(Groups.members(A));
  llvm::append_range(Operations, Groups.members(B));
  if (Operations.size() > Costs.MaxOperations)
    return {0, llvm::formatv("the region would have more than {0} operations", Costs.MaxOperations)};
  if (llvm::any_of(Operations, [](Operation *Op) { return dialectOf(Op).getChainAttrHelper().isAttrPresent(Op); }))
    return {0, "it adds to what earlier chunks have left, as soon as their successor is there"};
  if (int64_t Kept = bytesKeptMore(Groups.members(A), Groups.members(B)); Kept > 0)
    return {0, llvm::formatv("{0} bytes more would be kept for the backward pass", Kept)};
  llvm::sort(Operations, [](Operation *L, Operation *R) { return L->isBeforeInBlock(R); });
  RegionBody Body = regionBody(Operations);
  llvm::Expected<RegionPlan> Plan = planOf(Body);
  if (!Plan)
    return {0, llvm::toString(Plan.takeError())};
  if (Operation *Op = smallAndUnreduced(Body, *Plan))
    return {0, name(Op) + " is smaller than the region and would be computed for every row"};
  RegionCost Cost = costOf(Body, *Plan);
  if (Cost.Repeated)
    return {0, name(Cost.Repeated) + " would be computed in several phases"};
  int64_t Bytes = GroupCosts[A].Bytes + GroupCosts[B].Bytes - Cost.Bytes;
  int64_t Launches = int64_t(GroupCosts[A].Launches) + GroupCosts[B].Launches - Cost.Launches;
  int64_t Saved = Bytes + Launches * Costs.BytesPerLaunch;
  if (Saved <= 0)
    return {0, llvm::formatv("the region would move {0} bytes more", -Bytes)};
  return {Saved, ""};
}

void FusionGroups::mergeBest() {
  while (true) {
    auto Better = [](const auto &L, const auto &R) { return L.second.Saved < R.second.Saved; };
    auto Best = std::max_element(Proposals.begin(), Proposals.end(), Better);
    if (Best == Proposals.end() || Best->second.Saved <= 0)
      return;
    auto [A, B] = Best->first;
    if (Operation *Between = Groups.between(A, B)) {
      Best->second = {0, "a way leads out of the region and back through " + place(Between)};
      continue;
    }
    Groups.merge(A, B);
    RegionBody Body = regionBody(Groups.members(A));
    GroupCosts[A] = costOf(Body, llvm::cantFail(planOf(Body)));
    BytesAlone[A] += BytesAlone[B];
    Proposals.remove_if([A = A, B = B](const auto &Entry) {
      return llvm::is_contained({Entry.first.first, Entry.first.second}, A) ||
             llvm::is_contained({Entry.first.first, Entry.first.second}, B);
    });
    propose(A);
  }
}

//===-- Explanation
//------------------------------------------------------------------------------------------------===//

std::string FusionGroups::whyNot(unsigned Group, Operation *Other) const {
  if (std::string Obstacle = Obstacles.lookup(Other); !Obstacle.empty())
    return Obstacle;
  return Proposals.lookup(std::minmax(Group, *Groups.groupOf(Other))).Obstacle;
}

void FusionGroups::describe(unsigned Group) {
  ArrayRef<Operation *> Members = Groups.members(Group);
  FusionRegion Region{Group, SmallVector<Operation *>(Members), BytesAlone[Group] - GroupCosts[Group].Bytes, {}};
  for (Operation *Op : producersAndReaders(Members))
    if (Obstacles.contains(Op) && !isa<ConstantOp>(Op))
      Region.LeftOut.push_back({Op, whyNot(Group, Op)});
  Regions.push_back(std::move(Region));
}

} // namespace mpc
