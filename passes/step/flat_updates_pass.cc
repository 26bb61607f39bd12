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

ArrayRef<int64_t> shapeOf(Value V) { return cast<RankedTensorType>(V.getType()).getShape(); }

/// The kind of storage that the tensors of a buffer share. Inputs and constants lie where their owners put them.
enum class Home { State, Arena, Elsewhere };

Home homeOf(Value V) {
  Value Source = behindViews(V);
  if (isState(roleOf(Source)))
    return Home::State;
  Operation *Producer = Source.getDefiningOp();
  if (!Producer || Producer->hasTrait<OpTrait::ConstantLike>())
    return Home::Elsewhere;
  return Producer->hasTrait<StateUpdate>() ? Home::State : Home::Arena;
}

/// Updates that follow each other and may lie in flat buffers.
class FlatGroup {
public:
  /// \p Taken are tensors of other groups.
  FlatGroup(OptimizerOpInterface First, const llvm::DenseSet<Value> &Taken) : First(First), Taken(Taken) {
    if (has<Property::ElementwiseUpdate>(First))
      join(First);
  }

  ArrayRef<Operation *> members() const { return Members; }
  const llvm::DenseSet<Value> &tensors() const { return Tensors; }

  /// Adds \p Update where it agrees with the others, shares their scalars and no tensor with them.
  bool join(OptimizerOpInterface Update) {
    ArrayRef<int64_t> Shape = shapeOf(Update->getOperand(0));
    if (Shape.empty() || !mayShareKernel(First, Update))
      return false;
    llvm::DenseSet<Value> Own;
    for (auto [Operand, OfFirst] : llvm::zip_equal(Update->getOperands(), First->getOperands())) {
      bool IsTensor = shapeOf(Operand) == Shape;
      if (IsTensor != (shapeOf(OfFirst) == shapeOf(First->getOperand(0))) || (!IsTensor && Operand != OfFirst))
        return false;
      if (!IsTensor)
        continue;
      Value Tensor = behindViews(Operand);
      if (homeOf(Operand) == Home::Elsewhere || homeOf(Operand) != homeOf(OfFirst) || Tensors.contains(Tensor) ||
          Taken.contains(Tensor) || !Own.insert(Tensor).second)
        return false;
    }
    Tensors.insert_range(Own);
    Members.push_back(Update);
    return true;
  }

private:
  OptimizerOpInterface First;
  const llvm::DenseSet<Value> &Taken;
  SmallVector<Operation *> Members;
  llvm::DenseSet<Value> Tensors;
};

class FlatUpdatesPass : public impl::FlatUpdatesPassBase<FlatUpdatesPass> {
public:
  using FlatUpdatesPassBase::FlatUpdatesPassBase;

  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    MpcDialect::FlatGroupAttrHelper Helper = dialectOf(getOperation()).getFlatGroupAttrHelper();
    getOperation().walk([&](OptimizerOpInterface Update) {
      if (Helper.isAttrPresent(Update))
        Helper.removeAttr(Update);
    });
    OpBuilder Builder(&getContext());
    llvm::DenseSet<Value> Taken;
    int64_t Count = 0;
    for (const FlatGroup &Group : findGroups(Taken)) {
      for (Operation *Update : Group.members())
        Helper.setAttr(Update, Builder.getI64IntegerAttr(Count));
      ++Count;
    }
  }

private:
  std::vector<FlatGroup> findGroups(llvm::DenseSet<Value> &Taken) {
    std::vector<FlatGroup> Groups;
    std::optional<FlatGroup> Open;
    auto Close = [&] {
      if (Open && Open->members().size() > 1) {
        Taken.insert_range(Open->tensors());
        Groups.push_back(*std::move(Open));
      }
      Open.reset();
    };
    for (Operation &Op : getOperation().getBody().front()) {
      if (isViewOrConstant(&Op))
        continue;
      auto Update = dyn_cast<OptimizerOpInterface>(Op);
      if (Open && Update && !Open->members().empty() && Open->join(Update))
        continue;
      Close();
      if (Update)
        Open.emplace(Update, Taken);
    }
    Close();
    return Groups;
  }
};

} // namespace

} // namespace mpc
