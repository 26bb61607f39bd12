#include "compiler/analysis/block_groups.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/step_signature.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace mpc {

Value behindReshapes(Value V) {
  while (auto Reshape = V.getDefiningOp<ReshapeOp>())
    V = Reshape.getX();
  return V;
}

// What an operation reads, regions that it holds included, behind reshapes.
static llvm::SmallSetVector<Value, 8> valuesRead(Operation *Op) {
  llvm::SmallSetVector<Value, 8> Values;
  Op->walk([&](Operation *Nested) {
    for (Value Operand : Nested->getOperands())
      Values.insert(behindReshapes(Operand));
  });
  return Values;
}

// What shadows that \p Body returns take the place of: no operand says so, but the signature of the step does.
static llvm::DenseMap<Value, Value> oldShadows(Block &Body) {
  llvm::DenseMap<Value, Value> Old;
  auto Function = dyn_cast<func::FuncOp>(Body.getParentOp());
  if (!Function)
    return Old;
  StepSignature Signature(Function);
  for (OpOperand &Returned : Body.getTerminator()->getOpOperands())
    if (auto Update = dyn_cast<OpResult>(Returned.get()); Update && isShadow(Update))
      if (std::optional<unsigned> Argument = Signature.argumentOf(Returned.getOperandNumber()))
        Old[Update] = Function.getArgument(*Argument);
  return Old;
}

BlockGroups::BlockGroups(Block &Body) : Body(Body), OldShadows(oldShadows(Body)) {
  for (Operation &Op : Body.without_terminator())
    if (!isa<ReshapeOp>(Op)) {
      NodeOf[&Op] = Nodes.size();
      Nodes.push_back(&Op);
    }
  Successors.resize(Nodes.size());
  Predecessors.resize(Nodes.size());
  for (auto [Node, Op] : llvm::enumerate(Nodes)) {
    GroupOfNode.push_back(Node);
    Members.push_back({Op});
    addDependences(Node);
  }
  Readers.clear();
  OldShadows.clear();
}

void BlockGroups::addDependences(unsigned Node) {
  Operation *Op = Nodes[Node];
  for (Value V : valuesRead(Op)) {
    Operation *Producer = V.getDefiningOp();
    if (auto Known = Producer ? NodeOf.find(Producer) : NodeOf.end(); Known != NodeOf.end() && Known->second != Node)
      addEdge(Known->second, Node);
  }
  if (Op->hasTrait<StateUpdate>())
    for (OpResult Result : Op->getResults())
      if (Value Old = isShadow(Result) ? OldShadows.lookup(Result) : Op->getOperand(Result.getResultNumber()))
        for (unsigned Reader : Readers.lookup(behindReshapes(Old)))
          addEdge(Reader, Node);
  for (Value V : valuesRead(Op))
    Readers[V].push_back(Node);
}

void BlockGroups::addEdge(unsigned From, unsigned To) {
  Successors[From].push_back(To);
  Predecessors[To].push_back(From);
}

std::optional<unsigned> BlockGroups::groupOf(Operation *Op) const {
  Operation *Ancestor = Body.findAncestorOpInBlock(*Op);
  auto Known = NodeOf.find(Ancestor);
  return Known == NodeOf.end() ? std::nullopt : std::optional<unsigned>(GroupOfNode[Known->second]);
}

Operation *BlockGroups::onTheWay(unsigned From, unsigned To) const {
  llvm::SmallVector<char> Seen(Members.size());
  SmallVector<unsigned> Stack;
  auto Visit = [&](unsigned Group) {
    for (Operation *Op : Members[Group])
      for (unsigned Next : Successors[NodeOf.lookup(Op)]) {
        unsigned Other = GroupOfNode[Next];
        if (Other == To && Group != From)
          return true;
        if (Other != To && Other != From && !std::exchange(Seen[Other], 1))
          Stack.push_back(Other);
      }
    return false;
  };
  Visit(From);
  while (!Stack.empty()) {
    unsigned Group = Stack.pop_back_val();
    if (Visit(Group))
      return Members[Group].front();
  }
  return nullptr;
}

Operation *BlockGroups::between(unsigned A, unsigned B) const {
  Operation *Forth = onTheWay(A, B);
  return Forth ? Forth : onTheWay(B, A);
}

void BlockGroups::merge(unsigned A, unsigned B) {
  for (Operation *Op : Members[B])
    GroupOfNode[NodeOf.lookup(Op)] = A;
  llvm::append_range(Members[A], Members[B]);
  Members[B].clear();
  llvm::sort(Members[A], [&](Operation *L, Operation *R) { return NodeOf.lookup(L) < NodeOf.lookup(R); });
}

void BlockGroups::place(unsigned Group, SmallVectorImpl<unsigned> &Order, SmallVectorImpl<char> &Placed) const {
  if (std::exchange(Placed[Group], 1))
    return;
  for (Operation *Op : Members[Group])
    for (unsigned Before : Predecessors[NodeOf.lookup(Op)])
      place(GroupOfNode[Before], Order, Placed);
  Order.push_back(Group);
}

SmallVector<unsigned> BlockGroups::schedule() const {
  SmallVector<unsigned> Order;
  SmallVector<char> Placed(Members.size());
  for (auto [Node, Op] : llvm::enumerate(Nodes))
    if (unsigned Group = GroupOfNode[Node]; Members[Group].back() == Op)
      place(Group, Order, Placed);
  return Order;
}

} // namespace mpc
