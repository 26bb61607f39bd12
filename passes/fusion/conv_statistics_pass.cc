// Takes batch normalisation's statistics from the convolution that makes its input.
//
//   %y = mpc.conv2d %x, %w {data_format = NHWC} : ...
//   %n, %mean, %variance, %inv_std = mpc.batch_norm_train %y, %gamma, %beta {data_format = NHWC} : ...
// becomes
//   %y, %mean, %variance, %inv_std = mpc.conv2d_statistics %x, %w {data_format = NHWC} : ...
//   %n = mpc.batch_norm_infer %y, %gamma, %beta, %mean, %variance {data_format = NHWC} : ...
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
constexpr int64_t FewestChannels = 32;
constexpr int64_t ChannelAlignment = 8;

bool hasF16(Value V) { return cast<RankedTensorType>(V.getType()).getElementType().isF16(); }

bool hasLibraryStatistics(Conv2dOp Conv) {
  if (Conv.getBias() || Conv.getActivation() != "none" || Conv.getGroups() != 1 || Conv.getDataFormat() != "NHWC")
    return false;
  if (!hasF16(Conv.getX()) || !hasF16(Conv.getWeight()) || !hasF16(Conv.getY()))
    return false;
  auto Weight = cast<RankedTensorType>(Conv.getWeight().getType());
  return llvm::all_of(Weight.getShape().take_front(2),
                      [](int64_t Channels) { return Channels >= FewestChannels && Channels % ChannelAlignment == 0; });
}

class ConvStatisticsPass : public impl::ConvStatisticsPassBase<ConvStatisticsPass> {
public:
  using ConvStatisticsPassBase::ConvStatisticsPassBase;

  void runOnOperation() override {
    SmallVector<BatchNormTrainOp> Norms;
    getOperation().walk([&](BatchNormTrainOp Norm) {
      auto Conv = Norm.getX().getDefiningOp<Conv2dOp>();
      // Where nothing reads the normalised image, the convolution's own result may not be kept, and libraries write it.
      if (Conv && !Norm.getY().use_empty() && hasLibraryStatistics(Conv) &&
          Norm.getDataFormat() == Conv.getDataFormat())
        Norms.push_back(Norm);
    });
    for (BatchNormTrainOp Norm : Norms)
      // A second normalisation of the same result finds the convolution replaced, and reads it as before.
      if (auto Conv = Norm.getX().getDefiningOp<Conv2dOp>())
        takeStatistics(Conv, Norm);
  }

private:
  static void takeStatistics(Conv2dOp Conv, BatchNormTrainOp Norm) {
    OpBuilder Builder(Conv);
    auto Statistics = Conv2dStatisticsOp::create(Builder, Conv.getLoc(),
                                                 TypeRange{Conv.getY().getType(), Norm.getMean().getType(),
                                                           Norm.getVariance().getType(), Norm.getInvStd().getType()},
                                                 Conv.getX(), Conv.getWeight(), Conv.getStrides(), Conv.getDilations(),
                                                 Conv.getPadMode(), Conv.getPadding(), Conv.getGroups(),
                                                 Conv.getDataFormat(), Norm.getEpsilon());
    Statistics->setDiscardableAttrs(Conv->getDiscardableAttrDictionary());
    Builder.setInsertionPoint(Norm);
    auto Normal = BatchNormInferOp::create(Builder, Norm.getLoc(), Norm.getY().getType(), Statistics.getY(),
                                           Norm.getGamma(), Norm.getBeta(), Statistics.getMean(),
                                           Statistics.getVariance(), Norm.getEpsilon(), Norm.getDataFormat());
    Normal->setDiscardableAttrs(Norm->getDiscardableAttrDictionary());
    Norm.replaceAllUsesWith(
        ValueRange{Normal.getY(), Statistics.getMean(), Statistics.getVariance(), Statistics.getInvStd()});
    Norm.erase();
    Conv.replaceAllUsesWith(Statistics.getY());
    Conv.erase();
  }
};

} // namespace

} // namespace mpc
