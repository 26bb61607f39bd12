// Data and callbacks for tests that stop and resume.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/training/training_support.h"

namespace mpc::testing {

/// Saves after step number `step` of the callback's life, micro-steps included.
class SaveAt : public Callback {
 public:
  SaveAt(std::int64_t step, std::string path) : step_(step), path_(std::move(path)) {}
  void OnStepEnd(RunContext& context) override {
    if (--step_ == 0) context.Fail(context.SaveCheckpoint(path_));
  }

 private:
  std::int64_t step_;
  std::string path_;
};

/// Ends the run with an error after a step, as a crash would.
class FailAt : public Callback {
 public:
  explicit FailAt(std::int64_t step) : step_(step) {}
  void OnStepEnd(RunContext& context) override {
    if (context.global_step == step_) context.Fail(absl::InternalError("power"));
  }

 private:
  std::int64_t step_;
};

/// Epochs of `steps` batches for ConvNorm in a new order each, changed by where they stand; row `bad` of the first
/// epoch overflows.
inline data::Dataset ShuffledBatches(std::int64_t steps, std::int64_t bad = -1) {
  std::vector<data::Row> batches;
  for (std::int64_t i = 0; i < steps; ++i) batches.push_back(MakeBatch({2, 6, 6}, 8, i));
  return Batches(std::move(batches))
      .Shuffle(3)
      .Map(
          [bad](const Tensor& images, const data::RowPosition& position) {
            std::vector<float> values = images.ToFloats();
            for (float& value : values) value += 0.01f * static_cast<float>(position.epoch + position.row);
            if (position.epoch == 0 && position.row == bad) values[0] = kInfinity;
            return Tensor::From(values, images.shape());
          },
          "data");
}

}  // namespace mpc::testing
