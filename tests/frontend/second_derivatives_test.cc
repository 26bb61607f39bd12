// Second derivatives through norms, gelu, pooling, attention, embeddings, recurrent cells and losses of one operation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "frontend/graph/gradient_ops.h"
#include "tests/frontend/critic_penalty.h"
#include "tests/training/training_support.h"

namespace mpc {
namespace {

using testing::Values;

class DenseCritic : public nn::Cell {
 public:
  MPC_CELL(DenseCritic, first, norm, second, root_norm, head)
  Tensor Construct(Tensor x) {
    const Tensor hidden = gelu(norm(first(flatten(x))));
    return head(gelu(root_norm(second(hidden)), "tanh"));
  }
  nn::Dense first{2 * 6 * 6, 24};
  nn::LayerNorm norm{{24}};
  nn::Dense second{24, 16};
  nn::RMSNorm root_norm{16};
  nn::Dense head{16, 1};
};

class ImageCritic : public nn::Cell {
 public:
  MPC_CELL(ImageCritic, first, norm, second, batch_norm, head)
  Tensor Construct(Tensor x) {
    const Tensor pooled = max_pool2d(gelu(norm(first(x))), {.kernel_size = {2, 2}});
    return head(flatten(gelu(batch_norm(second(pooled)))));
  }
  nn::Conv2d first{2, 4, 3};
  nn::GroupNorm norm{2, 4};
  nn::Conv2d second{4, 4, 3};
  nn::BatchNorm2d batch_norm{4};
  nn::Dense head{4 * 3 * 3, 1};
};

class RecurrentCritic : public nn::Cell {
 public:
  MPC_CELL(RecurrentCritic, first, slopes, cell, head)
  Tensor Construct(Tensor x) {
    const Tensor hidden = slopes(first(flatten(x)));
    const Tensor zero = hidden * 0.0;
    const auto [once, state] = cell(hidden, zero, zero);
    const auto [twice, last] = cell(hidden, once, state);
    const Tensor extremes = concat({reduce_max(twice, {1}, true), reduce_min(last, {1}, true)}, 1);
    return head(concat({twice, last, extremes, reduce_prod(extremes + 1.0, {1}, true)}, 1));
  }
  nn::Dense first{2 * 6 * 6, 12};
  nn::PReLU slopes{12};
  nn::LSTMCell cell{12, 12};
  nn::Dense head{12 + 12 + 3, 1};
};

TEST(SecondDerivatives, PenaltiesTrainLayerNormsAndGeluAtEveryLevel) { testing::ExpectPenaltyTrains<DenseCritic>(); }

TEST(SecondDerivatives, PenaltiesTrainGroupNormsAndMaxPoolingAtEveryLevel) {
  testing::ExpectPenaltyTrains<ImageCritic>();
}

TEST(SecondDerivatives, PenaltiesTrainRecurrentCellsSlopesAndExtremaAtEveryLevel) {
  testing::ExpectPenaltyTrains<RecurrentCritic>();
}

class Classifier : public nn::Cell {
 public:
  MPC_CELL(Classifier, table, block, norm, hidden, head)
  Tensor Construct(Tensor tokens) { return head(gelu(hidden(norm(reduce_mean(block(table(tokens)), {1}))))); }
  nn::Embedding table{7, 6, {.embedding_table = Normal(0.5)}};
  nn::TransformerEncoderLayer block{
      6, 2, {.dim_feedforward = 8, .dropout = 0, .activation = "gelu_tanh", .norm_first = true, .causal = true}};
  nn::LayerNorm norm{{6}};
  nn::Dense hidden{6, 5};
  nn::Dense head{5, 3};
};

enum class LossKind { kSoftmax, kLogistic, kSquares };

/// The gradients of a loss, then the products of its Hessian with a direction, in one line.
class HessianStep : public nn::TrainingStep {
 public:
  MPC_CELL(HessianStep, network)
  explicit HessianStep(LossKind kind) : kind_(kind) {}
  Tensor Construct(Tensor tokens, Tensor labels) {
    const std::vector<Parameter> parameters = network.TrainableParams();
    const std::vector<Tensor> first = ops::Backward(LossOf(network(tokens), labels), parameters);
    std::vector<Tensor> products, lines;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      products.push_back(reshape(reduce_sum(first[i] * Direction(parameters[i], i)), {1}));
      lines.push_back(reshape(first[i], {-1}));
    }
    for (const Tensor& second : ops::Backward(reduce_sum(concat(products)), parameters))
      lines.push_back(reshape(second, {-1}));
    return concat(lines);
  }
  static Tensor Direction(const Parameter& parameter, std::size_t index) {
    return Values(parameter.shape(), 40 + static_cast<std::int64_t>(index));
  }
  Classifier network;

 private:
  Tensor LossOf(const Tensor& logits, const Tensor& labels) const {
    if (kind_ == LossKind::kSoftmax) return softmax_cross_entropy(logits, labels);
    const Tensor targets = one_hot(labels, 3);
    return kind_ == LossKind::kLogistic ? binary_cross_entropy_with_logits(logits, targets) : mse(logits, targets);
  }
  LossKind kind_;
};

TEST(SecondDerivatives, HessianProductsAgreeWithFiniteDifferences) {
  const Tensor tokens = Tensor::From<std::int32_t>({0, 3, 6, 1, 1, 2, 5, 0}, {4, 2});
  const Tensor labels = Tensor::From<std::int32_t>({2, 0, 1, 1}, {4});
  for (const LossKind kind : {LossKind::kSoftmax, LossKind::kLogistic, LossKind::kSquares}) {
    SetSeed(7);
    HessianStep step(kind);
    const std::vector<float> both = step(tokens, labels).ToFloats();
    std::vector<std::vector<float>> start;
    const std::vector<Parameter> parameters = step.network.TrainableParams();
    for (const Parameter& parameter : parameters) start.push_back(parameter.Value()->ToFloats());
    const auto gradients_at = [&](float distance) {
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        const std::vector<float> direction = HessianStep::Direction(parameters[i], i).ToFloats();
        std::vector<float> moved = start[i];
        for (std::size_t k = 0; k < moved.size(); ++k) moved[k] += distance * direction[k];
        Parameter parameter = parameters[i];
        MPC_EXPECT_OK(parameter.SetData(Tensor::From(moved, parameter.shape())));
      }
      return step(tokens, labels).ToFloats();
    };
    constexpr float kDistance = 0x1p-7f;
    const std::vector<float> low = gradients_at(-kDistance), high = gradients_at(kDistance),
                             lower = gradients_at(-2 * kDistance), higher = gradients_at(2 * kDistance);
    const std::size_t count = both.size() / 2;
    float largest = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const float fine = (high[i] - low[i]) / (2 * kDistance), coarse = (higher[i] - lower[i]) / (4 * kDistance);
      // The error of a difference is a third of what doubling its step changes. Some 16 roundings in f32 of numbers
      // below 1 are divided by the step.
      EXPECT_NEAR(both[count + i], fine, 2 * std::abs(coarse - fine) + 16 * 0x1p-24f / kDistance) << i;
      largest = std::max(largest, std::abs(both[count + i]));
    }
    EXPECT_GT(largest, 0.05f);
  }
}

}  // namespace
}  // namespace mpc
