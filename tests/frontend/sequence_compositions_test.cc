// Elman's recurrent layers and the transposed convolution of sequences. Expected numbers are those of PyTorch 2.15 in
// f64.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "frontend/nn/composed_layers.h"
#include "frontend/nn/recurrent_layers.h"
#include "tests/frontend/eighths.h"
#include "tests/frontend/error_of.h"
#include "tests/frontend/numeric_gradient.h"

namespace mpc {
namespace {

using testing::Eighths;
using ::testing::ElementsAre;
using testing::ErrorOf;
using testing::ExpectGradient;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using testing::Values;

// Sums of at most 8 products below 1, and a tanh whose derivative is at most 1: fewer than 32 roundings a layer.
constexpr float kElmanTolerance = 0x1p-17f;

/// Gives Parameter i of a cell Eighths(i), as the reference does.
void FillInOrder(nn::Cell& cell) {
  std::int64_t i = 0;
  for (auto& [name, parameter] : cell.ParametersAndNames())
    MPC_ASSERT_OK(parameter.SetData(Eighths(i++, parameter.shape())));
}

struct ElmanCase {
  const char* nonlinearity;
  std::vector<float> output, state, output_from, state_from;
};

TEST(Rnn, IsPyTorchs) {
  const ElmanCase cases[] = {
      {"tanh",
       {0.816363471f,  -0.121949568f, -0.884300802f, 0.109450671f,   0.830634843f,  -0.505846365f,
        -0.942299469f, 0.120064054f,  0.96773432f,   -0.687657895f,  -0.869808353f, -0.640220013f,
        0.945789603f,  -0.852394073f, -0.509908462f, -0.0931988072f, 0.950641608f,  -0.929067914f,
        -0.939324132f, 0.699977831f,  0.969599203f,  -0.62495766f,   -0.974416326f, 0.219257566f},
       {0.214642585f, 0.755540984f, -0.864214546f, 0.145820804f, 0.735279467f, 0.963343601f, 0.117098179f, 0.71929833f,
        0.950641608f, -0.929067914f, 0.969599203f, -0.62495766f, -0.884300802f, 0.109450671f, -0.942299469f,
        0.120064054f},
       {0.794157188f,  0.0333211677f, -0.842448038f, -0.108550677f, 0.869268129f,  -0.634033519f,
        -0.883031197f, -0.168922323f, 0.950790883f,  -0.628137154f, -0.891372478f, -0.635401892f,
        0.933945771f,  -0.849959405f, -0.62209877f,  -0.121969756f, 0.946704787f,  -0.947541358f,
        -0.973380721f, 0.888805688f,  0.974822829f,  -0.558727281f, -0.973031198f, 0.50833619f},
       {0.235977424f, 0.717718078f, -0.841091595f, -0.00934262225f, 0.744192409f, 0.964661804f, 0.0975030973f,
        0.7210585f, 0.946704787f, -0.947541358f, 0.974822829f, -0.558727281f, -0.842448038f, -0.108550677f,
        -0.883031197f, -0.168922323f}},
      {"relu",
       {1.80285645f, 0, 0, 0.340270996f, 1.37652588f, 0, 0, 0.00848388672f, 2.27470398f, 0, 0, 0,
        1.23201752f, 0, 0, 0.585205078f, 1.69566536f, 0, 0, 1.14154053f,    2.41903782f, 0, 0, 0.31640625f},
       {0, 1.15771484f, 0, 0, 1.09570312f, 1.95776367f, 0.188964844f, 0.714355469f, 1.69566536f, 0, 2.41903782f, 0, 0,
        0.340270996f, 0, 0.00848388672f},
       {1.67541504f, 0, 0, 0.221862793f, 1.23104858f, 0, 0, 0.0668029785f, 2.16539001f, 0, 0, 0,
        1.0624733f,  0, 0, 0.391357422f, 1.52149391f, 0, 0, 1.54418945f,   2.32616186f, 0, 0, 0.689453125f},
       {0, 1.12695312f, 0, 0, 1.09570312f, 2.03100586f, 0.104736328f, 0.70703125f, 1.52149391f, 0, 2.32616186f, 0, 0,
        0.221862793f, 0, 0.0668029785f}}};
  const Tensor x = Eighths(7, {3, 2, 3});
  for (const ElmanCase& each : cases) {
    nn::RNN layer(3, 2, {.num_layers = 2, .nonlinearity = each.nonlinearity, .bidirectional = true});
    FillInOrder(layer);
    const std::vector<Tensor> result = layer(x), from = layer(x, Eighths(3, {4, 2, 2}));
    ASSERT_EQ(result.size(), 2u);
    EXPECT_EQ(result[0].shape(), Shape({3, 2, 4}));
    EXPECT_EQ(result[1].shape(), Shape({4, 2, 2}));
    EXPECT_THAT(result[0].ToFloats(), Pointwise(FloatNear(kElmanTolerance), each.output)) << each.nonlinearity;
    EXPECT_THAT(result[1].ToFloats(), Pointwise(FloatNear(kElmanTolerance), each.state)) << each.nonlinearity;
    EXPECT_THAT(from[0].ToFloats(), Pointwise(FloatNear(kElmanTolerance), each.output_from)) << each.nonlinearity;
    EXPECT_THAT(from[1].ToFloats(), Pointwise(FloatNear(kElmanTolerance), each.state_from)) << each.nonlinearity;
  }
}

TEST(Rnn, HasPyTorchsNamesAndSamplesFirst) {
  nn::RNN layer(3, 2), samples_first(3, 2, {.batch_first = true});
  std::vector<std::string> names;
  for (const auto& [name, parameter] : layer.ParametersAndNames()) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"));
  FillInOrder(layer);
  FillInOrder(samples_first);
  const Tensor x = Eighths(7, {3, 2, 3});
  EXPECT_EQ(transpose(samples_first(transpose(x, {1, 0, 2}))[0], {1, 0, 2}).ToFloats(), layer(x)[0].ToFloats());
  EXPECT_EQ(nn::RNN(3, 2, {.has_bias = false}).TrainableParams().size(), 2u);
  ExpectGradient([&](const Tensor& x) { return layer(x)[0]; }, x, 2e-3f, &layer);
  EXPECT_THAT(ErrorOf(nn::RNN(3, 2, {.nonlinearity = "gelu"})(x)[0]),
              HasSubstr("RNN does not know the nonlinearity 'gelu'; known are tanh, relu"));
  EXPECT_THAT(ErrorOf(layer(Values({3, 2, 4}))[0]), HasSubstr("RNN expects x [T, N, 3], alone or with h [1, N, 2]"));
}

/// Eighths(2), Eighths(5), Eighths(1) and Eighths(8) in the Parameters of a cell.
void FillCell(nn::RNNCell& cell) {
  MPC_ASSERT_OK(cell.weight_ih.SetData(Eighths(2, {2, 3})));
  MPC_ASSERT_OK(cell.weight_hh.SetData(Eighths(5, {2, 2})));
  MPC_ASSERT_OK(cell.bias_ih.SetData(Eighths(1, {2})));
  MPC_ASSERT_OK(cell.bias_hh.SetData(Eighths(8, {2})));
}

TEST(RnnCell, IsPyTorchs) {
  nn::RNNCell cell(3, 2), with_relu(3, 2, {.nonlinearity = "relu"});
  FillCell(cell);
  FillCell(with_relu);
  const Tensor h = Eighths(4, {4, 2});
  EXPECT_THAT(cell(Eighths(7), h).ToFloats(),
              Pointwise(FloatNear(kElmanTolerance), {-0.302709729f, -0.170202308f, -0.509829974f, -0.644378261f,
                                                     -0.670967074f, -0.915824544f, -0.0468406979f, -0.814624443f}));
  EXPECT_THAT(with_relu(Eighths(2) * -2.0, h).ToFloats(), ElementsAre(0, 0.015625f, 0.296875f, 0, 0, 0, 0, 0));
  ExpectGradient([&](const Tensor& x) { return cell(x, h); }, Eighths(7), 2e-3f, &cell);
  ExpectGradient([&](const Tensor& h) { return cell(Eighths(7), h); }, h, 2e-3f, &cell);
  EXPECT_EQ(nn::RNNCell(3, 2, {.has_bias = false}).TrainableParams().size(), 2u);
  EXPECT_THAT(ErrorOf(cell(Values({4, 2}), h)),
              HasSubstr("RNNCell expects x [N, 3] and state h [N, 2], got tensor<4x2xf32> and tensor<4x2xf32>"));
  EXPECT_THAT(ErrorOf(cell(Tensor::Scalar(1.0f), h)), HasSubstr("RNNCell expects x [N, 3]"));
  EXPECT_THAT(ErrorOf(nn::RNNCell(3, 2, {.nonlinearity = "Tanh"})(Eighths(7), h)),
              HasSubstr("RNNCell does not know the nonlinearity 'Tanh'"));
}

TEST(Conv1dTranspose, IsPyTorchs) {
  const struct {
    nn::Conv1dTransposeOptions options;
    std::vector<float> expected;
  } cases[] = {{{.pad_mode = "valid", .has_bias = true},
                {-0.265625f, -0.34375f, -0.6875f,   0.296875f, -1.328125f, -0.15625f, 0,         -0.9375f,
                 0.40625f,   0.5f,      -0.671875f, 0.4375f,   0.46875f,   -0.3125f,  1.09375f,  1.3125f,
                 -0.015625f, 1.03125f,  -0.6875f,   -0.09375f, 0.15625f,   -1.53125f, 0.234375f, -0.609375f}},
               {{.stride = 2, .pad_mode = "pad", .padding = {1}, .output_padding = 1, .has_bias = true},
                {-0.859375f, 0.484375f,  -0.9375f,   -0.6875f,  -0.40625f, -0.640625f, -0.890625f, -0.15625f,
                 -0.390625f, -0.109375f, -0.15625f,  0.5625f,   0.28125f,  -0.59375f,  -0.296875f, 0.4375f,
                 0.078125f,  0.515625f,  0.625f,     1.40625f,  0.96875f,  0.0625f,    0.296875f,  1.03125f,
                 0.140625f,  -0.6875f,   -0.015625f, -0.59375f, -0.78125f, -0.5f,      0.078125f,  -0.609375f}},
               {{.stride = 2, .pad_mode = "valid", .dilation = 2, .group = 2, .has_bias = true},
                {-0.34375f, -0.625f,   -0.765625f, -0.625f,    -0.28125f,  -0.625f,    -0.21875f,  -0.625f, -1.125f,
                 -0.625f,   -0.25f,    0.09375f,   0,          -0.359375f, 0,          0.25f,      0,       0.375f,
                 0,         -0.5f,     0,          0.25f,      0.640625f,  0.625f,     0.8125f,    0.625f,  1.125f,
                 0.625f,    0.296875f, 0.625f,     0.96875f,   0.625f,     0.53125f,   -0.328125f, -0.375f, -0.171875f,
                 -0.375f,   -0.9375f,  -0.375f,    -0.078125f, -0.375f,    -0.609375f, -0.375f,    -0.375f}}};
  const Tensor x = Eighths(0, {1, 2, 4});
  for (const auto& [options, expected] : cases) {
    nn::Conv1dTranspose layer(2, 4, 3, options);
    ASSERT_EQ(layer.weight.shape(), Shape({2, 4 / options.group, 3}));
    MPC_ASSERT_OK(layer.weight.SetData(Eighths(3, layer.weight.shape())));
    MPC_ASSERT_OK(layer.bias.SetData(Eighths(1, {4})));
    EXPECT_EQ(layer(x).ToFloats(), expected);
    ExpectGradient([&](const Tensor& x) { return layer(x); }, x, 2e-3f, &layer);
  }
  nn::Conv1dTranspose same(2, 4, 3, {.stride = 2});
  EXPECT_EQ(same(x).shape(), Shape({1, 4, 8}));
  EXPECT_EQ(same.TrainableParams().size(), 1u);
}

TEST(Conv1dTranspose, RefusesByName) {
  nn::Conv1dTranspose layer(2, 4, 3);
  EXPECT_THAT(
      ErrorOf(layer(Values({1, 3, 4}))),
      HasSubstr("Conv1dTranspose expects sequences [N, C, L] with 2 channels and a padding of one or two values, "
                "got tensor<1x3x4xf32> and 2 values"));
  EXPECT_THAT(ErrorOf(nn::Conv1dTranspose(2, 4, 3, {.padding = {1, 2, 3}})(Values({1, 2, 4}))),
              HasSubstr("and 3 values"));
  EXPECT_THAT(ErrorOf(nn::Conv1dTranspose(4, 5, 3, {.group = 2})(Values({1, 4, 4}))),
              HasSubstr("Conv1dTranspose: group must divide the 4 input and 5 output channels, got 2"));
  EXPECT_THAT(ErrorOf(nn::Conv2dTranspose(4, 5, 3, {.group = 2})(Values({1, 4, 4, 4}))),
              HasSubstr("Conv2dTranspose: group must divide the 4 input and 5 output channels, got 2"));
  EXPECT_NE(ErrorOf(nn::Conv1dTranspose(2, 4, 3, {.pad_mode = "full"})(Values({1, 2, 4}))), "");
}

}  // namespace
}  // namespace mpc
