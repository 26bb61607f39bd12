// Values of all micro-batches, with processes=2, of which each runs two.
//
//   %rank = mpc.process_rank {processes = 2} : ...
//   %first = mpc.int_mul %rank, %two : ...
//   %number = mpc.int_add %first, %micro_step : ...
//
// Each micro-step moves the rows up by one and adds its own. So after the last they are those of one update.
//   %later = mpc.slice %rows_before {starts = [1, 0], sizes = [1, 8]} : ...
//   %row = mpc.reshape %mean {shape = [1, 8]} : ...
//   %rows = mpc.concat %later, %row {axis = 0} : ...
// The last micro-step gathers them:
//   %by_rank = mpc.all_gather %rows {processes = 2} : (tensor<2x8xf32>) -> tensor<2x2x8xf32>
//   %all = mpc.reshape %by_rank {shape = [4, 8]} : ...
#include "passes/step/micro_batches.h"

using namespace mlir;

namespace mpc {

Value numberInUpdate(OpBuilder &builder, Location loc, int64_t processes, int64_t count, Value number) {
  auto type = RankedTensorType::get({}, builder.getI32Type());
  Value rank = ProcessRankOp::create(builder, loc, type, uint64_t(processes));
  if (!number)
    return rank;
  auto each = DenseElementsAttr::get(type, builder.getI32IntegerAttr(int32_t(count)));
  Value first = IntMulOp::create(builder, loc, type, rank, ConstantOp::create(builder, loc, type, each));
  return IntAddOp::create(builder, loc, type, first, number);
}

static SmallVector<int64_t> withRows(int64_t rows, ArrayRef<int64_t> rowShape) {
  SmallVector<int64_t> shape{rows};
  llvm::append_range(shape, rowShape);
  return shape;
}

Value shiftIn(OpBuilder &builder, Location loc, Value before, Value row) {
  auto type = cast<RankedTensorType>(before.getType());
  ArrayRef<int64_t> rowShape = type.getShape().drop_front();
  SmallVector<int64_t> one = withRows(1, rowShape), later = withRows(type.getDimSize(0) - 1, rowShape);
  SmallVector<int64_t> starts(type.getRank(), 0);
  starts.front() = 1;
  Value kept = SliceOp::create(builder, loc, type.clone(later), before, starts, later);
  Value added = ReshapeOp::create(builder, loc, type.clone(one), row, one);
  return ConcatOp::create(builder, loc, type, ValueRange{kept, added}, builder.getI64IntegerAttr(0));
}

Value gather(OpBuilder &builder, Location loc, Value value, int64_t processes) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape = withRows(processes, type.getShape());
  return AllGatherOp::create(builder, loc, type.clone(shape), value, uint64_t(processes));
}

Value gatherRows(OpBuilder &builder, Location loc, Value rows, int64_t processes) {
  auto type = cast<RankedTensorType>(rows.getType());
  SmallVector<int64_t> all = withRows(processes * type.getDimSize(0), type.getShape().drop_front());
  return ReshapeOp::create(builder, loc, type.clone(all), gather(builder, loc, rows, processes), all);
}

} // namespace mpc
