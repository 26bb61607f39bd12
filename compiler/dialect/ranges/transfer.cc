#include "compiler/dialect/ranges/transfer.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace llvm;

namespace mpc::ranges {

static ArrayRef<int64_t> shapeOf(mlir::Value value) { return cast<mlir::RankedTensorType>(value.getType()).getShape(); }

ArrayRef<int64_t> Operands::shape(size_t operand) const { return shapeOf(op->getOperand(unsigned(operand))); }
ArrayRef<int64_t> Operands::resultShape(size_t result) const { return shapeOf(op->getResult(unsigned(result))); }

double Operands::extent(size_t operand, int64_t axis) const {
  ArrayRef<int64_t> extents = shape(operand);
  return double(extents[size_t(axis < 0 ? axis + int64_t(extents.size()) : axis)]);
}

} // namespace mpc::ranges
