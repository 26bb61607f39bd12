// Pads images of few channels, so that libraries take their fast kernels for them.
//
//   %y = mpc.conv2d %x, %w {data_format = NHWC} : (tensor<256x224x224x3xf16>, tensor<64x3x7x7xf16>) -> ...
//   %dw = mpc.conv2d_grad_weight %x, %dy {data_format = NHWC, weight_shape = [64, 3, 7, 7]} : ...
// becomes
//   %0 = mpc.pad %x {low = [0, 0, 0, 0], high = [0, 0, 0, 5]} : ... -> tensor<256x224x224x8xf16>
//   %1 = mpc.pad %w {low = [0, 0, 0, 0], high = [0, 5, 0, 0]} : ... -> tensor<64x8x7x7xf16>
//   %y = mpc.conv2d %0, %1 {data_format = NHWC} : ...
//   %2 = mpc.conv2d_grad_weight %0, %dy {data_format = NHWC, weight_shape = [64, 8, 7, 7]} : ...
//   %dw = mpc.slice %2 {sizes = [64, 3, 7, 7], starts = [0, 0, 0, 0]} : ...
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/target_model.h"
#include "compiler/dialect/tensor_values.h"
#include "passes/function_body.h"
#include "passes/passes.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_PADCHANNELSPASS
#include "passes/passes.h.inc"

namespace {

constexpr unsigned channelsOfWeight = 1; ///< axis

unsigned channelsOfImage(DataFormat format) { return format == DataFormat::kNHWC ? 3 : 1; }

/// Fewer multiply-adds than these are over before copies of the operands would be made.
constexpr int64_t leastWork = int64_t{1} << 28;

RankedTensorType typeOf(Value v) { return cast<RankedTensorType>(v.getType()); }

class PadChannelsPass : public impl::PadChannelsPassBase<PadChannelsPass> {
public:
  using PadChannelsPassBase::PadChannelsPassBase;

  void runOnOperation() override {
    Block *body = firstBlock(getOperation());
    if (!body)
      return;
    llvm::FailureOr<std::unique_ptr<TargetModel>> target = targetModelOf(getOperation());
    if (llvm::failed(target))
      return signalPassFailure();
    multiple = (*target)->lowProductMultiple();
    paddedValues.clear();
    for (auto conv : llvm::make_early_inc_range(body->getOps<Conv2dOp>()))
      if (gains(conv, conv.getX(), conv.getWeight().getType().getShape(), conv.getY()))
        pad(conv);
    for (auto gradient : llvm::make_early_inc_range(body->getOps<Conv2dGradWeightOp>()))
      if (gains(gradient, gradient.getX(), gradient.getWeightShape(), gradient.getDy()))
        pad(gradient);
  }

private:
  /// Whether more channels pay for the convolution \p op of images \p x. Its weight has \p weightShape, and \p y is on
  /// the other side. With more channels than one multiple the copy costs more than is gained.
  template <typename ConvolutionOp>
  bool gains(ConvolutionOp op, Value x, ArrayRef<int64_t> weightShape, Value y) const {
    int64_t channels = weightShape[channelsOfWeight];
    if (op.getGroups() != 1 || !isLow(elementOf(x)) || !isLow(elementOf(y)) || channels % multiple == 0)
      return false;
    if (everywhere)
      return true;
    if (op.getDataFormat() != DataFormat::kNHWC || channels >= multiple || weightShape.front() % multiple != 0)
      return false;
    int64_t pixels = typeOf(y).getNumElements() / weightShape.front();
    return pixels * ShapedType::getNumElements(weightShape) >= leastWork;
  }

  void pad(Conv2dOp conv) {
    conv.getXMutable().assign(padded(conv.getX(), channelsOfImage(conv.getDataFormat()), conv));
    conv.getWeightMutable().assign(padded(conv.getWeight(), channelsOfWeight, conv));
  }

  void pad(Conv2dGradWeightOp gradient) {
    SmallVector<int64_t> shape(gradient.getWeightShape());
    RankedTensorType type = typeOf(gradient.getDweight());
    gradient.getXMutable().assign(padded(gradient.getX(), channelsOfImage(gradient.getDataFormat()), gradient));
    shape[channelsOfWeight] = llvm::alignTo(shape[channelsOfWeight], multiple);
    gradient.setWeightShape(shape);
    gradient.getDweight().setType(type.clone(shape));
    OpBuilder builder(gradient.getContext());
    builder.setInsertionPointAfter(gradient);
    auto slice = SliceOp::create(builder, gradient.getLoc(), type, gradient.getDweight(),
                                 SmallVector<int64_t>(type.getRank()), type.getShape());
    gradient.getDweight().replaceAllUsesExcept(slice.getY(), slice);
  }

  /// \p v with a multiple of positions along \p axis; made in front of \p user, the first that reads it.
  Value padded(Value v, unsigned axis, Operation *user) {
    Value &made = paddedValues[{v, axis}];
    if (made)
      return made;
    RankedTensorType type = typeOf(v);
    SmallVector<int64_t> shape(type.getShape()), low(type.getRank()), high(type.getRank());
    shape[axis] = llvm::alignTo(shape[axis], multiple);
    high[axis] = shape[axis] - type.getDimSize(axis);
    OpBuilder builder(user);
    return made = PadOp::create(builder, user->getLoc(), type.clone(shape), v, low, high, llvm::APFloat(0.0f)).getY();
  }

  int64_t multiple = 1;
  llvm::DenseMap<std::pair<Value, unsigned>, Value> paddedValues;
};

} // namespace

} // namespace mpc
