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
Value behindToChannelsFirst(Value V) {
  auto Transpose = V.getDefiningOp<TransposeOp>();
  return Transpose && Transpose.getPermutation() == ArrayRef<int64_t>(ToChannelsFirst) ? Transpose.getX() : Value();
}

bool isRank4(Value V) { return cast<RankedTensorType>(V.getType()).getRank() == 4; }

class LayoutPass : public impl::LayoutPassBase<LayoutPass> {
public:
  using LayoutPassBase::LayoutPassBase;

  void runOnOperation() override {
    ChannelsLast.clear();
    Block *Body = firstBlock(getOperation());
    if (!Body)
      return;
    // Program order: the transposes behind every operand have sunk as far as they go before their users are seen.
    for (Operation &Op : llvm::make_early_inc_range(*Body))
      rewrite(&Op);
    eraseDeadOperations(*Body);
    for (auto Transpose : llvm::make_early_inc_range(Body->getOps<TransposeOp>()))
      reshapeIfFree(Transpose);
    for (auto Reshape : llvm::make_early_inc_range(Body->getOps<ReshapeOp>()))
      replaceByFold(Reshape);
    eraseDeadOperations(*Body);
  }

private:
  void rewrite(Operation *Op) {
    SmallVector<int64_t> Axes;
    if (ImageOpInterface Images = channelsFirstImages(Op))
      return makeChannelsLast(Images);
    if (reducesChannelsLast(Op, Axes) && behindToChannelsFirst(Op->getOperand(0)))
      return sinkThroughReduction(Op, Axes);
    bool MovesAlongAxes = has<Property::MovesAlongAxes>(Op);
    if (!(has<Property::Elementwise>(Op) || MovesAlongAxes) || !worthSinking(Op))
      return;
    if (MovesAlongAxes)
      makeAxesChannelsLast(Op);
    sinkThroughElementwise(Op);
  }

  void makeChannelsLast(ImageOpInterface Op) {
    for (unsigned Index : Op.getImageOperands())
      Op->setOperand(Index, channelsLast(Op->getOperand(Index)));
    Op->setAttr("data_format", StringAttr::get(Op->getContext(), "NHWC"));
    if (auto Shape = Op->getAttrOfType<DenseI64ArrayAttr>("input_shape"))
      Op->setAttr("input_shape",
                  DenseI64ArrayAttr::get(Op->getContext(), permuted(Shape.asArrayRef(), ToChannelsLast)));
    for (unsigned Index : Op.getImageResults())
      restoreAfter(Op->getResult(Index));
  }

  // Sinking pays where no more transposes stand above the operation afterwards than before.
  static bool worthSinking(Operation *Op) {
    // A transpose behind it would move what only casts take.
    if (llvm::any_of(Op->getResults(), [](Value V) { return isCastOnly(elementOf(V)); }))
      return false;
    llvm::SmallDenseSet<Value> Transposed, Plain;
    for (Value Operand : Op->getOperands()) {
      if (!isRank4(Operand))
        continue;
      if (behindToChannelsFirst(Operand))
        Transposed.insert(Operand);
      else if (!isFreeToTranspose(Operand))
        Plain.insert(Operand);
    }
    bool ImageResults = llvm::all_of(Op->getResults(), isRank4);
    return ImageResults && !Transposed.empty() && Transposed.size() >= Plain.size();
  }

  static bool isFreeToTranspose(Value V) {
    auto Constant = V.getDefiningOp<ConstantOp>();
    if (Constant && isa<SplatElementsAttr>(Constant.getValue()))
      return true;
    if (auto Broadcast = V.getDefiningOp<BroadcastToOp>())
      return isFreeToTranspose(Broadcast.getX()) || behindToChannelsFirst(Broadcast.getX());
    ArrayRef<int64_t> Shape = cast<RankedTensorType>(V.getType()).getShape();
    SmallVector<int64_t> Extents(4 - std::min<size_t>(Shape.size(), 4), 1);
    llvm::append_range(Extents, Shape);
    return isFreePermutation(Extents, ToChannelsLast);
  }

  void sinkThroughElementwise(Operation *Op) {
    for (OpOperand &Use : Op->getOpOperands())
      if (cast<RankedTensorType>(Use.get().getType()).getRank() > 0)
        Use.set(channelsLast(Use.get()));
    for (Value Result : Op->getResults())
      restoreAfter(Result);
  }

  void sinkThroughReduction(Operation *Op, ArrayRef<int64_t> Axes) {
    Op->setOperand(0, behindToChannelsFirst(Op->getOperand(0)));
    Op->setAttr("axes", DenseI64ArrayAttr::get(Op->getContext(), Axes));
    if (isRank4(Op->getResult(0)))
      restoreAfter(Op->getResult(0));
  }

  // Gives a result its channels-last type and its users the channels-first view.
  void restoreAfter(Value Result) {
    Type Original = Result.getType();
    Result.setType(permuted(Original, ToChannelsLast));
    OpBuilder Builder(Result.getContext());
    Builder.setInsertionPointAfterValue(Result);
    auto Restored = TransposeOp::create(Builder, Result.getLoc(), Original, Result, ToChannelsFirst);
    Result.replaceAllUsesExcept(Restored.getY(), Restored);
    ChannelsLast[Restored.getY()] = Result;
  }

  // The value with its axes channels-last, made once. Lower ranks are aligned at the right, as broadcasting does.
  Value channelsLast(Value V) {
    if (Value Behind = behindToChannelsFirst(V))
      return Behind;
    Value &Made = ChannelsLast[V];
    if (!Made) {
      Value Created = createChannelsLast(V);
      return ChannelsLast[V] = Created;
    }
    return Made;
  }

  Value createChannelsLast(Value V) {
    OpBuilder Builder(V.getContext());
    Builder.setInsertionPointAfterValue(V);
    auto Type = cast<RankedTensorType>(V.getType());
    SmallVector<int64_t> Extents(4 - Type.getRank(), 1);
    llvm::append_range(Extents, Type.getShape());
    SmallVector<int64_t> Target = permuted(Extents, ToChannelsLast);
    RankedTensorType TargetType = Type.clone(Target);
    if (auto Constant = V.getDefiningOp<ConstantOp>())
      if (auto Splat = dyn_cast<SplatElementsAttr>(Constant.getValue()))
        return ConstantOp::create(Builder, V.getLoc(), TargetType,
                                  cast<ElementsAttr>(Attribute(Splat.resizeSplat(TargetType))));
    if (auto Broadcast = V.getDefiningOp<BroadcastToOp>(); Broadcast && isFreeToTranspose(V))
      return BroadcastToOp::create(Builder, V.getLoc(), TargetType, channelsLast(Broadcast.getX()), Target);
    if (isFreePermutation(Extents, ToChannelsLast))
      return ReshapeOp::create(Builder, V.getLoc(), TargetType, V, Target);
    if (Type.getRank() < 4)
      V = ReshapeOp::create(Builder, V.getLoc(), Type.clone(Extents), V, Extents);
    return TransposeOp::create(Builder, V.getLoc(), TargetType, V, ToChannelsLast);
  }

  // A transpose that moves only extents of 1 moves no bytes.
  static void reshapeIfFree(TransposeOp Transpose) {
    auto Source = cast<RankedTensorType>(Transpose.getX().getType());
    if (!isFreePermutation(Source.getShape(), Transpose.getPermutation()))
      return;
    OpBuilder Builder(Transpose);
    auto Type = cast<RankedTensorType>(Transpose.getY().getType());
    Value Reshaped = ReshapeOp::create(Builder, Transpose.getLoc(), Type, Transpose.getX(), Type.getShape());
    Transpose.getY().replaceAllUsesWith(Reshaped);
    Transpose.erase();
  }

  // The channels-last form of a value that has one.
  llvm::DenseMap<Value, Value> ChannelsLast;
};

} // namespace

} // namespace mpc
