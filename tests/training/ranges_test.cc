// The ranges of a step against what its kernels compute, and the loss scale that follows from them.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>

#include "compiler/driver/analyze_ranges.h"
#include "models/registry.h"
#include "tests/training/training_support.h"

namespace mpc::testing {
namespace {

using compiler::RangeRow;
using compiler::RangeVerdict;

constexpr float kLargestInput = 2;

/// MPC_RANGE_STEPS; a few where it is not set.
std::int64_t StepsToTry() {
  const char* steps = std::getenv("MPC_RANGE_STEPS");
  return steps == nullptr ? 4 : std::atoll(steps);
}

std::vector<Tensor> DrawBatch(const models::Workload& workload, std::int64_t batch, std::mt19937& random) {
  std::vector<Tensor> columns;
  for (const TensorSpec& spec : workload.TrainInputs(batch)) {
    if (spec.dtype == DType::kF32) {
      std::uniform_real_distribution<float> draw(-kLargestInput, kLargestInput);
      std::vector<float> values(static_cast<std::size_t>(spec.num_elements()));
      for (float& value : values) value = draw(random);
      columns.push_back(Tensor::From(values, spec.shape));
      continue;
    }
    std::uniform_int_distribution<std::int32_t> draw(0, static_cast<std::int32_t>(workload.classes()) - 1);
    std::vector<std::int32_t> values(static_cast<std::size_t>(spec.num_elements()));
    for (std::int32_t& value : values) value = draw(random);
    columns.push_back(Tensor::From(values, spec.shape));
  }
  return columns;
}

/// Initial values are independent draws: in another order they are as likely.
void ShuffleParameters(nn::Cell& network, std::mt19937& random) {
  for (auto& [name, parameter] : network.ParametersAndNames()) {
    const Tensor before = *parameter.Value();
    std::vector<float> values = before.ToFloats();
    std::shuffle(values.begin(), values.end(), random);
    MPC_ASSERT_OK(network.SetParameter(name, Tensor::From(values, before.shape())));
  }
}

std::vector<ValueStatistics> LowValues(const std::vector<ValueStatistics>& all) {
  std::vector<ValueStatistics> low;
  for (const ValueStatistics& value : all) {
    const bool is_argument =
        value.operation == "parameter" || value.operation == "statistic" || value.operation == "input";
    if (!is_argument && IsLowPrecision(value.dtype)) low.push_back(value);
  }
  return low;
}

/// Compares the values of one step with their rows. Bounds hold up to the first value that is not finite, whose tensor
/// must be one that may overflow.
void ExpectWithinRanges(const std::vector<RangeRow>& rows, const std::vector<ValueStatistics>& values) {
  ASSERT_EQ(rows.size(), values.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const RangeRow& row = rows[i];
    const ValueStatistics& value = values[i];
    ASSERT_EQ(row.op, value.operation) << i;
    // A cast of a parameter has no Cell in the IR, and is measured as that of its reader.
    if (!row.path.empty()) {
      ASSERT_EQ(row.path, value.cell) << i;
    }
    SCOPED_TRACE(value.Describe());
    if (value.not_finite() > 0) {
      EXPECT_NE(row.overflow, RangeVerdict::Cannot);
      return;
    }
    EXPECT_NE(row.overflow, RangeVerdict::Will);
    EXPECT_LE(value.largest, std::max(std::abs(row.low), std::abs(row.high)) * (1 + 0x1p-8) + 0x1p-24);
    if (row.underflow == RangeVerdict::Will) {
      EXPECT_EQ(value.zeros, value.count());
    }
  }
}

struct Case {
  const char* model;
  std::int64_t batch;
  std::int64_t share = 1;  ///< one of so many of the steps is tried, where steps take long
};

class RangesOfModel : public ::testing::TestWithParam<Case> {};

TEST_P(RangesOfModel, HoldInRandomSteps) {
  for (const double scale : {0x1p10, 0x1p24}) {
    SetSeed(11);
    auto workload = models::MakeWorkload(GetParam().model);
    MPC_ASSERT_OK(workload.status());
    nn::Momentum optimizer((*workload)->network().TrainableParams(), {.learning_rate = 0.01, .momentum = 0.9});
    Model model = (*workload)->MakeModel(optimizer, {.amp = {.level = "O2", .loss_scale = scale, .verbosity = 0}});
    absl::StatusOr<compiler::Module> traced = model.TraceTrainStep((*workload)->TrainInputs(GetParam().batch));
    MPC_ASSERT_OK(traced.status());
    const compiler::RangeAssumptions assumptions{
        .inputs = compiler::KnownRange{.low = -kLargestInput, .high = kLargestInput}, .loss_scale = scale};
    const auto table = compiler::AnalyzeRanges(*traced, model.compile_options(/*training=*/true), assumptions);
    MPC_ASSERT_OK(table.status());
    EXPECT_TRUE(table->unbounded.empty()) << table->unbounded.front();
    std::mt19937 random(3);
    for (std::int64_t step = 0; step < std::max<std::int64_t>(StepsToTry() / GetParam().share, 1); ++step) {
      const auto values = model.Measure(DrawBatch(**workload, GetParam().batch, random), {});
      MPC_ASSERT_OK(values.status());
      ExpectWithinRanges(table->rows, LowValues(*values));
      if (HasFailure()) return;
      ShuffleParameters((*workload)->network(), random);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Small, RangesOfModel,
                         ::testing::Values(Case{"lenet5", 4}, Case{"bnnet", 4}, Case{"mlp", 4}, Case{"gpt2-tiny", 2},
                                           Case{"bert-tiny", 2}, Case{"vit-tiny", 2}, Case{"faint", 4},
                                           Case{"dcgan-generator", 4}, Case{"dcgan-discriminator", 4},
                                           Case{"resnet18", 1, 50}),
                         [](const auto& info) {
                           std::string name = info.param.model;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

/// LeNet-5 on `steps` random batches.
struct DerivedTraining {
  explicit DerivedTraining(const amp::OptionValue& loss_scale)
      : workload(*models::MakeWorkload("lenet5")),
        optimizer(workload->network().TrainableParams(), {.learning_rate = 0.01, .momentum = 0.9}),
        model(workload->MakeModel(optimizer, {.amp = {.level = "O2", .loss_scale = loss_scale, .verbosity = 0}})) {}
  absl::Status Train(int steps) {
    std::mt19937 random(1);
    std::vector<data::Row> rows;
    for (int step = 0; step < steps; ++step) rows.push_back(DrawBatch(*workload, 16, random));
    return model.Train(1, Batches(rows));
  }

  std::unique_ptr<models::Workload> workload;
  nn::Momentum optimizer;
  Model model;
};

TEST(DerivedLossScale, SkipsNoStepWhereTheDefaultSkipsSeveral) {
  SetSeed(2);
  DerivedTraining by_default("dynamic");
  MPC_ASSERT_OK(by_default.Train(30));
  EXPECT_GT(by_default.model.skipped_steps(), 3);
  SetSeed(2);
  DerivedTraining derived("derived");
  MPC_ASSERT_OK(derived.Train(30));
  EXPECT_EQ(derived.model.skipped_steps(), 0);
  const double scale = derived.model.loss_scale();
  EXPECT_EQ(std::exp2(std::round(std::log2(scale))), scale) << "a power of two";
  EXPECT_LT(scale, 0x1p20);
  EXPECT_GT(scale, 0x1p8) << "small gradients keep their bits";
}

// The scale follows from the step that begins a run. Afterwards it is state, as any other scale is.
TEST(DerivedLossScale, IsDerivedOnce) {
  SetSeed(2);
  DerivedTraining derived("derived");
  MPC_ASSERT_OK(derived.Train(2));
  const double scale = derived.model.loss_scale();
  for (const auto& [name, parameter] : derived.workload->network().ParametersAndNames()) {
    MPC_ASSERT_OK(derived.workload->network().SetParameter(name, Tensor::Full(parameter.Value()->shape(), 1e-3)));
  }
  MPC_ASSERT_OK(derived.Train(2));
  EXPECT_EQ(derived.model.loss_scale(), scale);
}

// Smaller weights make smaller gradients.
TEST(DerivedLossScale, FollowsTheParametersAsTheyAre) {
  SetSeed(2);
  DerivedTraining derived("derived");
  MPC_ASSERT_OK(derived.Train(1));
  DerivedTraining smaller("derived");
  for (const auto& [name, parameter] : smaller.workload->network().ParametersAndNames()) {
    const bool is_last = name.find("fc3") != std::string::npos;
    MPC_ASSERT_OK(smaller.workload->network().SetParameter(
        name, Tensor::Full(parameter.Value()->shape(), is_last ? 1e-3 : 100.0)));
  }
  MPC_ASSERT_OK(smaller.Train(1));
  EXPECT_NE(derived.model.loss_scale(), smaller.model.loss_scale());
}

TEST(DerivedLossScale, KeepsWithinTheLimitsOfTheScale) {
  SetSeed(2);
  auto workload = *models::MakeWorkload("lenet5");
  nn::Momentum optimizer(workload->network().TrainableParams(), {.learning_rate = 0.01, .momentum = 0.9});
  Model model = workload->MakeModel(
      optimizer, {.amp = {.level = "O2", .loss_scale = "derived", .max_loss_scale = 64.0, .verbosity = 0}});
  std::mt19937 random(1);
  MPC_ASSERT_OK(model.Train(1, Batches({DrawBatch(*workload, 4, random)})));
  EXPECT_EQ(model.loss_scale(), 64);
}

/// Its values are 1e5 or more, in f16.
class Overflowing : public nn::Cell {
 public:
  MPC_CELL(Overflowing, fc)
  Tensor Construct(Tensor x) { return fc((sigmoid(x) + 1.0) * 1.0e5); }
  nn::Dense fc{4, 2};
};

TEST(CompiledRanges, WarnOfAnOverflowInEveryStep) {
  Overflowing network;
  nn::SoftmaxCrossEntropyWithLogits loss({.sparse = true, .reduction = "mean"});
  nn::SGD optimizer(network.TrainableParams());
  Model model(network, loss, optimizer, {.amp = {.level = "O2", .verbosity = 0}});
  ::testing::internal::CaptureStderr();
  model.Train(1, Batches({{Values({2, 4}), Tensor::From<std::int32_t>({0, 1}, {2})}})).IgnoreError();
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(
      said, ::testing::HasSubstr("mpc.mul_scalar in overflowing overflows f16 in every step: one element is at least"));
  EXPECT_THAT(said, ::testing::HasSubstr("note: mpc.add_scalar in overflowing has values in ["));
}

}  // namespace
}  // namespace mpc::testing
