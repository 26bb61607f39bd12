#include "passes/fusion/region_body.h"

#include "compiler/dialect/dialect.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace mpc {

namespace {

using Operations = llvm::SmallPtrSet<Operation *, 16>;

int64_t elementsOf(Value V) { return cast<RankedTensorType>(V.getType()).getNumElements(); }

bool readOutside(Value V, Block *Body, const Operations &Inside) {
  return llvm::any_of(V.getUsers(), [&](Operation *User) {
    if (auto View = dyn_cast<ViewLikeOpInterface>(User))
      return readOutside(View.getViewDest(), Body, Inside);
    return !Inside.contains(Body->findAncestorOpInBlock(*User));
  });
}

/// Reads the operands of a region's operations.
class Collector {
public:
  explicit Collector(ArrayRef<Operation *> Given) : Given(Given), Inside(Given.begin(), Given.end()) {
    for (Operation *Op : Given)
      for (Value V : Op->getOperands()) {
        Shapes[behindViews(V)].insert(V);
        Largest = std::max(Largest, elementsOf(V));
      }
  }

  RegionBody run() {
    for (Operation *Op : Given) {
      for (Value V : Op->getOperands())
        read(V);
      Body.Operations.push_back(Op);
    }
    Body.Inputs.assign(Inputs.begin(), Inputs.end());
    for (Operation *Op : Given)
      for (Value Result : Op->getResults())
        if (readOutside(Result, Op->getBlock(), Inside))
          Body.Outputs.push_back(Result);
    return std::move(Body);
  }

private:
  bool isShapedInside(Value Source) const {
    if (Operation *Producer = Source.getDefiningOp(); Producer && Inside.contains(Producer))
      return true;
    return Shapes.find(Source)->second.size() > 1 && elementsOf(Source) == Largest;
  }

  void read(Value V) {
    if (Operation *Producer = V.getDefiningOp(); Producer && Inside.contains(Producer))
      return;
    auto View = V.getDefiningOp<ViewLikeOpInterface>();
    if (!View || !isShapedInside(behindViews(V))) {
      Inputs.insert(V);
      return;
    }
    read(View.getViewSource());
    if (Views.insert(View).second)
      Body.Operations.push_back(View);
  }

  ArrayRef<Operation *> Given;
  Operations Inside;
  llvm::MapVector<Value, llvm::SmallSetVector<Value, 2>> Shapes;
  int64_t Largest = 0;
  llvm::SmallPtrSet<Operation *, 4> Views;
  llvm::SmallSetVector<Value, 8> Inputs;
  RegionBody Body;
};

} // namespace

RegionBody regionBody(ArrayRef<Operation *> Operations) { return Collector(Operations).run(); }

} // namespace mpc
