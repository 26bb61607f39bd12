// Whole networks train on a GPU as they do on the CPU: step by step, at every precision. What differs is the order of
// sums, and with it a rounding here and there. The GPU is emulated and has the project's own kernels, or it is that of
// this machine with the vendor's libraries (network_device.h).
#include <memory>
#include <vector>

#include "models/bert.h"
#include "models/bnnet.h"
#include "models/dcgan.h"
#include "models/gpt2.h"
#include "models/lenet5.h"
#include "tests/cuda/network_runs.h"

namespace mpc::testing {
namespace {

class CudaNetworks : public OnCuda, public ::testing::WithParamInterface<Level> {};
INSTANTIATE_TEST_SUITE_P(Levels, CudaNetworks, ::testing::ValuesIn(AllLevels()), LevelName);

TEST_P(CudaNetworks, LeNet5) {
  ExpectFollowsTheCpu<models::LeNet5, nn::SoftmaxCrossEntropyWithLogits>(
      ImageBatches(1, 32, 4, 5, 20), GetParam(), [] { return std::make_unique<models::LeNet5>(); });
}

TEST_P(CudaNetworks, BatchNormNet) {
  ExpectFollowsTheCpu<models::BnNet, nn::SoftmaxCrossEntropyWithLogits>(
      ImageBatches(1, 32, 4, 5, 26), GetParam(), [] { return std::make_unique<models::BnNet>(); });
}

// The loss of so many classes has rows that no thread keeps in registers. Their columns' sums are the bias's gradient.
TEST_P(CudaNetworks, LossOverManyClasses) {
  static constexpr std::int64_t kClasses = 20'000;
  Workload workload{{}, 5};
  for (int step = 0; step < 2; ++step) workload.batches.push_back(MakeBatch({12}, 9, step, kClasses));
  ExpectFollowsTheCpu<nn::Dense, nn::SoftmaxCrossEntropyWithLogits>(
      workload, GetParam(), [] { return std::make_unique<nn::Dense>(12, kClasses); });
}

/// Two rows of 12 numbers, and the number behind each.
data::Row TokenBatch() {
  std::vector<std::int32_t> ids, next;
  for (std::int32_t i = 0; i < 24; ++i) {
    ids.push_back(i * i % 19);
    next.push_back((i + 1) * (i + 1) % 19);
  }
  return {Tensor::From(ids, {2, 12}), Tensor::From(next, {2, 12})};
}

TEST_P(CudaNetworks, TinyGpt2WithDropout) {
  const data::Row batch = TokenBatch();
  ExpectFollowsTheCpu<models::Gpt2, models::NextTokenLoss>({{batch, batch, batch}, 60}, GetParam(), [] {
    return std::make_unique<models::Gpt2>(
        models::Gpt2Config{.vocabulary = 19, .context = 12, .width = 32, .layers = 2, .heads = 4, .dropout = 0.1});
  });
}

TEST_P(CudaNetworks, TinyBertWithDropout) {
  const data::Row batch = TokenBatch();
  ExpectFollowsTheCpu<models::Bert, models::MaskedTokenLoss>({{batch, batch, batch}, 60}, GetParam(), [] {
    return std::make_unique<models::Bert>(
        models::BertConfig{.vocabulary = 19, .context = 12, .width = 32, .layers = 2, .heads = 4, .dropout = 0.1});
  });
}

TEST_P(CudaNetworks, BothHalvesOfDcgan) {
  static const models::DcganOptions options{.image_size = 8, .latent_size = 6, .width = 4};
  const Tensor images = Values({6, 1, 8, 8}, 3);
  const data::Row judged = {images, Tensor::From({1.0f, 0.0f, 1.0f, 0.0f, 1.0f, 0.0f}, {6, 1})};
  ExpectFollowsTheCpu<models::DcganDiscriminator, nn::BCEWithLogitsLoss>(
      {{judged, judged, judged}, 16}, GetParam(), [] { return std::make_unique<models::DcganDiscriminator>(options); });
  const data::Row made = {Values({6, 6}, 4), images};
  ExpectFollowsTheCpu<models::DcganGenerator, nn::MSELoss>(
      {{made, made, made}, 20}, GetParam(), [] { return std::make_unique<models::DcganGenerator>(options); });
}

}  // namespace
}  // namespace mpc::testing
