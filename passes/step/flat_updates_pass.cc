// Decides which optimizer updates share flat buffers.
//
//   %p2, %vp2 = mpc.momentum %p, %vp, %gp, %rate : ...
//   %q2, %vq2 = mpc.momentum %q, %vq, %gq, %rate : ...
// becomes
//   %p2, %vp2 = mpc.momentum %p, %vp, %gp, %rate {mpc.flat_group = 0} : ...
//   %q2, %vq2 = mpc.momentum %q, %vq, %gq, %rate {mpc.flat_group = 0} : ...
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/state_attributes.h"
#include "passes/passes.h"
#include "passes/step/update_agreement.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_FLATUPDATESPASS
#include "passes/passes.h.inc"

namespace {

ArrayRef<int64_t> shapeOf(Value v) { return cast<RankedTensorType>(v.getType()).getShape(); }

/// The kind of storage that the tensors of a buffer share. Inputs and constants lie where their owners put them.
enum class Home { State, Arena, Elsewhere };

Home homeOf(Value v) {
  Value source = behindViews(v);
  if (isState(roleOf(source)))
    return Home::State;
  Operation *producer = source.getDefiningOp();
  if (!producer || producer->hasTrait<OpTrait::ConstantLike>())
    return Home::Elsewhere;
  return producer->hasTrait<StateUpdate>() ? Home::State : Home::Arena;
}

/// Updates that follow each other and may lie in flat buffers.
class FlatGroup {
public:
  /// \p taken are tensors of other groups.
  FlatGroup(OptimizerOpInterface first, const llvm::DenseSet<Value> &taken) : first(first), taken(taken) {
    if (has<Property::ElementwiseUpdate>(first))
      join(first);
  }

  ArrayRef<Operation *> getMembers() const { return members; }
  const llvm::DenseSet<Value> &getTensors() const { return tensors; }

  /// Adds \p update where it agrees with the others, shares their scalars and no tensor with them.
  bool join(OptimizerOpInterface update) {
    ArrayRef<int64_t> shape = shapeOf(update->getOperand(0));
    if (shape.empty() || !mayShareKernel(first, update))
      return false;
    llvm::DenseSet<Value> own;
    for (auto [operand, ofFirst] : llvm::zip_equal(update->getOperands(), first->getOperands())) {
      bool isTensor = shapeOf(operand) == shape;
      if (isTensor != (shapeOf(ofFirst) == shapeOf(first->getOperand(0))) || (!isTensor && operand != ofFirst))
        return false;
      if (!isTensor)
        continue;
      Value tensor = behindViews(operand);
      if (homeOf(operand) == Home::Elsewhere || homeOf(operand) != homeOf(ofFirst) || tensors.contains(tensor) ||
          taken.contains(tensor) || !own.insert(tensor).second)
        return false;
    }
    tensors.insert_range(own);
    members.push_back(update);
    return true;
  }

private:
  OptimizerOpInterface first;
  const llvm::DenseSet<Value> &taken;
  SmallVector<Operation *> members;
  llvm::DenseSet<Value> tensors;
};

class FlatUpdatesPass : public impl::FlatUpdatesPassBase<FlatUpdatesPass> {
public:
  using FlatUpdatesPassBase::FlatUpdatesPassBase;

  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    MpcDialect::FlatGroupAttrHelper helper = dialectOf(getOperation()).getFlatGroupAttrHelper();
    getOperation().walk([&](OptimizerOpInterface update) {
      if (helper.isAttrPresent(update))
        helper.removeAttr(update);
    });
    OpBuilder builder(&getContext());
    llvm::DenseSet<Value> taken;
    int64_t count = 0;
    for (const FlatGroup &group : findGroups(taken)) {
      for (Operation *update : group.getMembers())
        helper.setAttr(update, builder.getI64IntegerAttr(count));
      ++count;
    }
  }

private:
  std::vector<FlatGroup> findGroups(llvm::DenseSet<Value> &taken) {
    std::vector<FlatGroup> groups;
    std::optional<FlatGroup> open;
    auto close = [&] {
      if (open && open->getMembers().size() > 1) {
        taken.insert_range(open->getTensors());
        groups.push_back(*std::move(open));
      }
      open.reset();
    };
    for (Operation &op : getOperation().getBody().front()) {
      if (isViewOrConstant(&op))
        continue;
      auto update = dyn_cast<OptimizerOpInterface>(op);
      if (open && update && !open->getMembers().empty() && open->join(update))
        continue;
      close();
      if (update)
        open.emplace(update, taken);
    }
    close();
    return groups;
  }
};

} // namespace

} // namespace mpc
