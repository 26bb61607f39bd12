// Takes batch normalisation's statistics from the convolution that makes its input.
//
//   %y = mpc.conv2d %x, %w {data_format = NHWC} : ...
//   %n, %mean, %variance, %inv_std = mpc.batch_norm_train %y, %gamma, %beta {data_format = NHWC} : ...
// becomes
//   %y, %mean, %variance, %inv_std = mpc.conv2d_statistics %x, %w {data_format = NHWC} : ...
//   %n = mpc.batch_norm_apply %y, %gamma, %beta, %mean, %inv_std {data_format = NHWC} : ...
//
// A sweep, because a rewrite replaces two operations, and norms that share a convolution must go in order.
#include "compiler/dialect/dialect.h"
#include "passes/passes.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_CONVSTATISTICSPASS
#include "passes/passes.h.inc"

namespace {

// cuDNN has engines for these channels on every architecture that mpc compiles for (tests/cuda/cudnn_plans_test.cc).
// Rows of channels are aligned to 16 bytes. The few channels that mpc's direct convolution takes are left out. Some
// architectures take more.
constexpr int64_t fewestChannels = 32;
constexpr int64_t channelAlignment = 8;

bool hasF16(Value v) { return cast<RankedTensorType>(v.getType()).getElementType().isF16(); }

bool hasLibraryStatistics(Conv2dOp conv) {
  if (conv.getBias() || conv.getActivation() != Activation::kNone || conv.getGroups() != 1 ||
      conv.getDataFormat() != DataFormat::kNHWC)
    return false;
  if (!hasF16(conv.getX()) || !hasF16(conv.getWeight()) || !hasF16(conv.getY()))
    return false;
  auto weight = cast<RankedTensorType>(conv.getWeight().getType());
  return llvm::all_of(weight.getShape().take_front(2),
                      [](int64_t channels) { return channels >= fewestChannels && channels % channelAlignment == 0; });
}

class ConvStatisticsPass : public impl::ConvStatisticsPassBase<ConvStatisticsPass> {
public:
  using ConvStatisticsPassBase::ConvStatisticsPassBase;

  void runOnOperation() override {
    SmallVector<BatchNormTrainOp> norms;
    getOperation().walk([&](BatchNormTrainOp norm) {
      auto conv = norm.getX().getDefiningOp<Conv2dOp>();
      // Where nothing reads the normalised image, the convolution's own result may not be kept, and libraries write it.
      if (conv && !norm.getY().use_empty() && hasLibraryStatistics(conv) &&
          norm.getDataFormat() == conv.getDataFormat())
        norms.push_back(norm);
    });
    for (BatchNormTrainOp norm : norms)
      // A second normalisation of the same result finds the convolution replaced, and reads it as before.
      if (auto conv = norm.getX().getDefiningOp<Conv2dOp>())
        takeStatistics(conv, norm);
  }

private:
  static void takeStatistics(Conv2dOp conv, BatchNormTrainOp norm) {
    OpBuilder builder(conv);
    auto statistics = Conv2dStatisticsOp::create(builder, conv.getLoc(),
                                                 TypeRange{conv.getY().getType(), norm.getMean().getType(),
                                                           norm.getVariance().getType(), norm.getInvStd().getType()},
                                                 conv.getX(), conv.getWeight(), conv.getStrides(), conv.getDilations(),
                                                 conv.getPadMode(), conv.getPadding(), conv.getGroups(),
                                                 conv.getDataFormat(), norm.getEpsilon());
    statistics->setDiscardableAttrs(conv->getDiscardableAttrDictionary());
    builder.setInsertionPoint(norm);
    auto normal =
        BatchNormApplyOp::create(builder, norm.getLoc(), norm.getY().getType(), statistics.getY(), norm.getGamma(),
                                 norm.getBeta(), statistics.getMean(), statistics.getInvStd(), norm.getDataFormat());
    normal->setDiscardableAttrs(norm->getDiscardableAttrDictionary());
    norm.replaceAllUsesWith(
        ValueRange{normal.getY(), statistics.getMean(), statistics.getVariance(), statistics.getInvStd()});
    norm.erase();
    conv.replaceAllUsesWith(statistics.getY());
    conv.erase();
  }
};

} // namespace

} // namespace mpc
