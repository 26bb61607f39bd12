#include "passes/fusion/fusion_body.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/tensor_values.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace mpc {

namespace {

using Operations = llvm::SmallPtrSet<Operation *, 16>;

bool readOutside(Value v, Block *body, const Operations &inside) {
  return llvm::any_of(v.getUsers(), [&](Operation *user) {
    if (auto view = dyn_cast<ViewLikeOpInterface>(user))
      return readOutside(view.getViewDest(), body, inside);
    return !inside.contains(body->findAncestorOpInBlock(*user));
  });
}

/// Reads the operands of a region's operations.
class Collector {
public:
  explicit Collector(ArrayRef<Operation *> given) : given(given), inside(given.begin(), given.end()) {
    for (Operation *op : given)
      for (Value v : op->getOperands()) {
        shapes[behindViews(v)].insert(v);
        largest = std::max(largest, elementCount(v));
      }
  }

  FusionBody run() {
    for (Operation *op : given) {
      for (Value v : op->getOperands())
        read(v);
      body.operations.push_back(op);
    }
    body.inputs.assign(inputs.begin(), inputs.end());
    for (Operation *op : given)
      for (Value result : op->getResults())
        if (readOutside(result, op->getBlock(), inside))
          body.outputs.push_back(result);
    return std::move(body);
  }

private:
  bool isShapedInside(Value source) const {
    if (Operation *producer = source.getDefiningOp(); producer && inside.contains(producer))
      return true;
    return shapes.find(source)->second.size() > 1 && elementCount(source) == largest;
  }

  void read(Value v) {
    if (Operation *producer = v.getDefiningOp(); producer && inside.contains(producer))
      return;
    auto view = v.getDefiningOp<ViewLikeOpInterface>();
    if (!view || isWait(view) || !isShapedInside(behindViews(v))) {
      inputs.insert(v);
      return;
    }
    read(view.getViewSource());
    if (views.insert(view).second)
      body.operations.push_back(view);
  }

  ArrayRef<Operation *> given;
  Operations inside;
  llvm::MapVector<Value, llvm::SmallSetVector<Value, 2>> shapes;
  int64_t largest = 0;
  llvm::SmallPtrSet<Operation *, 4> views;
  llvm::SmallSetVector<Value, 8> inputs;
  FusionBody body;
};

} // namespace

FusionBody fusionBody(ArrayRef<Operation *> operations) { return Collector(operations).run(); }

} // namespace mpc
