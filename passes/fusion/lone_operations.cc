#include "passes/fusion/lone_operations.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/tensor_values.h"
#include "passes/fusion/region_cost.h"

#include <numeric>

using namespace mlir;

namespace mpc {

// Below it a region saves a few microseconds a step and takes some milliseconds to generate.
static constexpr int64_t ManyElements = 1 << 16;

// Whether the operation computes more than it moves, or rounds. Kernels written by hand go through f32 buffers where it
// rounds.
static bool computesOrRounds(Operation *Op) {
  auto IsLow = [](Type Type) { return isLow(getElementTypeOrSelf(Type)); };
  return has<Property::Expensive>(Op) || has<Property::Sum>(Op) || llvm::any_of(Op->getResultTypes(), IsLow);
}

bool isWorthAlone(Operation *Op) {
  auto IsLarge = [](Type Type) { return cast<RankedTensorType>(Type).getNumElements() >= ManyElements; };
  bool Large = llvm::any_of(Op->getOperandTypes(), IsLarge) || llvm::any_of(Op->getResultTypes(), IsLarge);
  return Large && computesOrRounds(Op);
}

//===-- Contiguous rows ------------------------------------------------------------------------------------------===//

// Operands and results have one shape. The axis changes places with the last one, and back.
static void moveToLastAxis(Operation *Op, int64_t Axis) {
  int64_t Last = cast<RankedTensorType>(Op->getResult(0).getType()).getRank() - 1;
  SmallVector<int64_t> Swapped(Last + 1);
  std::iota(Swapped.begin(), Swapped.end(), 0);
  std::swap(Swapped[Axis], Swapped[Last]);
  OpBuilder Builder(Op);
  auto Transpose = [&](Type Result, Value V) {
    auto Made = TransposeOp::create(Builder, Op->getLoc(), Result, V, Swapped);
    if (ScopeAttr Scope = scopeOf(Op))
      setScope(Made, Scope);
    return Made;
  };
  for (OpOperand &Operand : Op->getOpOperands())
    Operand.set(Transpose(permuted(Operand.get().getType(), Swapped), Operand.get()));
  Op->setAttr("axis", Builder.getI64IntegerAttr(Last));
  Value Result = Op->getResult(0);
  Type Original = Result.getType();
  Result.setType(permuted(Original, Swapped));
  Builder.setInsertionPointAfter(Op);
  TransposeOp Restored = Transpose(Original, Result);
  Result.replaceAllUsesExcept(Restored.getY(), Restored);
}

void makeRowsContiguous(Block &Body) {
  for (Operation &Op : llvm::make_early_inc_range(Body)) {
    if (!has<Property::AlongAnAxis>(&Op))
      continue;
    auto Attr = Op.getAttrOfType<IntegerAttr>("axis");
    ArrayRef<int64_t> Shape = cast<RankedTensorType>(Op.getResult(0).getType()).getShape();
    int64_t Given = Attr ? Attr.getInt() : -1, Axis = Given < 0 ? Given + int64_t(Shape.size()) : Given;
    // Extents of 1 behind the axis leave its rows contiguous.
    if (llvm::any_of(Shape.drop_front(Axis + 1), [](int64_t Extent) { return Extent != 1; }))
      moveToLastAxis(&Op, Axis);
  }
}

//===-- Operands -------------------------------------------------------------------------------------------------===//

// A region has one argument for each way in which it reads a value.
static void separateOperands(Operation *Op) {
  auto Space = cast<FusibleOpInterface>(Op).getSpace();
  if (!Space)
    return llvm::consumeError(Space.takeError());
  llvm::DenseMap<Value, codegen::Extent> First;
  llvm::DenseMap<std::pair<Value, unsigned>, Value> Copies;
  OpBuilder Builder(Op);
  for (auto [Operand, Extent] : llvm::zip_equal(Op->getOpOperands(), Space->operands)) {
    Value V = Operand.get();
    if (First.try_emplace(V, Extent).first->second == Extent)
      continue;
    Value &Copy = Copies[{V, static_cast<unsigned>(Extent)}];
    if (!Copy) {
      auto Type = cast<RankedTensorType>(V.getType());
      auto Made = BroadcastToOp::create(Builder, Op->getLoc(), Type, V, Type.getShape());
      copyOrigin(Op, Made);
      Copy = Made.getY();
    }
    Operand.set(Copy);
  }
}

void separateOperands(Block &Body) {
  for (Operation &Op : Body)
    if (has<Property::GeneratedOnCpu>(&Op))
      separateOperands(&Op);
}

} // namespace mpc
