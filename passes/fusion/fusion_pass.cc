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
#include "passes/fusion/fusion_body.h"
#include "passes/fusion/fusion_choice.h"
#include "passes/fusion/fusion_groups.h"
#include "passes/fusion/gradient_parts.h"
#include "passes/fusion/lone_operations.h"
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
ScopeAttr commonScope(ArrayRef<Operation *> operations) {
  std::optional<SmallVector<StringRef>> common;
  bool network = true;
  for (Operation *op : operations) {
    ScopeAttr scope = scopeOf(op);
    if (!scope || scope.getPath().empty())
      continue;
    SmallVector<StringRef> cells;
    scope.getPath().split(cells, '/');
    if (!common)
      common = cells;
    auto ends = std::mismatch(common->begin(), common->end(), cells.begin(), cells.end());
    common->erase(ends.first, common->end());
    network &= scope.getNetwork();
  }
  if (!common || common->empty())
    return {};
  return ScopeAttr::get(operations.front()->getContext(), llvm::join(*common, "/"), network, {}, "", {});
}

std::string describe(const FusionGroup::Neighbour &neighbour) {
  std::string text = neighbour.op->getName().stripDialect().str();
  if (StringRef path = pathOf(neighbour.op); !path.empty())
    text += " in " + path.str();
  return text + ": " + neighbour.why;
}

// Each text once, with its count.
SmallVector<std::string> describe(ArrayRef<FusionGroup::Neighbour> neighbours) {
  llvm::MapVector<std::string, unsigned, std::map<std::string, unsigned>> counts;
  for (const FusionGroup::Neighbour &neighbour : neighbours)
    ++counts[describe(neighbour)];
  return llvm::map_to_vector(counts, [](const auto &entry) {
    return entry.second > 1 ? entry.first + " (" + std::to_string(entry.second) + ")" : entry.first;
  });
}

/// Writes a block anew, region by region.
class BlockWriter {
public:
  BlockWriter(Block &body, const FusionGroups &choice)
      : choice(choice), terminator(body.getTerminator()), builder(terminator), views(body) {}

  void run() {
    llvm::DenseMap<unsigned, const FusionGroup *> regions;
    for (const FusionGroup &region : choice.getRegions())
      regions[region.group] = &region;
    for (unsigned group : choice.getGroups().schedule()) {
      if (const FusionGroup *region = regions.lookup(group))
        writeRegion(*region);
      else
        write(choice.getGroups().members(group).front());
    }
    views.moveFor(terminator);
    SmallVector<Operation *> unread = views.getLeft();
    for (Operation *view : llvm::reverse(unread))
      view->erase();
  }

private:
  void write(Operation *op) {
    views.moveFor(op);
    op->moveBefore(terminator);
  }

  void writeRegion(const FusionGroup &region) {
    FusionBody parts = fusionBody(region.operations);
    for (Value input : parts.inputs)
      views.moveFor(input);
    SmallVector<Location> places = llvm::map_to_vector(region.operations, [](Operation *op) { return op->getLoc(); });
    auto fusion =
        FusionOp::create(builder, builder.getFusedLoc(places), ValueRange(parts.outputs).getTypes(), parts.inputs);
    fill(fusion.getBody().emplaceBlock(), parts);
    for (auto [output, result] : llvm::zip_equal(parts.outputs, fusion.getResults()))
      output.replaceUsesWithIf(result, [&](OpOperand &use) { return !fusion->isProperAncestor(use.getOwner()); });
    if (ScopeAttr scope = commonScope(region.operations))
      setScope(fusion, scope);
    writeFusionChoice(fusion, {region.bytesSaved, describe(region.leftOut)});
  }

  static void fill(Block &inside, const FusionBody &parts) {
    IRMapping mapping;
    for (Value input : parts.inputs)
      mapping.map(input, inside.addArgument(input.getType(), input.getLoc()));
    OpBuilder bodyBuilder = OpBuilder::atBlockEnd(&inside);
    for (Operation *op : parts.operations) {
      if (isa<ViewLikeOpInterface>(op)) {
        bodyBuilder.clone(*op, mapping);
        continue;
      }
      op->moveBefore(&inside, inside.end());
      for (OpOperand &operand : op->getOpOperands())
        operand.set(mapping.lookupOrDefault(operand.get()));
    }
    YieldOp::create(bodyBuilder, inside.getParentOp()->getLoc(), parts.outputs);
  }

  const FusionGroups &choice;
  Operation *terminator;
  OpBuilder builder;
  ViewMover views;
};

class FusionPass : public impl::FusionPassBase<FusionPass> {
public:
  using FusionPassBase::FusionPassBase;

  void runOnOperation() override {
    FailureOr<std::unique_ptr<TargetModel>> target = targetModelOf(getOperation());
    if (failed(target))
      return signalPassFailure();
    for (const Option<unsigned> *limit : {&maxOperations, &maxTensors})
      if (*limit < 1) {
        getOperation().emitError() << limit->getArgStr() << " of mpc-fusion must be at least 1, got "
                                   << limit->getValue();
        return signalPassFailure();
      }
    FusionCosts costs{(*target)->bytesPerLaunch(), maxOperations, maxTensors, (*target)->loneFusions()};
    const bool generatesWhatHasNoKernel =
        costs.alsoAlone == LoneFusions::WithoutKernel || costs.alsoAlone == LoneFusions::WithoutKernelOrWorthIt;
    // Without fusion only what has no kernel is a region.
    if (maxOperations == 1)
      costs.alsoAlone = generatesWhatHasNoKernel ? LoneFusions::WithoutKernel : LoneFusions::None;
    Block *body = onlyBlock(getOperation());
    if (!body)
      return;
    if (generatesWhatHasNoKernel) {
      makeRowsContiguous(*body);
      separateOperands(*body);
    }
    GradientParts parts(*body);
    FusionGroups choice(*body, costs);
    if (!choice.getRegions().empty())
      BlockWriter(*body, choice).run();
    parts.joinLeftOver();
  }
};

} // namespace

} // namespace mpc
