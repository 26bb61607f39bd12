// A head whose classes are padded trains as it does on the user's classes: in the emulation to the bit.
#include <memory>
#include <string>
#include <vector>

#include "models/bert.h"
#include "models/gpt2.h"
#include "tests/cuda/network_runs.h"

namespace mpc::testing {
namespace {

constexpr std::int32_t kVocabulary = 27;  ///< padded to 32

/// Two rows of 12 numbers, and the number behind each.
data::Row RowsOfTokens() {
  std::vector<std::int32_t> ids, next;
  for (std::int32_t i = 0; i < 24; ++i) {
    ids.push_back(i * i % kVocabulary);
    next.push_back((i * i + 1) % kVocabulary);
  }
  return {Tensor::From(ids, {2, 12}), Tensor::From(next, {2, 12})};
}

struct Outcome {
  std::vector<float> losses;
  Snapshot state;
  std::int64_t skipped;
  std::vector<std::string> remarks;
  std::vector<std::string> kernels;  ///< of the training step, in order
  std::size_t planned;               ///< bytes
};

template <typename Network, typename Loss>
Outcome Train(const Level& level, bool pads, std::unique_ptr<Network> (*make)()) {
  MPC_EXPECT_OK(SetContext({.device = "cuda", .fusion = test::NetworkDeviceFusion(), .pad_classes = pads}));
  const DynamicLossScaleManager dynamic({.init_loss_scale = 256});
  DeviceRun<Network, Loss> run("cuda", level, make,
                               level.dtype == DType::kF16 ? LossScaleChoice(dynamic) : LossScaleChoice());
  LossRecorder losses;
  MPC_EXPECT_OK(
      run.model->Train(1, Batches({RowsOfTokens(), RowsOfTokens(), RowsOfTokens(), RowsOfTokens()}), {losses}));
  const compiler::CompileResult& compiled = *run.model->compiled().front();
  Outcome outcome{losses.losses,
                  StateOf(*run.model),
                  run.model->skipped_steps(),
                  compiled.remarks,
                  {},
                  compiled.program.planned_bytes()};
  for (const runtime::Instruction& instruction : compiled.program.step().instructions)
    outcome.kernels.push_back(instruction.kernel);
  MPC_EXPECT_OK(SetContext({}));
  return outcome;
}

template <typename Network, typename Loss>
void ExpectPaddedTrainsAlike(const Level& level, std::unique_ptr<Network> (*make)()) {
  const Outcome plain = Train<Network, Loss>(level, false, make), padded = Train<Network, Loss>(level, true, make);
  EXPECT_THAT(plain.remarks, ::testing::Not(::testing::Contains(::testing::HasSubstr("pad-classes"))));
  EXPECT_THAT(padded.remarks, ::testing::Contains(::testing::HasSubstr("27 classes are padded to 32 in 3 products")));
  EXPECT_THAT(plain.kernels, ::testing::Not(::testing::Contains("pad")));
  EXPECT_THAT(padded.kernels, ::testing::Contains("pad"));
  EXPECT_EQ(padded.skipped, plain.skipped);
  EXPECT_LT(padded.losses.back(), padded.losses.front()) << "it learns";
  if (test::NetworkDeviceCalls() != nullptr) {
    EXPECT_EQ(padded.losses, plain.losses);
    EXPECT_EQ(Differences(padded.state, plain.state), std::vector<std::string>{});
  } else {
    // Libraries may add in another order.
    EXPECT_NEAR(padded.losses.front(), plain.losses.front(), 0x1p-20 * plain.losses.front());
  }
  EXPECT_THAT(test::NetworkDeviceProblems(), ::testing::IsEmpty());
}

class CudaPaddedClasses : public OnCuda, public ::testing::WithParamInterface<Level> {};
INSTANTIATE_TEST_SUITE_P(Levels, CudaPaddedClasses,
                         ::testing::Values(Level{"O2", DType::kBF16}, Level{"O2", DType::kF16},
                                           Level{"O1", DType::kBF16}, Level{"O3", DType::kBF16}),
                         LevelName);

TEST_P(CudaPaddedClasses, TrainGpt2AsBefore) {
  ExpectPaddedTrainsAlike<models::Gpt2, models::NextTokenLoss>(GetParam(), [] {
    return std::make_unique<models::Gpt2>(
        models::Gpt2Config{.vocabulary = kVocabulary, .context = 12, .width = 32, .layers = 1, .heads = 4});
  });
}

// The head has a bias, and rows without a label count for nothing.
TEST_P(CudaPaddedClasses, TrainBertAsBefore) {
  ExpectPaddedTrainsAlike<models::Bert, models::MaskedTokenLoss>(GetParam(), [] {
    return std::make_unique<models::Bert>(
        models::BertConfig{.vocabulary = kVocabulary, .context = 12, .width = 32, .layers = 1, .heads = 4});
  });
}

}  // namespace
}  // namespace mpc::testing
