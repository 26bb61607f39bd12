// Layers of whole channels, samples and borders.
#include "frontend/nn/picture_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/frontend/eighths.h"
#include "tests/frontend/error_of.h"
#include "tests/frontend/temporary_folder.h"
#include "tests/training/training_support.h"

namespace mpc {
namespace {

using testing::Eighths;
using ::testing::ElementsAre;
using testing::ErrorOf;
using ::testing::HasSubstr;
using testing::Values;

/// Calls a layer in a step that trains; x and gradients of the sum of results by x.
template <typename Layer>
class Trained : public nn::TrainingStep {
 public:
  MPC_CELL(Trained, w, layer)
  Trained(Layer layer, const Shape& shape) : w(shape, Zeros()), layer(std::move(layer)) { SetTrain(); }
  std::pair<Tensor, Tensor> Construct(const Tensor& x) {
    const Tensor y = layer(w + x);
    return {y, ops::Backward(reduce_sum(y), {w})[0]};
  }
  Parameter w;
  Layer layer;
};

/// Expects groups of `size` elements that are all 0, or all x times `scale`, with that factor as gradient. Gives the
/// number of those that are 0.
int DroppedGroups(const Tensor& x, const Tensor& y, const Tensor& gradient, std::size_t size, float scale) {
  MPC_EXPECT_OK(y.status());
  if (!y.status().ok()) return -1;
  const std::vector<float> given = x.ToFloats(), result = y.ToFloats(), slope = gradient.ToFloats();
  int dropped = 0;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const float factor = slope[i / size * size];
    EXPECT_TRUE(factor == 0 || factor == scale) << factor;
    EXPECT_EQ(slope[i], factor) << i;
    EXPECT_EQ(result[i], given[i] * factor) << i;
    if (i % size == 0 && factor == 0) ++dropped;
  }
  return dropped;
}

TEST(Dropout2d, DropsWholeChannels) {
  SetSeed(5);
  const Shape shape = {64, 16, 2, 3};
  Trained<nn::Dropout2d> step(nn::Dropout2d({.p = 0.25}), shape);
  const Tensor x = Values(shape);
  const auto [first, first_gradient] = step(x);
  // 1,024 draws of 0.25: five deviations are 5 * sqrt(1024 * 3 / 16) = 69.
  EXPECT_NEAR(DroppedGroups(x, first, first_gradient, 6, 1 / 0.75f), 256, 69);
  const auto [second, second_gradient] = step(x);
  EXPECT_NEAR(DroppedGroups(x, second, second_gradient, 6, 1 / 0.75f), 256, 69);
  EXPECT_NE(first.ToFloats(), second.ToFloats());
  nn::Dropout2d outside;
  EXPECT_EQ(outside(x).ToFloats(), x.ToFloats());
  EXPECT_THAT(ErrorOf(outside(Values({2, 3}))),
              HasSubstr("Dropout2d expects images [N, C, H, W], got tensor<2x3xf32>"));
  Trained<nn::Dropout2d> refused(nn::Dropout2d({.p = 1}), shape);
  EXPECT_THAT(ErrorOf(refused(x).first), HasSubstr("takes a probability p in [0, 1), got 1"));
}

TEST(DropPath, DropsWholeSamples) {
  SetSeed(5);
  const Shape shape = {1024, 4};
  Trained<nn::DropPath> step(nn::DropPath(0.5), shape);
  const Tensor x = Values(shape);
  const auto [y, gradient] = step(x);
  EXPECT_NEAR(DroppedGroups(x, y, gradient, 4, 2), 512, 80);
  EXPECT_EQ(nn::DropPath(0.5)(x).ToFloats(), x.ToFloats());
  EXPECT_THAT(ErrorOf(nn::DropPath(0.5)(Tensor::Scalar(1.0f))), HasSubstr("DropPath expects samples [N, ...]"));
}

/// A picture network with both.
class Dropping : public nn::Cell {
 public:
  MPC_CELL(Dropping, conv, channels, path, dense)
  Tensor Construct(const Tensor& x) {
    const Tensor y = channels(conv(x));
    return dense(flatten(y + path(relu(y))));
  }
  nn::Conv2d conv{1, 4, 3};
  nn::Dropout2d channels{{.p = 0.25}};
  nn::DropPath path{0.5};
  nn::Dense dense{64, 2};
};

struct DroppingRun {
  explicit DroppingRun(const char* level) {
    SetSeed(7);
    net = std::make_unique<Dropping>();
    opt = std::make_unique<nn::Momentum>(net->TrainableParams(), nn::MomentumOptions{.learning_rate = 0.05});
    model = std::make_unique<Model>(*net, loss, *opt, ModelOptions{.amp_level = level});
  }
  std::vector<float> Weights() const { return net->dense.weight.Value()->ToFloats(); }

  std::unique_ptr<Dropping> net;
  nn::MSELoss loss;
  std::unique_ptr<nn::Momentum> opt;
  std::unique_ptr<Model> model;
};

data::Dataset Pictures() {
  std::vector<data::Row> rows;
  for (std::int64_t i = 0; i < 16; ++i) rows.push_back({Values({1, 4, 4}, i), Values({2}, 100 + i)});
  return data::GeneratorDataset(rows, {"x", "label"}).Batch(8);
}

TEST(DroppingLayers, AResumedRunDrawsWhatItWouldHaveDrawn) {
  const testing::TemporaryFolder folder;
  const std::string path = folder / "half";
  for (const char* level : {"O0", "O2"}) {
    DroppingRun whole(level);
    MPC_ASSERT_OK(whole.model->Train(2, Pictures()));
    MPC_ASSERT_OK(whole.model->SaveCheckpoint(path));
    MPC_ASSERT_OK(whole.model->Train(2, Pictures()));
    DroppingRun resumed(level);
    const auto report = resumed.model->LoadCheckpoint(path);
    ASSERT_TRUE(report.ok()) << report.status();
    MPC_ASSERT_OK(resumed.model->Train(4, Pictures()));
    EXPECT_EQ(resumed.Weights(), whole.Weights()) << level;
    EXPECT_TRUE(resumed.model->Eval(Pictures()).ok());
  }
}

TEST(PaddingLayers, ArePyTorchs) {
  const Tensor x = Tensor::From({1.0f, 2.0f, 3.0f, 4.0f}, {1, 1, 2, 2});
  const Tensor y = nn::ConstantPad2d({1, 2, 0, 1}, -0.5)(x);
  EXPECT_EQ(y.shape(), Shape({1, 1, 3, 5}));
  EXPECT_THAT(y.ToFloats(), ElementsAre(-0.5, 1, 2, -0.5, -0.5, -0.5, 3, 4, -0.5, -0.5, -0.5, -0.5, -0.5, -0.5, -0.5));
  const Tensor zeros = nn::ZeroPad2d({1})(reshape(x, {2, 2}));
  EXPECT_EQ(zeros.shape(), Shape({4, 4}));
  EXPECT_THAT(zeros.ToFloats(), ElementsAre(0, 0, 0, 0, 0, 1, 2, 0, 0, 3, 4, 0, 0, 0, 0, 0));
  EXPECT_THAT(ErrorOf(nn::ZeroPad2d({1, 2})(x)),
              HasSubstr("ZeroPad2d takes [..., H, W] and a padding of 1 or 4 counts of 0 or more: left, right, top, "
                        "bottom. Got tensor<1x1x2x2xf32> and [1, 2]"));
  EXPECT_THAT(ErrorOf(nn::ConstantPad2d({-1}, 0)(x)), HasSubstr("and [-1]"));
  EXPECT_THAT(ErrorOf(nn::ZeroPad2d({1})(Values({3}))), HasSubstr("Got tensor<3xf32>"));
}

}  // namespace
}  // namespace mpc
