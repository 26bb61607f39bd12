// O1 and auto through a Model: what is solved is solved once, on the training graph.
#include "frontend/graph/device_rates.h"
#include "tests/training/training_support.h"

namespace mpc::testing {
namespace {

/// [N, 6] -> [N, 3]. What the cut chooses for `joined` depends on the batch size: joining low casts 20 rows of the
/// table, joining f32 casts N rows of `hidden`; both a Deny and an Allow operation read the result.
class BatchDependent : public nn::Cell {
 public:
  MPC_CELL(BatchDependent, fc, table, out)
  Tensor Construct(Tensor x) {
    const Tensor hidden = fc(x);
    const std::int64_t rows = hidden.shape()[0];
    const Tensor joined = concat({hidden, exp(Tensor(table))}, 0);
    return slice(softmax(joined), {0, 0}, {rows, 3}) + slice(out(joined), {0, 0}, {rows, 3});
  }
  nn::Dense fc{6, 3};
  Parameter table{{20, 3}, Uniform(0.5)};
  nn::Dense out{3, 3};
};

std::string JoinedType(const compiler::CompileResult& result) {
  for (const auto& [name, type] : result.assignment) {
    if (name.find("#concat.0") != std::string::npos) return type;
  }
  return "none";
}

Tensor Rows(std::int64_t count) { return Values({count, 6}); }

TEST(SolvedPrecision, TrainingGraphDecidesForPredictEvalAndEveryBatchSize) {
  Training<BatchDependent> training({"O1", DType::kF16});
  const Shape features = {6};
  MPC_ASSERT_OK(training.model->Train(1, Batches({MakeBatch(features, 8, 0), MakeBatch(features, 40, 1)})));
  ASSERT_TRUE(training.model->Predict(Rows(40)).ok());
  ASSERT_TRUE(training.model->Eval(GoodBatches(features, 1, 40)).ok());
  const std::vector<const compiler::CompileResult*> compiled = training.model->compiled();
  ASSERT_EQ(compiled.size(), 4u);
  for (const compiler::CompileResult* result : compiled) EXPECT_EQ(JoinedType(*result), "f32");
  EXPECT_EQ(Count(compiled[0]->final_ir.Print(), "stored_assignment"), 0);
  EXPECT_GT(Count(compiled[2]->final_ir.Print(), "stored_assignment"), 0);
}

TEST(SolvedPrecision, PredictIsSolvedAloneUntilATrainingGraphDecides) {
  Training<BatchDependent> training({"O1", DType::kF16});
  const Model& model = *training.model;
  ASSERT_TRUE(training.model->Predict(Rows(40)).ok());
  EXPECT_EQ(JoinedType(*model.compiled().back()), "f16");
  ASSERT_TRUE(training.model->Predict(Rows(8)).ok());
  EXPECT_EQ(JoinedType(*model.compiled().back()), "f16") << "as for the first batch size";
  MPC_ASSERT_OK(training.model->Train(1, GoodBatches({6}, 1, 8)));
  EXPECT_EQ(JoinedType(*model.compiled().back()), "f32");
  const std::size_t before = model.compiled().size();
  ASSERT_TRUE(training.model->Predict(Rows(40)).ok());
  EXPECT_EQ(model.compiled().size(), before + 1) << "compiled again";
  EXPECT_EQ(JoinedType(*model.compiled().back()), "f32");
}

TEST(SolvedPrecision, TrainingAtO1AndAutoLearns) {
  for (const Level& level : {Level{"O1", DType::kF16}, Level{"O1", DType::kBF16}, Level{"auto", {}}}) {
    Training<ConvNorm> training(level);
    LossRecorder recorder;
    MPC_ASSERT_OK(training.model->Train(12, GoodBatches({2, 6, 6}, 4), {recorder}));
    EXPECT_LT(recorder.losses.back(), 0.8f * recorder.losses.front()) << level.level;
    absl::StatusOr<Tensor> predicted = training.model->Predict(Values({2, 2, 6, 6}));
    ASSERT_TRUE(predicted.ok()) << predicted.status();
    EXPECT_EQ(predicted->dtype(), DType::kF32);
  }
}

TEST(SolvedPrecision, RatesOfTheDeviceAreMeasuredOnceAndKeptInTheChoiceTable) {
  const absl::StatusOr<compiler::DeviceRates> rates = amp::MeasureDeviceRates("cpu", DType::kBF16);
  ASSERT_TRUE(rates.ok()) << rates.status();
  EXPECT_GT(rates->bytes_per_second, 1e8);
  EXPECT_GT(rates->low_flops, 1e8);
  EXPECT_GT(rates->f32_flops, 1e8);
  EXPECT_GT(rates->seconds_per_operation, 0);
  EXPECT_LT(rates->seconds_per_operation, 1e-2);
  EXPECT_EQ(amp::MeasureDeviceRates("cpu", DType::kBF16)->low_flops, rates->low_flops);

  Training<TwoLayers> training({"auto", DType::kBF16});
  MPC_ASSERT_OK(training.model->Train(1, GoodBatches({6}, 1)));
  const auto& choices = training.model->compiled().front()->program.choices;
  const std::optional<compiler::DeviceRates> kept =
      amp::RatesFromChoices(std::map<std::string, std::string>(choices.begin(), choices.end()));
  ASSERT_TRUE(kept.has_value());
  EXPECT_NEAR(kept->low_flops / rates->low_flops, 1.0, 1e-4) << "as text";
  EXPECT_FALSE(amp::RatesFromChoices({}).has_value());
}

}  // namespace
}  // namespace mpc::testing
