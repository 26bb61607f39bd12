// Recurrent layers on padded sequences. Expected numbers are those of packed sequences of PyTorch 2.15 in f64.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "frontend/nn/recurrent_layers.h"
#include "tests/frontend/eighths.h"
#include "tests/frontend/error_of.h"
#include "tests/frontend/numeric_gradient.h"

namespace mpc {
namespace {

using ::testing::Each;
using testing::Eighths;
using testing::ErrorOf;
using testing::ExpectGradient;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using testing::kNan;
using ::testing::Pointwise;
using testing::Values;

// Sums of at most 8 products below 1 and functions with a derivative of at most 1: fewer than 64 roundings.
constexpr float kPackedTolerance = 0x1p-17f;

const Tensor kLengths = Tensor::From<std::int32_t>({2, 4, 1}, {3});

/// Gives Parameter i of a layer Eighths(i), as the reference does.
void GiveEighths(nn::Cell& cell) {
  std::int64_t i = 0;
  for (auto& [name, parameter] : cell.ParametersAndNames()) {
    MPC_ASSERT_OK(parameter.SetData(Eighths(i++, parameter.shape())));
  }
}

/// Expects tensors of these numbers.
void ExpectAll(const std::vector<Tensor>& results, const std::vector<std::vector<float>>& expected) {
  ASSERT_EQ(results.size(), expected.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_THAT(results[i].ToFloats(), Pointwise(FloatNear(kPackedTolerance), expected[i])) << i;
  }
}

/// Two layers, both ways, on sequences of 2, 4 and 1 steps.
template <typename Layer>
Layer Bidirectional() {
  Layer layer(3, 1, {.num_layers = 2, .bidirectional = true});
  GiveEighths(layer);
  return layer;
}

TEST(SequenceLengths, OfAnRnnArePyTorchs) {
  auto layer = Bidirectional<nn::RNN>();
  const Tensor x = Eighths(7, {4, 3, 3});
  ExpectAll(layer(x, kLengths),
            {{0.500111182f,
              -0.88072317f,
              0.786874856f,
              -0.909969776f,
              0.81986587f,
              -0.930813503f,
              0.897180687f,
              -0.654756708f,
              0.924817132f,
              -0.195461167f,
              0,
              0,
              0,
              0,
              0.875204727f,
              -0.843850815f,
              0,
              0,
              0,
              0,
              0.927102648f,
              -0.658639118f,
              0,
              0},
             {0.43961316f, 0.409811348f, -0.824872321f, 0.490793499f, -0.181730221f, -0.316835001f, 0.897180687f,
              0.927102648f, 0.81986587f, -0.88072317f, -0.909969776f, -0.930813503f}});
  ExpectAll(layer(x, Eighths(3, {4, 3, 1}), kLengths.To(DType::kI64)),
            {{0.550844296f,
              -0.834273691f,
              0.869616277f,
              -0.924068678f,
              0.791085119f,
              -0.907800078f,
              0.896375666f,
              -0.801587651f,
              0.930225573f,
              -0.128391969f,
              0,
              0,
              0,
              0,
              0.874064455f,
              -0.907365762f,
              0,
              0,
              0,
              0,
              0.933316075f,
              -0.295366021f,
              0,
              0},
             {0.393869293f, 0.412352507f, -0.606347593f, 0.489311714f, -0.181619006f, -0.259549215f, 0.896375666f,
              0.933316075f, 0.791085119f, -0.834273691f, -0.924068678f, -0.907800078f}});
}

TEST(SequenceLengths, OfAGruArePyTorchs) {
  auto layer = Bidirectional<nn::GRU>();
  const Tensor x = Eighths(7, {4, 3, 3});
  ExpectAll(layer(x, kLengths),
            {{0.094313846f,
              0.410937294f,
              0.177201601f,
              0.573640694f,
              0.197391162f,
              0.306841746f,
              0.126486252f,
              0.267264286f,
              0.221821751f,
              0.518016845f,
              0,
              0,
              0,
              0,
              0.211336326f,
              0.447279326f,
              0,
              0,
              0,
              0,
              0.199552691f,
              0.268738162f,
              0,
              0},
             {0.334215549f, 0.214676297f, 0.0534428486f, -0.224621612f, -0.106357159f, -0.0190432875f, 0.126486252f,
              0.199552691f, 0.197391162f, 0.410937294f, 0.573640694f, 0.306841746f}});
  ExpectAll(layer(x, Eighths(3, {4, 3, 1}), kLengths),
            {{0.204487158f,
              0.510822699f,
              0.309994997f,
              0.598413063f,
              0.247949191f,
              0.235418076f,
              0.217312096f,
              0.470373341f,
              0.224800089f,
              0.513558832f,
              0,
              0,
              0,
              0,
              0.202226148f,
              0.361332757f,
              0,
              0,
              0,
              0,
              0.20046942f,
              0.00901122417f,
              0,
              0},
             {0.142866694f, 0.283670395f, -0.460714436f, -0.307152734f, 0.0352253718f, -0.334946768f, 0.217312096f,
              0.20046942f, 0.247949191f, 0.510822699f, 0.598413063f, 0.235418076f}});
}

TEST(SequenceLengths, OfAnLstmArePyTorchs) {
  auto layer = Bidirectional<nn::LSTM>();
  const Tensor x = Eighths(7, {4, 3, 3});
  ExpectAll(layer(x, kLengths),
            {{0.124150595f,
              0.104141964f,
              0.134434405f,
              0.127065909f,
              0.13530767f,
              0.0725801984f,
              0.168212277f,
              0.0719387971f,
              0.178966688f,
              0.117803383f,
              0,
              0,
              0,
              0,
              0.191185055f,
              0.10293346f,
              0,
              0,
              0,
              0,
              0.197043799f,
              0.0698356408f,
              0,
              0},
             {0.000103249678f, -0.0944258014f, -0.0331307793f, -0.364351224f, -0.212681359f, -0.0683923782f,
              0.168212277f, 0.197043799f, 0.13530767f, 0.104141964f, 0.127065909f, 0.0725801984f},
             {0.000302824003f, -0.270758875f, -0.100392715f, -0.767955747f, -0.291996506f, -0.0901564729f, 0.328193089f,
              0.395446879f, 0.278663909f, 0.341896799f, 0.411899574f, 0.211930049f}});
  ExpectAll(layer(x, Eighths(3, {4, 3, 1}), Eighths(9, {4, 3, 1}), kLengths),
            {{0.0133415114f,
              0.0630120904f,
              0.171283955f,
              0.128447864f,
              0.189522699f,
              0.190258842f,
              0.131071933f,
              -0.0217498267f,
              0.189373894f,
              0.123859776f,
              0,
              0,
              0,
              0,
              0.197221552f,
              0.114854175f,
              0,
              0,
              0,
              0,
              0.200232856f,
              0.122763206f,
              0,
              0},
             {0.050963585f, -0.135359322f, -0.0935163485f, -0.206270852f, -0.259622224f, 0.137661372f, 0.131071933f,
              0.200232856f, 0.189522699f, 0.0630120904f, 0.128447864f, 0.190258842f},
             {0.154302682f, -0.394098024f, -0.240652271f, -0.377083104f, -0.362302993f, 0.185883912f, 0.2651708f,
              0.399407842f, 0.466685959f, 0.194919072f, 0.412243983f, 0.578878169f}});
}

/// The gradient of the sum of an output by weight_ih_l0 and by x.
class PackedGradient : public nn::TrainingStep {
 public:
  MPC_CELL(PackedGradient, w, layer)
  PackedGradient() : w({4, 3, 3}, Zeros()) { SetTrain(); }
  std::vector<Tensor> Construct(const Tensor& x, const Tensor& lengths) {
    const Tensor loss = reduce_sum(layer(x + w, lengths)[0]);
    return ops::Backward(loss, {w, *layer.GetParameter("weight_ih_l0")});
  }
  Parameter w;
  nn::GRU layer{3, 2, {.bidirectional = true}};
};

TEST(SequenceLengths, WhatIsNotReadReachesNothing) {
  std::vector<float> values = Eighths(7, {4, 3, 3}).ToFloats();
  PackedGradient step;
  const std::vector<Tensor> before = step(Tensor::From(values, {4, 3, 3}), kLengths);
  // Steps 2 and 3 of sample 0, and 1 to 3 of sample 2.
  const auto pad = [&](std::size_t t, std::size_t n) {
    for (std::size_t i = 0; i < 3; ++i) values[(t * 3 + n) * 3 + i] = kNan;
  };
  for (std::size_t t = 2; t < 4; ++t) pad(t, 0);
  for (std::size_t t = 1; t < 4; ++t) pad(t, 2);
  const Tensor padded = Tensor::From(values, {4, 3, 3});
  const std::vector<Tensor> after = step(padded, kLengths);
  ASSERT_EQ(after.size(), 2u);
  EXPECT_EQ(after[0].ToFloats(), before[0].ToFloats());
  EXPECT_EQ(after[1].ToFloats(), before[1].ToFloats());
  EXPECT_THAT(after[1].ToFloats(), Each(::testing::Ne(0)));
  const std::vector<float> of_x = after[0].ToFloats();
  EXPECT_EQ(of_x[(2 * 3 + 0) * 3], 0);
  EXPECT_NE(of_x[(3 * 3 + 1) * 3], 0);
}

TEST(SequenceLengths, OfAllStepsChangeNothing) {
  nn::LSTM layer(3, 2, {.batch_first = true, .bidirectional = true});
  const Tensor x = Eighths(7, {3, 4, 3});
  const std::vector<Tensor> plain = layer(x), whole = layer(x, Tensor::From<std::int64_t>({4, 9, 4}, {3}));
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_EQ(whole[i].ToFloats(), plain[i].ToFloats());
  // Samples without a step keep the first states.
  const std::vector<Tensor> none = layer(x, Tensor::From<std::int64_t>({0, -1, 0}, {3}));
  for (const Tensor& each : none) EXPECT_THAT(each.ToFloats(), Each(0));
  ExpectGradient([&](const Tensor& x) { return layer(x, kLengths)[0]; }, x, 2e-3f, &layer);
}

TEST(SequenceLengths, AreRefusedByName) {
  nn::GRU layer(3, 2);
  const Tensor x = Eighths(7, {4, 3, 3});
  EXPECT_THAT(ErrorOf(layer(x, Tensor::From<std::int32_t>({1, 2}, {2}))[0]),
              HasSubstr("GRU expects x [T, N, 3], alone or with h [1, N, 2] and lengths [N] behind them, got "
                        "tensor<4x3x3xf32>, tensor<2xi32>"));
  EXPECT_THAT(ErrorOf(layer(x, Values({3}))[0]), HasSubstr("got tensor<4x3x3xf32>, tensor<3xf32>"));
  EXPECT_THAT(ErrorOf(layer(x, kLengths, Values({1, 3, 2}))[0]), HasSubstr("GRU expects x [T, N, 3]"));
  EXPECT_NE(ErrorOf(layer(x.To(DType::kI32))[0]), "");
}

}  // namespace
}  // namespace mpc
