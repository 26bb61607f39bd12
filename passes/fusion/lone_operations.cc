#include "passes/fusion/lone_operations.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/tensor_values.h"
#include "passes/fusion/fusion_traffic.h"

#include <numeric>

using namespace mlir;

namespace mpc {

// Below it a region saves a few microseconds a step and takes some milliseconds to generate.
static constexpr int64_t manyElements = 1 << 16;

// Whether the operation computes more than it moves, or rounds. Kernels written by hand go through f32 buffers where it
// rounds.
static bool computesOrRounds(Operation *op) {
  auto isRounded = [](Type type) { return isLow(getElementTypeOrSelf(type)); };
  return has<Property::Expensive>(op) || has<Property::Sum>(op) || llvm::any_of(op->getResultTypes(), isRounded);
}

bool isWorthAlone(Operation *op) {
  auto isLarge = [](Type type) { return cast<RankedTensorType>(type).getNumElements() >= manyElements; };
  bool large = llvm::any_of(op->getOperandTypes(), isLarge) || llvm::any_of(op->getResultTypes(), isLarge);
  return large && computesOrRounds(op);
}

bool hasExpensiveElements(Operation *op) {
  // Below it the kernels differ by less than a microsecond.
  constexpr int64_t many = 1 << 20;
  auto fusible = dyn_cast<FusibleOpInterface>(op);
  if (!fusible || !has<Property::Expensive>(op) || !fusible.getReductions().empty())
    return false;
  auto space = cast<RankedTensorType>(op->getResult(0).getType());
  // The derivative of a cross-entropy reads values of each row.
  auto isOfEachElement = [space](Type type) {
    auto operand = cast<RankedTensorType>(type);
    return operand.getRank() == 0 || operand.getShape() == space.getShape();
  };
  return space.getNumElements() >= many && llvm::all_of(op->getOperandTypes(), isOfEachElement);
}

//===-- Contiguous rows ------------------------------------------------------------------------------------------===//

// Operands and results have one shape. The axis changes places with the last one, and back.
static void moveToLastAxis(LinesOpInterface op, int64_t axis) {
  int64_t last = cast<RankedTensorType>(op->getResult(0).getType()).getRank() - 1;
  SmallVector<int64_t> swapped(last + 1);
  std::iota(swapped.begin(), swapped.end(), 0);
  std::swap(swapped[axis], swapped[last]);
  OpBuilder builder(op);
  auto transpose = [&](Type result, Value v) {
    auto made = TransposeOp::create(builder, op->getLoc(), result, v, swapped);
    if (ScopeAttr scope = scopeOf(op))
      setScope(made, scope);
    return made;
  };
  for (OpOperand &operand : op->getOpOperands())
    operand.set(transpose(permuted(operand.get().getType(), swapped), operand.get()));
  op.setAxis(last);
  Value result = op->getResult(0);
  Type original = result.getType();
  result.setType(permuted(original, swapped));
  builder.setInsertionPointAfter(op);
  TransposeOp restored = transpose(original, result);
  result.replaceAllUsesExcept(restored.getY(), restored);
}

void makeRowsContiguous(Block &body) {
  for (Operation &op : llvm::make_early_inc_range(body)) {
    auto lines = dyn_cast<LinesOpInterface>(op);
    if (!lines)
      continue;
    ArrayRef<int64_t> shape = cast<RankedTensorType>(op.getResult(0).getType()).getShape();
    int64_t given = lines.getAxis(), axis = given < 0 ? given + int64_t(shape.size()) : given;
    // Extents of 1 behind the axis leave its rows contiguous.
    if (llvm::any_of(shape.drop_front(axis + 1), [](int64_t extent) { return extent != 1; }))
      moveToLastAxis(lines, axis);
  }
}

//===-- Operands -------------------------------------------------------------------------------------------------===//

// A region has one argument for each way in which it reads a value.
static void separateOperands(Operation *op) {
  auto space = cast<FusibleOpInterface>(op).getSpace();
  if (!space)
    return llvm::consumeError(space.takeError());
  llvm::DenseMap<Value, codegen::Extent> first;
  llvm::DenseMap<std::pair<Value, unsigned>, Value> copies;
  OpBuilder builder(op);
  for (auto [operand, extent] : llvm::zip_equal(op->getOpOperands(), space->operands)) {
    Value v = operand.get();
    if (first.try_emplace(v, extent).first->second == extent)
      continue;
    Value &copy = copies[{v, static_cast<unsigned>(extent)}];
    if (!copy) {
      auto type = cast<RankedTensorType>(v.getType());
      auto made = BroadcastToOp::create(builder, op->getLoc(), type, v, type.getShape());
      copyOrigin(op, made);
      copy = made.getY();
    }
    operand.set(copy);
  }
}

void separateOperands(Block &body) {
  for (Operation &op : body)
    if (has<Property::GeneratedOnCpu>(&op))
      separateOperands(&op);
}

} // namespace mpc
