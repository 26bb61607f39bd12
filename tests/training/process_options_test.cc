// How processes add their gradients: as means or sums, in low types, in the transport's order.
#include <array>
#include <cstring>

#include "kernels/float16.h"
#include "tests/training/probe.h"
#include "tests/training/process_group.h"

namespace mpc::testing {
namespace {

constexpr int kFour = 4;
const Level kF32Level{"O0", DType::kF32};

LossScaleConfig StartingAt(double scale) {
  LossScaleConfig config = DynamicScale(scale, 2, 0.5, /*interval=*/100);
  config.minimum = 0.25;
  return config;
}

/// One update, to which rank r gives the gradient `gradients[r]`.
absl::Status UpdateBy(ProbeTraining& training, const std::vector<float>& gradients) {
  std::vector<data::Row> batches;
  for (const float gradient : gradients) batches.push_back({Tensor::From({gradient}, {1}), Tensor::From({0.0f}, {1})});
  return training.model.Train(1, Batches(std::move(batches)));
}

/// ((0 + 1) + (2 + 3)) of numbers that are rounded to T, as is every addition.
template <typename T>
float TreeOf(const std::array<float, kFour>& terms) {
  const auto add = [](float a, float b) {
    return static_cast<float>(T(static_cast<float>(T(a)) + static_cast<float>(T(b))));
  };
  return add(add(terms[0], terms[1]), add(terms[2], terms[3]));
}

/// What a network with every kind of state becomes in processes with four micro-batches an update.
Snapshot TrainConvNorm(const AutoParallelOptions& options, double learning_rate, int processes = kFour) {
  EXPECT_TRUE(RunGroup(
      processes,
      [&](int rank) {
        ConvNorm network;
        nn::SoftmaxCrossEntropyWithLogits loss;
        nn::SGD optimizer(network.TrainableParams(), {.learning_rate = learning_rate});
        Model model(network, loss, optimizer,
                    {.loss_scale_manager = StartingAt(1024), .accumulation_steps = kFour / processes});
        std::vector<data::Row> batches;
        for (std::int64_t i = 0; i < 16; ++i) batches.push_back(MakeBatch({2, 6, 6}, 8, i));
        batches[9] = WithBadValue(batches[9], kInfinity);
        MPC_EXPECT_OK(model.Train(2, Batches(std::move(batches))));
        EXPECT_EQ(model.skipped_steps(), 2);
        Snapshot state = StateOf(model);
        std::erase_if(state, [](const auto& entry) {
          return entry.first.find("learning_rate") != std::string::npos || entry.first.starts_with("accumulator.");
        });
        Write(FilePath(absl::StrCat(rank)), state);
      },
      /*killed=*/{}, options));
  Snapshot first = Read(FilePath("0"));
  for (int rank = 1; rank < processes; ++rank) {
    EXPECT_EQ(Differences(first, Read(FilePath(absl::StrCat(rank)))), std::vector<std::string>{}) << rank;
  }
  return first;
}

TEST(ProcessOptions, ASumIsTheMeanTimesTheNumberOfProcesses) {
  const Snapshot by_mean = TrainConvNorm({}, 0.25);
  EXPECT_EQ(Differences(by_mean, TrainConvNorm({.gradients_mean = false}, 0.25 / kFour)), std::vector<std::string>{});
  EXPECT_NE(Differences(by_mean, TrainConvNorm({.gradients_mean = false}, 0.25)), std::vector<std::string>{});
}

TEST(ProcessOptions, TheSharedTransportHasOneOrder) {
  EXPECT_EQ(Differences(TrainConvNorm({}, 0.25), TrainConvNorm({.reduction = GradientReduction::kFast}, 0.25)),
            std::vector<std::string>{});
}

class DirectStep : public nn::TrainingStep {
 public:
  MPC_CELL(DirectStep, network)
  DirectStep(Probe& network, nn::Optimizer& optimizer) : network(network), optimizer(optimizer) {}
  Tensor Construct(Tensor x) {
    const Tensor loss = reduce_sum(network(x));
    return ops::Depend(loss, optimizer(ops::Backward(loss, optimizer.parameters())));
  }
  Probe& network;
  nn::Optimizer& optimizer;
};

/// The transport's own order is asked for by the object that adds, which the Programs of a step keep.
TEST(ProcessOptions, AStepThatIsCalledDirectlyAddsInTheOrderThatIsAskedFor) {
  for (const GradientReduction reduction : {GradientReduction::kOrdered, GradientReduction::kFast}) {
    EXPECT_TRUE(RunGroup(2,
                         [&](int rank) {
                           const auto ordered = distributed::internal::GetCommunicator();
                           const auto adds = distributed::internal::GetTrainingCommunicator();
                           EXPECT_EQ(adds == ordered, reduction == GradientReduction::kOrdered);
                           EXPECT_EQ(adds, distributed::internal::GetTrainingCommunicator());
                           const auto kept = adds.use_count();
                           Probe network;
                           nn::SGD optimizer(network.TrainableParams(), {.learning_rate = 1.0});
                           DirectStep step(network, optimizer);
                           for (int i = 0; i < 2; ++i) {
                             MPC_EXPECT_OK(step(Tensor::From({1.0f + static_cast<float>(rank)}, {1})).status());
                           }
                           EXPECT_EQ(network.weight.Value()->ToFloats(), std::vector<float>{-3.0f});
                           EXPECT_GT(adds.use_count(), kept);
                         },
                         /*killed=*/{}, {.reduction = reduction}));
  }
}

/// The numbers round differently in every other order, and where they are rounded once.
TEST(ProcessOptions, ALowTypeRoundsScaledGradientsAtEveryAddition) {
  constexpr float kScale = 8;
  constexpr std::array<float, kFour> kGradients = {1024.4f, 0.6f, 0.7f, 0.9f};
  std::array<float, kFour> shares = kGradients;
  for (float& share : shares) share = share * kScale / kFour;
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    const float sum = dtype == DType::kF16 ? TreeOf<Half>(shares) : TreeOf<BFloat16>(shares);
    EXPECT_NE(sum, (shares[0] + shares[1]) + (shares[2] + shares[3]));
    EXPECT_TRUE(RunGroup(kFour,
                         [&](int rank) {
                           ProbeTraining training(kF32Level, StartingAt(kScale));
                           MPC_EXPECT_OK(UpdateBy(training, {kGradients.begin(), kGradients.end()}));
                           EXPECT_EQ(training.Weight(), std::vector<float>{-sum / kScale})
                               << rank << " " << DTypeName(dtype);
                         },
                         /*killed=*/{}, {.communication_dtype = dtype}));
  }
}

TEST(ProcessOptions, ALowTypeHasTheBitsOfOneProcessThatAccumulates) {
  const Snapshot wide = TrainConvNorm({}, 0.25);
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    const AutoParallelOptions options = {.communication_dtype = dtype};
    const Snapshot alone = TrainConvNorm(options, 0.25, 1);
    EXPECT_NE(Differences(wide, alone), std::vector<std::string>{});
    for (const int processes : {2, 4}) {
      EXPECT_EQ(Differences(alone, TrainConvNorm(options, 0.25, processes)), std::vector<std::string>{}) << processes;
    }
  }
}

/// The scale with which training behind a normalisation to `gamma` begins, where four micro-batches make an update.
double DerivedScale(int processes, float gamma) {
  EXPECT_TRUE(
      RunGroup(processes,
               [&](int rank) {
                 ConvNorm network;
                 MPC_EXPECT_OK(network.SetParameter("norm.gamma", Tensor::From(std::vector<float>(4, gamma), {4})));
                 nn::SoftmaxCrossEntropyWithLogits loss;
                 nn::Momentum momentum(network.TrainableParams(), {.learning_rate = 0.05, .momentum = 0.9});
                 Model model(network, loss, momentum,
                             {.amp = {.level = "O2", .loss_scale = "derived"}, .accumulation_steps = 4 / processes});
                 MPC_EXPECT_OK(model.Train(1, GoodBatches({2, 6, 6}, 4)));
                 EXPECT_EQ(model.skipped_steps(), 0);
                 if (rank == 0) Write(FilePath("state"), StateOf(model));
               },
               /*killed=*/{}, {.communication_dtype = DType::kF16}));
  const Snapshot state = Read(FilePath("state"));
  const auto found = state.find("scaler.scale");
  float scale = 0;
  if (found != state.end() && found->second.size() == sizeof scale) {
    std::memcpy(&scale, found->second.data(), sizeof scale);
  }
  EXPECT_GT(scale, 0);
  return scale;
}

/// A Program of one micro-batch a process has no sums of its own, and no first scale of its own.
TEST(ProcessOptions, ADerivedScaleIsThatOfEveryNumberOfProcesses) {
  // A gradient of the weight grows as gamma does, and that of the bias does not. Its sum decides for the smaller gamma.
  for (const float gamma : {0.5F, 1.0F}) {
    const double alone = DerivedScale(1, gamma);
    for (const int processes : {2, 4}) EXPECT_EQ(DerivedScale(processes, gamma), alone) << processes << " " << gamma;
  }
}

/// The sums that overflow are those of one process.
TEST(ProcessOptions, ALowSumOfMicroBatchesThatOverflowsSkipsTheUpdate) {
  EXPECT_TRUE(RunGroup(1,
                       [](int) {
                         ProbeTraining training(kF32Level, StartingAt(1), 1, 1.0, /*accumulation_steps=*/2);
                         MPC_EXPECT_OK(UpdateBy(training, {100000, 100000}));
                         EXPECT_EQ(training.Weight(), std::vector<float>{0.0f});
                         EXPECT_EQ(training.model.skipped_steps(), 1);
                         MPC_EXPECT_OK(UpdateBy(training, {1, 1}));
                         EXPECT_EQ(training.Weight(), std::vector<float>{-1.0f});
                       },
                       /*killed=*/{}, {.communication_dtype = DType::kF16}));
}

/// A gradient that f16 cannot hold stays where it is scaled.
TEST(ProcessOptions, ASmallGradientTravelsInF16BecauseItIsScaled) {
  EXPECT_TRUE(RunGroup(2,
                       [](int) {
                         ProbeTraining training(kF32Level, StartingAt(65536));
                         MPC_EXPECT_OK(UpdateBy(training, {0x1p-30f, 0x1p-30f}));
                         EXPECT_EQ(training.Weight(), std::vector<float>{-0x1p-30f});
                       },
                       /*killed=*/{}, {.communication_dtype = DType::kF16}));
}

struct Overflow {
  AutoParallelOptions options;
  float gradient;  ///< in each of two processes
  double scale = 1;
};

/// Every process has a finite gradient, and their sum is none.
TEST(ProcessOptions, ASumThatOverflowsSkipsTheUpdateEverywhere) {
  const std::vector<Overflow> cases = {
      {{.gradients_mean = false}, 3e38f},
      {{.gradients_mean = false, .communication_dtype = DType::kBF16}, 3e38f},
      {{.gradients_mean = false, .communication_dtype = DType::kF16}, 40000},
      {{.gradients_mean = false, .communication_dtype = DType::kF16}, 10, 4096},
      {{.communication_dtype = DType::kF16}, 100000},
  };
  for (const Overflow& overflow : cases) {
    EXPECT_TRUE(RunGroup(
        2,
        [&](int rank) {
          ProbeTraining training(kF32Level, StartingAt(overflow.scale));
          MPC_EXPECT_OK(UpdateBy(training, {overflow.gradient, overflow.gradient}));
          EXPECT_EQ(training.Weight(), std::vector<float>{0.0f}) << rank << " " << overflow.gradient;
          EXPECT_EQ(training.model.skipped_steps(), 1);
          EXPECT_EQ(StateItem(training.model, "scaler.scale"), overflow.scale / 2);
          MPC_EXPECT_OK(UpdateBy(training, {1, 1}));
          const float moved = overflow.options.gradients_mean ? 1 : 2;
          EXPECT_EQ(training.Weight(), std::vector<float>{-moved}) << rank << " " << overflow.gradient;
        },
        /*killed=*/{}, overflow.options));
  }
}

TEST(ProcessOptions, OptionsThatDifferBetweenProcessesAreNamed) {
  const std::vector<std::pair<AutoParallelOptions, std::string>> cases = {
      {{.gradients_mean = false}, "\"gradients_mean: true\", rank 1 has \"gradients_mean: false\""},
      {{.communication_dtype = DType::kF16}, "\"communication_dtype: f32\", rank 1 has \"communication_dtype: f16\""},
      {{.reduction = GradientReduction::kFast}, "\"reduction: kOrdered\", rank 1 has \"reduction: kFast\""},
  };
  for (const auto& [options, words] : cases) {
    EXPECT_TRUE(RunGroup(2, [&, &options = options, &words = words](int rank) {
      AutoParallelOptions own = rank == 0 ? AutoParallelOptions{} : options;
      own.parallel_mode = ParallelMode::kDataParallel;
      MPC_EXPECT_OK(SetAutoParallelContext(own));
      ProbeTraining training(kF32Level, StartingAt(1));
      EXPECT_EQ(UpdateBy(training, {1, 1}).message(),
                absl::StrCat("processes that train together differ: rank 0 has ", words));
    }));
  }
}

TEST(ProcessOptions, RefusesByNameWhatCannotBeAddedLow) {
  EXPECT_TRUE(RunGroup(
      2,
      [](int) {
        ProbeTraining unscaled(kF32Level, nullptr);
        const std::string message(UpdateBy(unscaled, {1, 1}).message());
        EXPECT_NE(message.find("has no loss scale: an f16 sum of its gradients may overflow"), std::string::npos)
            << message;
      },
      /*killed=*/{}, {.communication_dtype = DType::kF16}));
}

/// Whatever several processes agree on is said once.
TEST(ProcessOptions, TheFirstProcessAloneSaysWhichPrecisionIsInEffect) {
  for (const int micro_batches : {2, 4}) {
    EXPECT_TRUE(RunGroup(2, [&](int rank) {
      ::testing::internal::CaptureStderr();
      ConvNorm network;
      nn::SoftmaxCrossEntropyWithLogits loss;
      nn::Momentum momentum(network.TrainableParams(), {.learning_rate = 0.05, .momentum = 0.9});
      Model model(network, loss, momentum, {.amp = {.level = "O2"}, .accumulation_steps = micro_batches / 2});
      MPC_EXPECT_OK(model.Train(1, GoodBatches({2, 6, 6}, 4)));
      const std::string said = ::testing::internal::GetCapturedStderr();
      const std::size_t first = said.find("amp: in effect");
      EXPECT_EQ(first != std::string::npos, rank == 0) << said;
      EXPECT_EQ(said.rfind("amp: in effect"), first) << said;
    }));
  }
}

}  // namespace
}  // namespace mpc::testing
