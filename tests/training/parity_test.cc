// LeNet-5 and the BatchNorm net follow PyTorch from equal weights and batches. tools/parity/make_torch_goldens.py made
// the golden losses and documents the formulas repeated here.
#include <cmath>
#include <fstream>

#include "models/bnnet.h"
#include "models/lenet5.h"
#include "tests/training/training_support.h"

namespace mpc::testing {
namespace {

constexpr std::int64_t kBatch = 16;
constexpr std::int64_t kSteps = 100;

double Uniform(std::uint32_t stream, std::uint32_t index) {
  std::uint32_t h = index + stream * 1000003u;
  h ^= h >> 16;
  h *= 0x7FEB352Du;
  h ^= h >> 15;
  h *= 0x846CA68Bu;
  h ^= h >> 16;
  return h / 4294967296.0;
}

// Position counts the trained parameters, as in PyTorch; rank-1 parameters are gammas, betas and biases.
void SetWeights(nn::Cell& net) {
  std::uint32_t position = 0;
  for (Parameter& parameter : net.TrainableParams()) {
    const Shape& shape = parameter.shape();
    const std::int64_t size = NumElements(shape);
    std::vector<float> values(static_cast<std::size_t>(size));
    const bool gamma = parameter.name().find("gamma") != std::string::npos;
    const double fan_in = static_cast<double>(size) / static_cast<double>(shape[0]);
    for (std::int64_t i = 0; i < size; ++i) {
      values[static_cast<std::size_t>(i)] =
          shape.size() == 1
              ? (gamma ? 1.0f : 0.0f)
              : static_cast<float>((2.0 * Uniform(position, static_cast<std::uint32_t>(i)) - 1.0) / std::sqrt(fan_in));
    }
    MPC_ASSERT_OK(parameter.SetData(Tensor::From(values, shape)));
    ++position;
  }
}

data::Row Batch(std::int64_t step) {
  std::vector<float> images;
  std::vector<std::int32_t> labels;
  for (std::int64_t row = step * kBatch; row < (step + 1) * kBatch; ++row) {
    const auto label = static_cast<std::int32_t>(Uniform(1000, static_cast<std::uint32_t>(row)) * 10);
    labels.push_back(label);
    for (int y = 0; y < 32; ++y) {
      for (int x = 0; x < 32; ++x) {
        const double noise = Uniform(2000, static_cast<std::uint32_t>(row * 1024 + y * 32 + x));
        images.push_back(
            static_cast<float>(std::sin(0.07 * (label + 1.0) * y + 0.05 * (10.0 - label) * x) + noise - 0.5));
      }
    }
  }
  return {Tensor::From(images, {kBatch, 1, 32, 32}), Tensor::From(labels, {kBatch})};
}

std::vector<double> GoldenLosses(const std::string& name) {
  std::ifstream file(std::string(MPC_GOLDENS) + "/" + name + "_losses.txt");
  std::vector<double> losses;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') losses.push_back(std::stod(line));
  }
  return losses;
}

template <typename Network>
void ExpectFollowsPyTorch(const std::string& name, double learning_rate) {
  const std::vector<double> golden = GoldenLosses(name);
  ASSERT_EQ(golden.size(), kSteps + 1);
  Network net;
  SetWeights(net);
  nn::SoftmaxCrossEntropyWithLogits loss({.sparse = true, .reduction = "mean"});
  nn::SGD optimizer(net.TrainableParams(), {.learning_rate = learning_rate, .momentum = 0.9});
  Model model(net, loss, optimizer, {.metrics = {"loss"}});
  std::vector<data::Row> batches;
  for (std::int64_t step = 0; step < kSteps; ++step) batches.push_back(Batch(step));
  LossRecorder recorder;
  MPC_ASSERT_OK(model.Train(1, Batches(batches), {recorder}));
  ASSERT_EQ(recorder.losses.size(), kSteps);
  for (std::size_t step = 0; step < kSteps; ++step) {
    EXPECT_NEAR(recorder.losses[step], golden[step], 1e-4 * golden[step]) << "step " << step;
  }
  absl::StatusOr<std::map<std::string, double>> evaluated = model.Eval(Batches({Batch(0)}));
  ASSERT_TRUE(evaluated.ok()) << evaluated.status();
  EXPECT_NEAR(evaluated->at("loss"), golden.back(), 1e-4 * golden.back()) << "with the running statistics";
}

TEST(PyTorchParity, LeNet5) { ExpectFollowsPyTorch<models::LeNet5>("lenet5", 0.01); }
// With larger steps its pools' choices between nearly equal pixels grow: see tools/parity/make_torch_goldens.py.
TEST(PyTorchParity, BatchNormNet) { ExpectFollowsPyTorch<models::BnNet>("bnnet", 0.002); }

}  // namespace
}  // namespace mpc::testing
