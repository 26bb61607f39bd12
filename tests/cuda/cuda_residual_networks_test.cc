// Residual networks train on a GPU as on the CPU, at every level: convolutions with and without stride, batch norm,
// sums of two paths. For hardware with the vendor's libraries; of the emulated device cuda_network_steps_test proves
// more.
#include <memory>

#include "models/resnet.h"
#include "tests/cuda/network_runs.h"

namespace mpc::testing {
namespace {

class CudaResidualNetworks : public OnCuda, public ::testing::WithParamInterface<Level> {};
INSTANTIATE_TEST_SUITE_P(Levels, CudaResidualNetworks, ::testing::ValuesIn(AllLevels()), LevelName);

/// Nine convolutions follow each other. Forward each with its batch norm and relu rounds three times, backward as
/// often, and once more for the weight; then the dense layer, the mean and the loss.
constexpr int kConvolutions = 9;
constexpr int kRoundings = 7 * kConvolutions + 8;

/// A residual network of four blocks of 4 to 32 channels.
struct TinyResNet : models::ResNet<models::BasicBlock> {
  MPC_CELL(TinyResNet)
  TinyResNet()
      : ResNet({1, 1, 1, 1}, {.num_classes = 10, .num_channels = 3, .stem = models::ResNetStem::kCifar, .width = 4}) {}
  Tensor Construct(Tensor x) { return ResNet::Construct(x); }
};

TEST_P(CudaResidualNetworks, BasicBlocks) {
  ExpectFollowsTheCpu<TinyResNet, nn::SoftmaxCrossEntropyWithLogits>(
      ImageBatches(3, 16, 4, 2, kRoundings, /*relus=*/kConvolutions), GetParam(),
      [] { return std::make_unique<TinyResNet>(); });
}

}  // namespace
}  // namespace mpc::testing
