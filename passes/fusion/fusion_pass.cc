// Puts the groups that FusionGroups chooses into regions.
//
//   %s = mpc.add %x, %r : tensor<32x84xf32>
//   %y = mpc.relu %s : tensor<32x84xf32>
// becomes
//   %y = mpc.fusion(%x, %r) {
//   ^bb0(%a: ..., %b: ...):
//     %s = mpc.add %a, %b : ...
//     %t = mpc.relu %s : ...
//     mpc.yield %t : ...
//   } {mpc.fusion_choice = ...} : ...
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "mlir/IR/IRMapping.h"
#include "passes/function_body.h"
#include "passes/fusion/fusion_choice.h"
#include "passes/fusion/fusion_groups.h"
#include "passes/fusion/gradient_parts.h"
#include "passes/fusion/lone_operations.h"
#include "passes/fusion/region_body.h"
#include "passes/passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

#include <map>

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_FUSIONPASS
#include "passes/passes.h.inc"

namespace {

// The Cell path that all operations share; null where they share none.
ScopeAttr commonScope(ArrayRef<Operation *> Operations) {
  std::optional<SmallVector<StringRef>> Common;
  bool Network = true;
  for (Operation *Op : Operations) {
    ScopeAttr Scope = scopeOf(Op);
    if (!Scope || Scope.getPath().empty())
      continue;
    SmallVector<StringRef> Cells;
    Scope.getPath().split(Cells, '/');
    if (!Common)
      Common = Cells;
    auto Ends = std::mismatch(Common->begin(), Common->end(), Cells.begin(), Cells.end());
    Common->erase(Ends.first, Common->end());
    Network &= Scope.getNetwork();
  }
  if (!Common || Common->empty())
    return {};
  return ScopeAttr::get(Operations.front()->getContext(), llvm::join(*Common, "/"), Network, {}, "", {});
}

std::string describe(const FusionRegion::Neighbour &Neighbour) {
  std::string Text = Neighbour.Op->getName().stripDialect().str();
  if (StringRef Path = pathOf(Neighbour.Op); !Path.empty())
    Text += " in " + Path.str();
  return Text + ": " + Neighbour.Why;
}

// Each text once, with its count.
SmallVector<std::string> describe(ArrayRef<FusionRegion::Neighbour> Neighbours) {
  llvm::MapVector<std::string, unsigned, std::map<std::string, unsigned>> Counts;
  for (const FusionRegion::Neighbour &Neighbour : Neighbours)
    ++Counts[describe(Neighbour)];
  return llvm::map_to_vector(Counts, [](const auto &Entry) {
    return Entry.second > 1 ? Entry.first + " (" + std::to_string(Entry.second) + ")" : Entry.first;
  });
}

/// Writes a block anew, region by region.
class BlockWriter {
public:
  BlockWriter(Block &Body, const FusionGroups &Choice)
      : Choice(Choice), Terminator(Body.getTerminator()), Builder(Terminator), Views(Body) {}

  void run() {
    llvm::DenseMap<unsigned, const FusionRegion *> Regions;
    for (const FusionRegion &Region : Choice.regions())
      Regions[Region.Group] = &Region;
    for (unsigned Group : Choice.groups().schedule()) {
      if (const FusionRegion *Region = Regions.lookup(Group))
        writeRegion(*Region);
      else
        write(Choice.groups().members(Group).front());
    }
    Views.moveFor(Terminator);
    for (Operation *Unread : llvm::reverse(Views.left()))
      Unread->erase();
  }

private:
  void write(Operation *Op) {
    Views.moveFor(Op);
    Op->moveBefore(Terminator);
  }

  void writeRegion(const FusionRegion &Region) {
    RegionBody Parts = regionBody(Region.Operations);
    for (Value Input : Parts.Inputs)
      Views.moveFor(Input);
    SmallVector<Location> Places = llvm::map_to_vector(Region.Operations, [](Operation *Op) { return Op->getLoc(); });
    auto Fusion =
        FusionOp::create(Builder, Builder.getFusedLoc(Places), ValueRange(Parts.Outputs).getTypes(), Parts.Inputs);
    fill(Fusion.getBody().emplaceBlock(), Parts);
    for (auto [Output, Result] : llvm::zip_equal(Parts.Outputs, Fusion.getResults()))
      Output.replaceUsesWithIf(Result, [&](OpOperand &Use) { return !Fusion->isProperAncestor(Use.getOwner()); });
    if (ScopeAttr Scope = commonScope(Region.Operations))
      setScope(Fusion, Scope);
    writeFusionChoice(Fusion, {Region.BytesSaved, describe(Region.LeftOut)});
  }

  static void fill(Block &Inside, const RegionBody &Parts) {
    IRMapping Mapping;
    for (Value Input : Parts.Inputs)
      Mapping.map(Input, Inside.addArgument(Input.getType(), Input.getLoc()));
    OpBuilder BodyBuilder = OpBuilder::atBlockEnd(&Inside);
    for (Operation *Op : Parts.Operations) {
      if (isa<ViewLikeOpInterface>(Op)) {
        BodyBuilder.clone(*Op, Mapping);
        continue;
      }
      Op->moveBefore(&Inside, Inside.end());
      for (OpOperand &Operand : Op->getOpOperands())
        Operand.set(Mapping.lookupOrDefault(Operand.get()));
    }
    YieldOp::create(BodyBuilder, Inside.getParentOp()->getLoc(), Parts.Outputs);
  }

  const FusionGroups &Choice;
  Operation *Terminator;
  OpBuilder Builder;
  ViewMover Views;
};

class FusionPass : public impl::FusionPassBase<FusionPass> {
public:
  using FusionPassBase::FusionPassBase;

  void runOnOperation() override {
    FailureOr<std::unique_ptr<TargetModel>> Target = targetModelOf(getOperation());
    if (failed(Target))
      return signalPassFailure();
    if (maxOperations < 1) {
      getOperation().emitError() << "max-operations of mpc-fusion must be at least 1, got " << maxOperations.getValue();
      return signalPassFailure();
    }
    FusionCosts Costs{(*Target)->bytesPerLaunch(), maxOperations, (*Target)->loneRegions()};
    if (maxOperations == 1 && Costs.AlsoAlone == LoneRegions::WithoutKernelOrWorthIt)
      Costs.AlsoAlone = LoneRegions::WithoutKernel;
    Block *Body = onlyBlock(getOperation());
    if (!Body)
      return;
    if (Costs.AlsoAlone != LoneRegions::None) {
      makeRowsContiguous(*Body);
      separateOperands(*Body);
    }
    GradientParts Parts(*Body);
    FusionGroups Choice(*Body, Costs);
    if (!Choice.regions().empty())
      BlockWriter(*Body, Choice).run();
    Parts.joinLeftOver();
  }
};

} // namespace

} // namespace mpc
