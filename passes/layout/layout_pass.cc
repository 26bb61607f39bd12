// Makes images channels-last. Image operations get transposes, which sink through element-wise work and cancel.
//
//   %c = mpc.conv2d %x, %w : ...
//   %r = mpc.relu %c : tensor<2x6x6x6xf32>
//   %y = mpc.conv2d %r, %u : ...
// becomes
//   %0 = mpc.transpose %x {permutation = [0, 2, 3, 1]} : (tensor<2x3x8x8xf32>) -> tensor<2x8x8x3xf32>
//   %c = mpc.conv2d %0, %w {data_format = NHWC} : ...
//   %r = mpc.relu %c : tensor<2x6x6x6xf32>
//   %1 = mpc.conv2d %r, %u {data_format = NHWC} : ...
//   %y = mpc.transpose %1 {permutation = [0, 3, 1, 2]} : ...
#include "compiler/dialect/target_model.h"
#include "passes/computations.h"
#include "passes/function_body.h"
#include "passes/layout/image_ops.h"
#include "passes/passes.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_LAYOUTPASS
#include "passes/passes.h.inc"

namespace {

// The channels-last value behind a transpose to channels-first, else null.
Value behindToChannelsFirst(Value v) {
  auto transpose = v.getDefiningOp<TransposeOp>();
  return transpose && transpose.getPermutation() == ArrayRef<int64_t>(toChannelsFirst) ? transpose.getX() : Value();
}

bool isRank4(Value v) { return cast<RankedTensorType>(v.getType()).getRank() == 4; }

class LayoutPass : public impl::LayoutPassBase<LayoutPass> {
public:
  using LayoutPassBase::LayoutPassBase;

  void runOnOperation() override {
    channelsLastValues.clear();
    Block *body = firstBlock(getOperation());
    if (!body)
      return;
    FailureOr<std::unique_ptr<TargetModel>> target = targetModelOf(getOperation());
    if (failed(target))
      return signalPassFailure();
    if (gainsNothing(*body, **target))
      return;
    // Program order: the transposes behind every operand have sunk as far as they go before their users are seen.
    for (Operation &op : llvm::make_early_inc_range(*body))
      rewrite(&op);
    eraseDeadOperations(*body);
    for (auto transpose : llvm::make_early_inc_range(body->getOps<TransposeOp>()))
      reshapeIfFree(transpose);
    for (auto reshape : llvm::make_early_inc_range(body->getOps<ReshapeOp>()))
      replaceByFold(reshape);
    eraseDeadOperations(*body);
  }

private:
  // Whether all that works on channels-first images are products and pooling, whose kernels take both formats alike.
  // Transposes would be launches for nothing. Batch normalisation and the like join regions where channels are last.
  static bool gainsNothing(Block &body, const TargetModel &target) {
    bool hasProducts = false;
    for (Operation &op : body) {
      if (!channelsFirstImages(&op))
        continue;
      bool isProduct = isa<MatrixWorkOpInterface>(op);
      if (isProduct ? target.prefersChannelsLast(&op)
                    : !isa<MaxPool2dOp, MaxPool2dGradOp, AvgPool2dOp, AvgPool2dGradOp>(op))
        return false;
      hasProducts |= isProduct;
    }
    return hasProducts;
  }

  void rewrite(Operation *op) {
    SmallVector<int64_t> axes;
    if (ImageOpInterface images = channelsFirstImages(op))
      return makeChannelsLast(images);
    if (auto reduction = dyn_cast<ReductionOpInterface>(op);
        reduction && reducesChannelsLast(reduction, axes) && behindToChannelsFirst(op->getOperand(0)))
      return sinkThroughReduction(reduction, axes);
    auto moving = dyn_cast<AxesOpInterface>(op);
    if (!(has<Property::Elementwise>(op) || moving) || !worthSinking(op))
      return;
    if (moving)
      moving.permuteAxes(toChannelsLast);
    sinkThroughElementwise(op);
  }

  void makeChannelsLast(ImageOpInterface op) {
    for (unsigned index : op.getImageOperands())
      op->setOperand(index, channelsLast(op->getOperand(index)));
    op.setDataFormat(DataFormat::kNHWC);
    if (ArrayRef<int64_t> shape = op.getInputShape(); !shape.empty())
      op.setInputShape(permuted(shape, toChannelsLast));
    for (unsigned index : op.getImageResults())
      restoreAfter(op->getResult(index));
  }

  // Sinking pays where no more transposes stand above the operation afterwards than before.
  static bool worthSinking(Operation *op) {
    // A transpose behind it would move what only casts take.
    if (llvm::any_of(op->getResults(), [](Value v) { return isCastOnly(elementOf(v)); }))
      return false;
    llvm::SmallDenseSet<Value> transposed, plain;
    for (Value operand : op->getOperands()) {
      if (!isRank4(operand))
        continue;
      if (behindToChannelsFirst(operand))
        transposed.insert(operand);
      else if (!isFreeToTranspose(operand))
        plain.insert(operand);
    }
    bool imageResults = llvm::all_of(op->getResults(), isRank4);
    return imageResults && !transposed.empty() && transposed.size() >= plain.size();
  }

  static bool isFreeToTranspose(Value v) {
    auto constant = v.getDefiningOp<ConstantOp>();
    if (constant && isa<SplatElementsAttr>(constant.getValue()))
      return true;
    if (auto broadcast = v.getDefiningOp<BroadcastToOp>())
      return isFreeToTranspose(broadcast.getX()) || behindToChannelsFirst(broadcast.getX());
    ArrayRef<int64_t> shape = cast<RankedTensorType>(v.getType()).getShape();
    SmallVector<int64_t> extents(4 - std::min<size_t>(shape.size(), 4), 1);
    llvm::append_range(extents, shape);
    return isFreePermutation(extents, toChannelsLast);
  }

  void sinkThroughElementwise(Operation *op) {
    for (OpOperand &use : op->getOpOperands())
      if (cast<RankedTensorType>(use.get().getType()).getRank() > 0)
        use.set(channelsLast(use.get()));
    for (Value result : op->getResults())
      restoreAfter(result);
  }

  void sinkThroughReduction(ReductionOpInterface op, ArrayRef<int64_t> axes) {
    op->setOperand(0, behindToChannelsFirst(op->getOperand(0)));
    op.setAxes(axes);
    if (isRank4(op->getResult(0)))
      restoreAfter(op->getResult(0));
  }

  // Gives a result its channels-last type and its users the channels-first view.
  void restoreAfter(Value result) {
    Type original = result.getType();
    result.setType(permuted(original, toChannelsLast));
    OpBuilder builder(result.getContext());
    builder.setInsertionPointAfterValue(result);
    auto restored = TransposeOp::create(builder, result.getLoc(), original, result, toChannelsFirst);
    result.replaceAllUsesExcept(restored.getY(), restored);
    channelsLastValues[restored.getY()] = result;
  }

  // The value with its axes channels-last, made once. Lower ranks are aligned at the right, as broadcasting does.
  Value channelsLast(Value v) {
    if (Value behind = behindToChannelsFirst(v))
      return behind;
    Value &made = channelsLastValues[v];
    if (!made) {
      Value created = createChannelsLast(v);
      return channelsLastValues[v] = created;
    }
    return made;
  }

  Value createChannelsLast(Value v) {
    OpBuilder builder(v.getContext());
    builder.setInsertionPointAfterValue(v);
    auto type = cast<RankedTensorType>(v.getType());
    SmallVector<int64_t> extents(4 - type.getRank(), 1);
    llvm::append_range(extents, type.getShape());
    SmallVector<int64_t> target = permuted(extents, toChannelsLast);
    RankedTensorType targetType = type.clone(target);
    if (auto constant = v.getDefiningOp<ConstantOp>())
      if (auto splat = dyn_cast<SplatElementsAttr>(constant.getValue()))
        return ConstantOp::create(builder, v.getLoc(), targetType,
                                  cast<ElementsAttr>(Attribute(splat.resizeSplat(targetType))));
    if (auto broadcast = v.getDefiningOp<BroadcastToOp>(); broadcast && isFreeToTranspose(v))
      return BroadcastToOp::create(builder, v.getLoc(), targetType, channelsLast(broadcast.getX()), target);
    if (isFreePermutation(extents, toChannelsLast))
      return ReshapeOp::create(builder, v.getLoc(), targetType, v, target);
    if (type.getRank() < 4)
      v = ReshapeOp::create(builder, v.getLoc(), type.clone(extents), v, extents);
    return TransposeOp::create(builder, v.getLoc(), targetType, v, toChannelsLast);
  }

  // A transpose that moves only extents of 1 moves no bytes.
  static void reshapeIfFree(TransposeOp transpose) {
    auto source = cast<RankedTensorType>(transpose.getX().getType());
    if (!isFreePermutation(source.getShape(), transpose.getPermutation()))
      return;
    OpBuilder builder(transpose);
    auto type = cast<RankedTensorType>(transpose.getY().getType());
    Value reshaped = ReshapeOp::create(builder, transpose.getLoc(), type, transpose.getX(), type.getShape());
    transpose.getY().replaceAllUsesWith(reshaped);
    transpose.erase();
  }

  // The channels-last form of a value that has one.
  llvm::DenseMap<Value, Value> channelsLastValues;
};

} // namespace

} // namespace mpc
