// The precision lock of a Model, before it trains and after.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/train/model.h"
#include "tests/frontend/temporary_folder.h"
#include "tests/training/training_support.h"

namespace mpc {
namespace {

using ::testing::AllOf;
using testing::ConvNorm;
using testing::GoodBatches;
using ::testing::HasSubstr;
using testing::TemporaryFolder;
using testing::TwoLayers;

const Shape kPictures = {2, 6, 6};

/// A network with all that trains it.
template <typename Network>
struct LockedTraining {
  explicit LockedTraining(const std::string& level) : model(network, loss, optimizer, Options(level)) {}
  static ModelOptions Options(const std::string& level) {
    ModelOptions options{.amp_level = level};
    options.amp.verbosity = 0;
    return options;
  }

  Network network;
  nn::SoftmaxCrossEntropyWithLogits loss{{.sparse = false, .reduction = "mean"}};
  nn::Momentum optimizer{network.TrainableParams(), {.learning_rate = 0.01, .momentum = 0.9}};
  Model model;
};

class LockLevels : public ::testing::TestWithParam<const char*> {};

TEST_P(LockLevels, IsTheSameBeforeAndAfterTrainingAndOnEveryBatch) {
  LockedTraining<ConvNorm> training(GetParam());
  const absl::StatusOr<std::string> before = training.model.PrecisionLock(GoodBatches(kPictures, 1, /*rows=*/8));
  ASSERT_TRUE(before.ok()) << before.status();
  const absl::StatusOr<std::string> larger = training.model.PrecisionLock(GoodBatches(kPictures, 1, /*rows=*/24));
  ASSERT_TRUE(larger.ok()) << larger.status();
  EXPECT_EQ(*before, *larger);
  MPC_ASSERT_OK(training.model.Train(1, GoodBatches(kPictures, 2)));
  const absl::StatusOr<std::string> after = training.model.PrecisionLock();
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(*before, *after);
  EXPECT_THAT(*before, AllOf(HasSubstr("\nnetwork: ConvNorm\nstep: train_step\n"), HasSubstr("convnorm/norm | ")));
}

INSTANTIATE_TEST_SUITE_P(All, LockLevels, ::testing::Values("O0", "O1", "O2", "O3"));

TEST(ModelPrecisionLock, ACellThatIsNowComputedInF32FailsTheCheck) {
  const TemporaryFolder folder;
  const std::string path = folder / "precision.lock";
  const data::Dataset batches = GoodBatches({6}, 1);
  LockedTraining<TwoLayers> training("O2");
  MPC_ASSERT_OK(training.model.LockPrecision(path, batches));
  MPC_ASSERT_OK(training.model.CheckPrecision(path, batches));
  LockedTraining<TwoLayers> changed("O2");
  changed.network.fc2.ToFloat(DType::kF32);
  const absl::Status status = changed.model.CheckPrecision(path, batches);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("the precision of TwoLayers at O2 is not that of '" + path + "'"), HasSubstr("twolayers/fc2"),
            HasSubstr("ToFloat"), HasSubstr("(was: level O2)"), HasSubstr("casts (")));
  EXPECT_EQ(changed.model.LockPrecision(path, batches).code(), absl::StatusCode::kFailedPrecondition);
  MPC_ASSERT_OK(changed.model.LockPrecision(path, batches, /*update=*/true));
  MPC_EXPECT_OK(changed.model.CheckPrecision(path, batches));
}

TEST(ModelPrecisionLock, ALockOfAnotherNetworkOrLevelIsNamed) {
  const TemporaryFolder folder;
  const std::string path = folder / "precision.lock";
  LockedTraining<TwoLayers> training("O2");
  MPC_ASSERT_OK(training.model.LockPrecision(path, GoodBatches({6}, 1)));
  LockedTraining<ConvNorm> other("O2");
  EXPECT_THAT(std::string(other.model.CheckPrecision(path, GoodBatches(kPictures, 1)).message()),
              HasSubstr("it is the lock of another network: of TwoLayers, and it is compared with ConvNorm"));
  LockedTraining<TwoLayers> level("O3");
  EXPECT_THAT(std::string(level.model.CheckPrecision(path, GoodBatches({6}, 1)).message()),
              HasSubstr("it is the lock of another level: of O2, and it is compared with O3"));
}

TEST(ModelPrecisionLock, AModelThatHasCompiledNothingSaysWhatItNeeds) {
  LockedTraining<TwoLayers> training("O2");
  EXPECT_THAT(std::string(training.model.PrecisionLock().status().message()),
              HasSubstr("train or predict first, or give PrecisionLock the data set"));
  MPC_EXPECT_OK(training.model.Predict(testing::Values({4, 6})).status());
  const absl::StatusOr<std::string> predicted = training.model.PrecisionLock();
  ASSERT_TRUE(predicted.ok()) << predicted.status();
  EXPECT_THAT(*predicted, HasSubstr("\nstep: predict\n"));
}

/// A network whose gradient by `shift` is a sum over samples, as that of positions and class tokens is.
class Shifted : public nn::Cell {
 public:
  MPC_CELL(Shifted, shift, fc)
  Tensor Construct(Tensor x) { return fc(x + shift); }
  Parameter shift{{1, 6}, Zeros()};
  nn::Dense fc{6, 3};
};

TEST(ModelPrecisionLock, OfOneSampleIsThatOfMore) {
  LockedTraining<Shifted> training("O2");
  const absl::StatusOr<std::string> of_one = training.model.PrecisionLock(GoodBatches({6}, 1, /*rows=*/1));
  ASSERT_TRUE(of_one.ok()) << of_one.status();
  const absl::StatusOr<std::string> of_more = training.model.PrecisionLock(GoodBatches({6}, 1, /*rows=*/8));
  ASSERT_TRUE(of_more.ok()) << of_more.status();
  EXPECT_EQ(*of_one, *of_more);
}

/// A network that is written for batches of 8 rows.
class EightRows : public nn::Cell {
 public:
  MPC_CELL(EightRows, fc)
  Tensor Construct(Tensor x) { return fc(reshape(x, {8, 6})); }
  nn::Dense fc{6, 3};
};

TEST(ModelPrecisionLock, AStepOfOneBatchSizeIsRefused) {
  LockedTraining<EightRows> training("O2");
  EXPECT_THAT(std::string(training.model.PrecisionLock(GoodBatches({6}, 1)).status().message()),
              HasSubstr("the step cannot be traced on 16 samples: "));
}

}  // namespace
}  // namespace mpc
