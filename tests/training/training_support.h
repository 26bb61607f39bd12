// Small networks, data and state snapshots for tests that train.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "mpc/mpc.h"

namespace mpc::testing {

#define MPC_ASSERT_OK(expression)                          \
  do {                                                     \
    const absl::Status mpc_status = (expression);          \
    ASSERT_TRUE(mpc_status.ok()) << mpc_status.ToString(); \
  } while (false)
#define MPC_EXPECT_OK(expression)                          \
  do {                                                     \
    const absl::Status mpc_status = (expression);          \
    EXPECT_TRUE(mpc_status.ok()) << mpc_status.ToString(); \
  } while (false)

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Repeatable values in [-1, 1).
inline float Value(std::int64_t index, std::int64_t stream = 0) {
  std::uint64_t h =
      static_cast<std::uint64_t>(index) * 0x9E3779B97F4A7C15u + static_cast<std::uint64_t>(stream) * 77u + 1;
  h ^= h >> 31;
  h *= 0xBF58476D1CE4E5B9u;
  h ^= h >> 29;
  return static_cast<float>(h >> 40) / static_cast<float>(1 << 23) - 1.0f;
}

inline Tensor Values(const Shape& shape, std::int64_t stream = 0, float scale = 1.0f) {
  std::vector<float> values(static_cast<std::size_t>(NumElements(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = scale * Value(static_cast<std::int64_t>(i), stream);
  return Tensor::From(values, shape);
}

/// [N, 6] -> [N, 3]: one hidden layer.
class TwoLayers : public nn::Cell {
 public:
  MPC_CELL(TwoLayers, fc1, fc2)
  Tensor Construct(Tensor x) { return fc2(relu(fc1(x))); }
  nn::Dense fc1{6, 8};
  nn::Dense fc2{8, 3};
};

/// [N, 2, 6, 6] -> [N, 3]: convolution, batch norm, dropout, a dense layer; every kind of state that a step moves.
class ConvNorm : public nn::Cell {
 public:
  MPC_CELL(ConvNorm, conv, norm, drop, fc)
  Tensor Construct(Tensor x) { return fc(flatten(drop(max_pool2d(relu(norm(conv(x))))))); }
  nn::Conv2d conv{2, 4, 3};
  nn::BatchNorm2d norm{4};
  nn::Dropout drop{{.p = 0.25}};
  nn::Dense fc{36, 3};
};

/// Batch `index` of `rows` rows: images of `shape` and one-hot labels.
inline data::Row MakeBatch(const Shape& sample, std::int64_t rows, std::int64_t index, std::int64_t classes = 3) {
  Shape shape{rows};
  shape.insert(shape.end(), sample.begin(), sample.end());
  std::vector<float> labels(static_cast<std::size_t>(rows * classes), 0.0f);
  for (std::int64_t row = 0; row < rows; ++row)
    labels[static_cast<std::size_t>(row * classes + (row + index) % classes)] = 1;
  return {Values(shape, 100 + index), Tensor::From(labels, {rows, classes})};
}

/// The batch with `value` in its first image element.
inline data::Row WithBadValue(data::Row batch, float value) {
  std::vector<float> image = batch[0].ToFloats();
  image[0] = value;
  batch[0] = Tensor::From(image, batch[0].shape());
  return batch;
}

/// Rows that are batches already.
inline data::Dataset Batches(std::vector<data::Row> batches) {
  return data::GeneratorDataset(std::move(batches), {"data", "label"});
}

inline data::Dataset GoodBatches(const Shape& sample, std::int64_t count, std::int64_t rows = 8) {
  std::vector<data::Row> batches;
  for (std::int64_t i = 0; i < count; ++i) batches.push_back(MakeBatch(sample, rows, i));
  return Batches(std::move(batches));
}

/// Every state entry's bytes by name.
using Snapshot = std::map<std::string, std::vector<std::uint8_t>>;

inline Snapshot StateOf(const Model& model) {
  Snapshot snapshot;
  for (const Parameter& entry : model.AllState()) {
    absl::StatusOr<Tensor> value = entry.Value();
    EXPECT_TRUE(value.ok()) << value.status();
    if (value.ok()) snapshot[entry.name()] = {value->bytes().begin(), value->bytes().end()};
  }
  return snapshot;
}

inline Snapshot ParametersOf(nn::Cell& cell) {
  Snapshot snapshot;
  for (const auto& [name, parameter] : cell.ParametersAndNames()) {
    absl::StatusOr<Tensor> value = parameter.Value();
    EXPECT_TRUE(value.ok()) << value.status();
    if (value.ok()) snapshot[name] = {value->bytes().begin(), value->bytes().end()};
  }
  return snapshot;
}

/// The snapshot without the scaler's entries.
inline Snapshot WithoutScaler(Snapshot snapshot) {
  std::erase_if(snapshot, [](const auto& entry) { return entry.first.rfind("scaler.", 0) == 0; });
  return snapshot;
}

/// Names whose bytes differ, or that only one side has.
inline std::vector<std::string> Differences(const Snapshot& a, const Snapshot& b) {
  std::vector<std::string> names;
  for (const auto& [name, bytes] : a) {
    const auto found = b.find(name);
    if (found == b.end() || found->second != bytes) names.push_back(name);
  }
  for (const auto& [name, bytes] : b) {
    if (a.find(name) == a.end()) names.push_back(name);
  }
  return names;
}

inline double StateItem(const Model& model, std::string_view name) {
  const Parameter entry = model.State(name);
  EXPECT_TRUE(entry.defined()) << name;
  return entry.defined() ? entry.Value()->Item<double>() : 0.0;
}

/// The losses of a run.
class LossRecorder : public Callback {
 public:
  void OnStepEnd(RunContext& context) override { losses.push_back(context.loss()); }
  std::vector<float> losses;
};

/// How often `text` occurs.
inline int Count(const std::string& where, const std::string& text) {
  int count = 0;
  for (std::size_t at = where.find(text); at != std::string::npos; at = where.find(text, at + text.size())) ++count;
  return count;
}

/// One precision to run a behaviour at.
struct Level {
  std::string level;
  std::optional<DType> dtype;
};

/// At auto the device decides what is low, if anything.
inline std::vector<Level> AllLevels() {
  return {{"O0", {}},          {"O1", DType::kF16},  {"O1", DType::kBF16},  {"O2", DType::kF16},   {"O2", DType::kBF16},
          {"O3", DType::kF16}, {"O3", DType::kBF16}, {"auto", DType::kF16}, {"auto", DType::kBF16}};
}

inline std::string LevelName(const ::testing::TestParamInfo<Level>& info) {
  return info.param.level + (info.param.dtype.has_value() ? "_" + std::string(DTypeName(*info.param.dtype)) : "");
}

/// A network with loss, optimizer and Model, made from seed 7.
template <typename Network>
struct Training {
  explicit Training(const Level& level, LossScaleChoice scale = {},
                    nn::MomentumOptions momentum = {.learning_rate = 0.05},
                    std::optional<bool> keep_batchnorm_fp32 = {}, std::int64_t accumulation_steps = 1) {
    SetSeed(7);
    network = std::make_unique<Network>();
    optimizer = std::make_unique<nn::Momentum>(network->TrainableParams(), momentum);
    model = std::make_unique<Model>(*network, loss, *optimizer,
                                    ModelOptions{.metrics = {"accuracy"},
                                                 .amp_level = level.level,
                                                 .keep_batchnorm_fp32 = keep_batchnorm_fp32,
                                                 .loss_scale_manager = scale,
                                                 .amp_dtype = level.dtype,
                                                 .accumulation_steps = accumulation_steps});
  }

  std::unique_ptr<Network> network;
  nn::SoftmaxCrossEntropyWithLogits loss{{.reduction = "mean"}};
  std::unique_ptr<nn::Momentum> optimizer;
  std::unique_ptr<Model> model;
};

}  // namespace mpc::testing
