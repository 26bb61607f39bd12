#include <cmath>
#include <string>

#include "tests/kernels/reference_run.h"

namespace mpc::test {
namespace {

const double kEpsilon = static_cast<double>(1e-5f);

TEST(BatchNorm, TrainNormalisesByBiasedBatchStatistics) {
  // Channel 0 holds 1, 3 (mean 2, variance 1), channel 1 holds 10, 14 (mean 12, variance 4).
  const std::vector<reference::Tensor> operands = {F32({2, 2}, {1, 10, 3, 14}), F32({2}, {1, 2}), F32({2}, {0, 5})};
  const TensorSpec c{DType::kF32, {2}};
  const auto results = RunReference("batch_norm_train", {}, operands, {{DType::kF32, {2, 2}}, c, c, c});
  const double s0 = 1 / std::sqrt(1 + kEpsilon);
  const double s1 = 1 / std::sqrt(4 + kEpsilon);
  ExpectNear(results[0].values, {-s0, 5 - 4 * s1, s0, 5 + 4 * s1});
  ExpectNear(results[1].values, {2, 12});
  ExpectNear(results[2].values, {1, 4});
  ExpectNear(results[3].values, {s0, s1});
}

TEST(BatchNorm, DataFormatsAgree) {
  const std::vector<reference::Tensor> parameters = {F32({2}, {1, 2}), F32({2}, {0, 5})};
  const TensorSpec c{DType::kF32, {2}};
  const auto nchw =
      RunReference("batch_norm_train", {}, {F32({1, 2, 1, 2}, {1, 3, 10, 14}), parameters[0], parameters[1]},
                   {{DType::kF32, {1, 2, 1, 2}}, c, c, c});
  const auto nhwc = RunReference("batch_norm_train", {{"data_format", std::string("NHWC")}},
                                 {F32({1, 1, 2, 2}, {1, 10, 3, 14}), parameters[0], parameters[1]},
                                 {{DType::kF32, {1, 1, 2, 2}}, c, c, c});
  EXPECT_EQ(nchw[1].values, nhwc[1].values);
  EXPECT_EQ(nchw[0].values[2], nhwc[0].values[1]);
}

TEST(BatchNorm, ApplyUsesTheBatchesStatistics) {
  ExpectNear(
      RunOne("batch_norm_apply", {},
             {F32({1, 2}, {5, 5}), F32({2}, {1, 2}), F32({2}, {0, 1}), F32({2}, {3, 4}), F32({2}, {0.5, 1})}, {1, 2}),
      {1, 3});
}

TEST(BatchNorm, InferUsesTheGivenStatistics) {
  ExpectNear(
      RunOne("batch_norm_infer", {{"epsilon", 0.0}},
             {F32({1, 2}, {5, 5}), F32({2}, {1, 2}), F32({2}, {0, 1}), F32({2}, {3, 4}), F32({2}, {4, 1})}, {1, 2}),
      {1, 3});
}

TEST(BatchNorm, RunningUpdateWeighsTheOldStatisticAndUnbiasesTheVariance) {
  const TensorSpec c{DType::kF32, {1}};
  const std::vector<reference::Tensor> operands = {F32({1}, {10}), F32({1}, {2}), F32({1}, {20}), F32({1}, {3})};
  const Attributes attributes = {{"momentum", 0.75}, {"count", std::int64_t{4}}};
  const auto results = RunReference("batch_norm_running_update", attributes, operands, {c, c});
  ExpectNear(results[0].values, {12.5});
  ExpectNear(results[1].values, {0.75 * 2 + 0.25 * 4});

  const Attributes of_two = {{"momentum", 0.75}, {"count", std::int64_t{4}}, {"batches", std::int64_t{2}}};
  const std::vector<reference::Tensor> two = {F32({1}, {10}), F32({1}, {2}), F32({2, 1}, {20, 30}),
                                              F32({2, 1}, {3, 6})};
  const auto moved_twice = RunReference("batch_norm_running_update", of_two, two, {c, c});
  ExpectNear(moved_twice[0].values, {0.75 * 12.5 + 0.25 * 30});
  ExpectNear(moved_twice[1].values, {0.75 * 2.5 + 0.25 * 8});

  const Attributes weighted = {{"momentum", 0.75}, {"count", std::int64_t{0}}};
  const auto moved_by_weighted = RunReference("batch_norm_running_update", weighted, operands, {c, c});
  ExpectNear(moved_by_weighted[0].values, {12.5});
  ExpectNear(moved_by_weighted[1].values, {0.75 * 2 + 3});

  std::vector<reference::Tensor> skipped = operands;
  skipped.push_back(Bool({}, {0}));
  const auto kept = RunReference("batch_norm_running_update", attributes, skipped, {c, c});
  EXPECT_EQ(kept[0].values, (Values{10}));
  EXPECT_EQ(kept[1].values, (Values{2}));
}

}  // namespace
}  // namespace mpc::test
