// The frontier of precision of models: what was predicted against what runs.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <random>
#include <tuple>

#include "absl/strings/str_format.h"
#include "models/registry.h"
#include "tests/training/training_support.h"

namespace mpc::testing {
namespace {

/// The number in the environment, `otherwise` where there is none.
int NumberFrom(const char* variable, int otherwise) {
  const char* number = std::getenv(variable);
  return number == nullptr ? otherwise : std::atoi(number);
}

struct Case {
  const char* model;
  std::int64_t rows;
  int batches;                ///< those that errors are told on, unless MPC_FRONTIER_BATCHES says otherwise
  double max_gradient_error;  ///< about half of what every slot in bf16 errs by
  double max_loss_error;      ///< about a quarter of its bound there
};

std::int64_t CountBatches(const Case& tested) { return NumberFrom("MPC_FRONTIER_BATCHES", tested.batches); }

std::ostream& operator<<(std::ostream& out, const Case& tested) { return out << tested.model; }

/// A device on which low slots pay in small networks too.
compiler::DeviceRates FastRates() {
  return {.bytes_per_second = 1e11, .low_flops = 1e12, .f32_flops = 1e11, .seconds_per_operation = 1e-9};
}

/// Batches of random rows.
std::vector<data::Row> RandomBatches(const models::Workload& workload, std::int64_t rows, std::uint32_t seed,
                                     int count) {
  std::mt19937 random(seed);
  std::vector<data::Row> batches;
  for (int batch = 0; batch < count; ++batch) {
    data::Row columns;
    for (const TensorSpec& spec : workload.TrainInputs(rows)) {
      const auto size = static_cast<std::size_t>(spec.num_elements());
      if (spec.dtype == DType::kF32) {
        std::normal_distribution<float> draw;
        std::vector<float> values(size);
        for (float& value : values) value = draw(random);
        columns.push_back(Tensor::From(values, spec.shape));
        continue;
      }
      std::uniform_int_distribution<std::int32_t> draw(0, static_cast<std::int32_t>(workload.classes()) - 1);
      std::vector<std::int32_t> values(size);
      for (std::int32_t& value : values) value = draw(random);
      columns.push_back(Tensor::From(values, spec.shape));
    }
    batches.push_back(std::move(columns));
  }
  return batches;
}

/// A Model at level auto that has trained for a few steps.
struct TrainedWorkload {
  TrainedWorkload(const Case& tested, std::uint32_t seed)
      : rows(tested.rows), batches(CountBatches(tested)), seed(seed) {
    SetSeed(seed);
    workload = models::MakeWorkload(tested.model).value();
    optimizer = std::make_unique<nn::Momentum>(workload->network().TrainableParams(),
                                               nn::MomentumOptions{.learning_rate = 0.01, .momentum = 0.9});
    ModelOptions options{.amp = {.level = "auto", .dtype = "bf16"}};
    options.amp.verbosity = 0;
    model = std::make_unique<Model>(workload->MakeModel(*optimizer, options));
    MPC_EXPECT_OK(model->Train(1, BatchesOf(0, 4)));
  }

  data::Dataset BatchesOf(std::uint32_t part, std::int64_t count) const {
    return testing::Batches(RandomBatches(*workload, rows, 100 * seed + part, static_cast<int>(count)));
  }
  data::Dataset BatchesOf(std::uint32_t part) const { return BatchesOf(part, batches); }

  std::int64_t rows, batches;
  std::uint32_t seed;
  std::unique_ptr<models::Workload> workload;
  std::unique_ptr<nn::Momentum> optimizer;
  std::unique_ptr<Model> model;
};

PrecisionFrontierOptions OptionsOf(const Case& tested, std::int64_t points, SlotErrorSource source) {
  return {.points = points, .steps = 1, .batches = CountBatches(tested), .slot_errors = source, .rates = FastRates()};
}

using SlotErrors = std::map<std::string, PrecisionErrors>;

/// Spearman's, of the errors of each slot.
double RankCorrelation(const SlotErrors& predicted, const SlotErrors& measured, FrontierError of) {
  PrecisionFrontier both;
  for (const auto& [slot, error] : predicted) {
    PrecisionFrontier::Point point;
    point.predicted = error;
    point.measured.rms = measured.at(slot);
    both.points.push_back(point);
  }
  return both.RankCorrelation(of);
}

/// The least and the largest part of what is measured that estimates are. Errors below `floor` are left out.
std::pair<double, double> RangeOfParts(const SlotErrors& estimated, const SlotErrors& measured, FrontierError of,
                                       double floor) {
  double least = INFINITY, most = 0;
  for (const auto& [slot, error] : estimated) {
    const double found = measured.at(slot).Of(of);
    if (found < floor) continue;
    least = std::min(least, error.Of(of) / found);
    most = std::max(most, error.Of(of) / found);
  }
  return {least, most};
}

/// Below it the measured error of a loss is mostly the rounding of two f32 losses.
constexpr double kLossFloor = 1e-6;

class FrontierOfModel : public ::testing::TestWithParam<Case> {};

TEST_P(FrontierOfModel, RanksErrorsAsTheyAreMeasured) {
  TrainedWorkload trained(GetParam(), 1);
  const auto estimated = trained.model->FindPrecisionFrontier(trained.BatchesOf(1),
                                                              OptionsOf(GetParam(), 10, SlotErrorSource::kEstimated));
  MPC_ASSERT_OK(estimated.status());
  EXPECT_EQ(estimated->measured_slots, 0) << "every slot has probes";
  const auto measured =
      trained.model->FindPrecisionFrontier(trained.BatchesOf(1), OptionsOf(GetParam(), 2, SlotErrorSource::kMeasured));
  MPC_ASSERT_OK(measured.status());
  std::cout << GetParam().model << ", " << CountBatches(GetParam()) << " batches:\n" << estimated->Table();
  const auto correlation = [&](FrontierError of) {
    const double of_slots = RankCorrelation(estimated->slot_errors, measured->slot_errors, of);
    const bool is_loss = of == FrontierError::kLoss;
    const auto [least, most] =
        RangeOfParts(estimated->slot_errors, measured->slot_errors, of, is_loss ? kLossFloor : 0);
    std::cout << absl::StrFormat(
        "%d slots, %s: rank correlation of estimated and measured errors %.3f, estimates %.2f to %.2f of what is "
        "measured\n",
        estimated->open_slots, is_loss ? "loss" : "gradient", of_slots, least, most);
    return of_slots;
  };
  EXPECT_GE(correlation(FrontierError::kGradient), 0.9);
  EXPECT_GE(correlation(FrontierError::kLoss), 0.9);
  EXPECT_GE(estimated->RankCorrelation(FrontierError::kGradient), 0.9);
  // What the loss of a corner errs by is one draw a batch: few batches tell its size within a third.
  EXPECT_GE(estimated->RankCorrelation(FrontierError::kLoss), 0.8);
  EXPECT_GT(estimated->corners, 2);
}

TEST_P(FrontierOfModel, RanksErrorsOfTheLossWhereItIsWeighed) {
  TrainedWorkload trained(GetParam(), 1);
  PrecisionFrontierOptions options = OptionsOf(GetParam(), 10, SlotErrorSource::kEstimated);
  options.weighed = FrontierError::kLoss;
  const auto frontier = trained.model->FindPrecisionFrontier(trained.BatchesOf(1), options);
  MPC_ASSERT_OK(frontier.status());
  std::cout << GetParam().model << ", " << CountBatches(GetParam()) << " batches, weighed by the loss:\n"
            << frontier->Table();
  EXPECT_GE(frontier->RankCorrelation(FrontierError::kLoss), 0.8);
  EXPECT_GT(frontier->corners, 2);
}

TEST_P(FrontierOfModel, ChoosesAPrecisionThatKeepsItsErrors) {
  for (int seed = 1; seed <= NumberFrom("MPC_FRONTIER_SEEDS", 1); ++seed) {
    TrainedWorkload trained(GetParam(), static_cast<std::uint32_t>(seed));
    PrecisionFrontierOptions options = OptionsOf(GetParam(), 8, SlotErrorSource::kEstimated);
    options.max_gradient_error = GetParam().max_gradient_error;
    options.max_loss_error = GetParam().max_loss_error;
    const auto frontier = trained.model->FindPrecisionFrontier(trained.BatchesOf(1), options);
    MPC_ASSERT_OK(frontier.status());
    ASSERT_TRUE(frontier->chosen.has_value());
    const PrecisionFrontier::Point& chosen = frontier->points[*frontier->chosen];
    const auto elsewhere =
        trained.model->MeasurePrecisionErrors(chosen.precision, trained.BatchesOf(2), trained.batches);
    MPC_ASSERT_OK(elsewhere.status());
    std::cout << absl::StrFormat("%s, seed %d: %d of %d slots low\n", GetParam().model, seed, chosen.low_slots,
                                 frontier->open_slots);
    for (const auto& [name, of, limit] : {std::tuple{"gradient", FrontierError::kGradient, *options.max_gradient_error},
                                          std::tuple{"loss", FrontierError::kLoss, *options.max_loss_error}}) {
      std::cout << absl::StrFormat("  %s: at most %.2e; bound %.2e, on other batches %.2e\n", name, limit,
                                   chosen.measured.bound.Of(of), elsewhere->largest.Of(of))
                << std::flush;
      EXPECT_LE(chosen.measured.bound.Of(of), limit);
      EXPECT_LE(elsewhere->largest.Of(of), limit);
    }
    EXPECT_GT(chosen.low_slots, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Small, FrontierOfModel, ::testing::Values(Case{"gpt2-tiny", 4, 16, 3e-3, 1.2e-5}));
// ctest leaves it out, since it takes minutes: .ci/long frontier runs it.
INSTANTIATE_TEST_SUITE_P(Long, FrontierOfModel, ::testing::Values(Case{"resnet18", 8, 8, 0.13, 6e-4}));

}  // namespace
}  // namespace mpc::testing
