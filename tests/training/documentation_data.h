// The data set of the documentation's programs, and what they must do with it.
#pragma once

#include <vector>

#include "tests/training/training_support.h"

namespace mpc::testing {

/// Images in which the label can be seen, as batches of 16 one-hot rows.
inline data::Dataset CreateDataset() {
  std::vector<data::Row> rows;
  for (std::int64_t i = 0; i < 64; ++i) {
    const std::int64_t label = i % 10;
    std::vector<float> image(32 * 32);
    for (std::size_t pixel = 0; pixel < image.size(); ++pixel) {
      image[pixel] = 0.3f * Value(static_cast<std::int64_t>(pixel), i) +
                     (static_cast<std::int64_t>(pixel % 32) / 3 == label ? 2.0f : 0.0f);
    }
    std::vector<float> target(10, 0.0f);
    target[static_cast<std::size_t>(label)] = 1.0f;
    rows.push_back({Tensor::From(image, {1, 32, 32}), Tensor::From(target, {10})});
  }
  return data::GeneratorDataset(rows, {"data", "label"}).Batch(16, /*drop_remainder=*/true);
}

/// The first loss of ten classes, and a fall from it.
inline void ExpectFell(const std::vector<float>& losses) {
  ASSERT_FALSE(losses.empty());
  EXPECT_NEAR(losses.front(), 2.3, 0.1);
  EXPECT_LT(losses.back(), losses.front());
  EXPECT_TRUE(std::isfinite(losses.back()));
}

inline void ExpectLearns(Model& model, std::int64_t epochs = 6) {
  LossRecorder recorder;
  MPC_ASSERT_OK(model.Train(epochs, CreateDataset(), {recorder}));
  ExpectFell(recorder.losses);
}

/// Calls a training step by hand on every batch.
template <typename Step>
void ExpectLearnsByHand(Step& step, int epochs = 6) {
  step.SetTrain();
  std::vector<float> losses;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (const data::NamedRow& d : CreateDataset().CreateDictIterator()) {
      const Tensor loss = step(d["data"], d["label"]);
      MPC_ASSERT_OK(loss.status());
      losses.push_back(loss.Item<float>());
    }
  }
  ExpectFell(losses);
}

}  // namespace mpc::testing
