// Layers made of operations that exist: instance normalisation, 1-D convolution, pooling to a given size.
#include "frontend/nn/composed_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "frontend/graph/compiled_step.h"
#include "frontend/graph/einsum.h"
#include "frontend/nn/sequence_layers.h"
#include "tests/frontend/error_of.h"
#include "tests/frontend/numeric_gradient.h"
#include "tests/training/traced_ir.h"

namespace mpc {
namespace {

using testing::DistinctValues;
using ::testing::ElementsAre;
using testing::ErrorOf;
using testing::ExpectGradient;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using testing::Values;

TEST(InstanceNorm2d, NormalisesEachChannelOfEachSample) {
  nn::InstanceNorm2d norm(2, {.gamma_init = Constant(2), .beta_init = Constant(1)});
  EXPECT_EQ(norm.gamma.shape(), Shape({2}));
  EXPECT_THAT(norm(Tensor::From({1.0f, 3.0f, 10.0f, 30.0f}, {1, 2, 1, 2})).ToFloats(),
              Pointwise(FloatNear(1e-4f), {-1.0f, 3.0f, -1.0f, 3.0f}));
  EXPECT_EQ(nn::InstanceNorm2d(2, {.affine = false}).TrainableParams().size(), 0u);
  EXPECT_THAT(ErrorOf(norm(Values({1, 3, 2, 2}))), HasSubstr("InstanceNorm2d expects a rank-4 tensor with 2 channels"));
}

TEST(Norms, RefuseAnEpsilonBelowZeroOrNotFinite) {
  const Tensor x = Values({1, 4, 2, 2});
  for (const auto& [epsilon, text] : {std::pair(-1.0, "-1"), std::pair(-1e-60, "-1e-60"), std::pair(1e39, "1e+39")}) {
    const auto takes = [text = text](const char* name) {
      return HasSubstr(absl::StrCat(name, " takes an epsilon that is at least 0 and finite in f32, got ", text));
    };
    EXPECT_THAT(ErrorOf(nn::LayerNorm({2}, {.epsilon = epsilon})(x)), takes("layer_norm"));
    EXPECT_THAT(ErrorOf(nn::GroupNorm(2, 4, {.eps = epsilon})(x)), takes("group_norm"));
    EXPECT_THAT(ErrorOf(nn::InstanceNorm2d(4, {.eps = epsilon})(x)), takes("group_norm"));
    EXPECT_THAT(ErrorOf(nn::RMSNorm(2, epsilon)(x)), takes("rms_norm"));
  }
  EXPECT_THAT(ErrorOf(nn::RMSNorm(2, std::nan(""))(x)), HasSubstr("rms_norm takes an epsilon"));
  EXPECT_THAT(ErrorOf(nn::LayerNorm({2}, {.epsilon = 1e-50})(x)), HasSubstr("got 1e-50, in whose place f32 holds 0"));
  EXPECT_EQ(ErrorOf(nn::LayerNorm({2}, {.epsilon = 0})(x)), "");
}

// The values are those of PyTorch's layers, whose padding is one value for both sides.
TEST(Pooling1d, DefaultsAndWindows) {
  const Tensor x = Tensor::From({1.0f, 5.0f, 2.0f, 4.0f, 3.0f}, {1, 1, 5});
  EXPECT_EQ(nn::MaxPool1d()(x).ToFloats(), x.ToFloats()) << "kernel 1, stride 1";
  EXPECT_EQ(nn::AvgPool1d()(x).ToFloats(), x.ToFloats()) << "kernel 1, stride 1";
  EXPECT_THAT(nn::MaxPool1d({.kernel_size = 3})(x).ToFloats(), ElementsAre(5, 5, 4));
  EXPECT_THAT(nn::AvgPool1d({.kernel_size = 2, .stride = 2})(x).ToFloats(), ElementsAre(3, 3));
  const nn::Pool1dOptions padded{.kernel_size = 2, .stride = 2, .pad_mode = "pad", .padding = {1}};
  EXPECT_THAT(nn::MaxPool1d(padded)(x).ToFloats(), ElementsAre(1, 5, 4)) << "the padding never wins";
  EXPECT_THAT(nn::AvgPool1d(padded)(x).ToFloats(), ElementsAre(0.5, 3.5, 3.5));
  nn::Pool1dOptions valid_only = padded;
  valid_only.count_include_pad = false;
  EXPECT_THAT(nn::AvgPool1d(valid_only)(x).ToFloats(), ElementsAre(1, 3.5, 3.5));
}

TEST(Pooling1d, PaddingOfEachSideErrorsAndGradients) {
  const Tensor x = Tensor::From({1.0f, 5.0f, 2.0f, 4.0f, 3.0f}, {1, 1, 5});
  nn::AvgPool1d left({.kernel_size = 2, .stride = 2, .pad_mode = "pad", .padding = {1, 0}});
  EXPECT_THAT(left(x).ToFloats(), ElementsAre(0.5, 3.5, 3.5));
  EXPECT_EQ(nn::MaxPool1d({.kernel_size = 2, .stride = 2, .pad_mode = "same"})(Values({2, 3, 7})).shape(),
            Shape({2, 3, 4}));
  EXPECT_THAT(ErrorOf(nn::MaxPool1d()(Values({3, 7}))), HasSubstr("max_pool1d takes sequences [N, C, L], got"));
  EXPECT_THAT(ErrorOf(nn::AvgPool1d({.padding = {1, 2, 3}})(x)), HasSubstr("takes a padding of two values"));
  nn::MaxPool1d largest({.kernel_size = 3, .stride = 2});
  ExpectGradient([&](const Tensor& x) { return largest(x); }, DistinctValues({1, 2, 7}));
  ExpectGradient([&](const Tensor& x) { return left(x); }, Values({1, 2, 7}));
}

TEST(Conv1d, DefaultsAreMindSpores) {
  nn::Conv1d conv(4, 6, 3);
  EXPECT_EQ(conv.weight.shape(), Shape({6, 4, 3}));
  EXPECT_FALSE(conv.bias.defined());
  EXPECT_EQ(conv(Values({2, 4, 9})).shape(), Shape({2, 6, 9})) << "pad_mode same";
  nn::Conv1d strided(4, 6, 3, {.stride = 2, .pad_mode = "valid", .group = 2, .has_bias = true});
  EXPECT_EQ(strided.weight.shape(), Shape({6, 2, 3}));
  EXPECT_EQ(strided(Values({2, 4, 9})).shape(), Shape({2, 6, 4}));
}

TEST(Conv1d, IsACrossCorrelation) {
  nn::Conv1d conv(1, 1, 2,
                  {.pad_mode = "pad", .padding = {2, 0}, .dilation = 2, .has_bias = true, .bias_init = Constant(0.5)});
  ASSERT_TRUE(conv.weight.SetData(Tensor::From({10.0f, 1.0f}, {1, 1, 2})).ok());
  const Tensor x = Tensor::From({1.0f, 2.0f, 3.0f, 4.0f}, {1, 1, 4});
  // y[t] = 10 x[t - 2] + x[t] + 0.5: it reads no later position.
  EXPECT_THAT(conv(x).ToFloats(), ElementsAre(1.5, 2.5, 13.5, 24.5));
}

TEST(Conv1d, HasTheDerivativesOfDifferences) {
  const Tensor x = Values({2, 4, 5}, 1), weight = Values({2, 2, 3}, 2), bias = Values({2}, 3);
  const Conv1dOpOptions options{.stride = 2, .pad_mode = "pad", .padding = {1, 2}, .group = 2};
  ExpectGradient([&](const Tensor& x) { return conv1d(x, weight, bias, options); }, x);
  ExpectGradient([&](const Tensor& weight) { return conv1d(x, weight, bias, options); }, weight);
  ExpectGradient([&](const Tensor& bias) { return conv1d(x, weight, bias, options); }, bias);
}

TEST(Conv1d, RefusesWhatDoesNotFit) {
  EXPECT_THAT(ErrorOf(nn::Conv1d(4, 6, 3)(Values({2, 3, 9}))),
              HasSubstr("Conv1d expects sequences [N, C, L] with 4 channels, got tensor<2x3x9xf32>"));
  EXPECT_THAT(ErrorOf(nn::Conv1d(4, 6, 3)(Values({4, 9}))), HasSubstr("Conv1d expects sequences [N, C, L]"));
  EXPECT_THAT(ErrorOf(nn::Conv1d(4, 6, 3, {.pad_mode = "pad", .padding = {1, 2, 3}})(Values({2, 4, 9}))),
              HasSubstr("conv1d takes a padding of two values, left and right, got 3"));
  EXPECT_THAT(ErrorOf(conv1d(Values({2, 3, 9}), Values({4, 3}))),
              HasSubstr("conv1d takes sequences [N, C, L] and a weight [O, C / group, k], got"));
}

/// Values of a channel [height, width] pooled by the definition of the windows.
std::vector<float> Pooled(const Tensor& x, std::int64_t height, std::int64_t width, bool maximum) {
  const std::vector<float> values = x.ToFloats();
  std::vector<float> result;
  for (std::int64_t channel = 0; channel < x.dim(0) * x.dim(1); ++channel) {
    for (std::int64_t i = 0; i < height; ++i) {
      for (std::int64_t j = 0; j < width; ++j) {
        double sum = 0, largest = -1e30, count = 0;
        for (std::int64_t row = i * x.dim(2) / height; row * height < (i + 1) * x.dim(2); ++row) {
          for (std::int64_t column = j * x.dim(3) / width; column * width < (j + 1) * x.dim(3); ++column) {
            const double value = values[static_cast<std::size_t>((channel * x.dim(2) + row) * x.dim(3) + column)];
            sum += value;
            largest = std::max(largest, value);
            count += 1;
          }
        }
        result.push_back(static_cast<float>(maximum ? largest : sum / count));
      }
    }
  }
  return result;
}

TEST(AdaptivePooling, HasTheWindowsOfItsDefinition) {
  const Tensor x = Values({2, 3, 6, 10});
  // Sizes that divide the extents, that share a factor with them, that share none, and larger ones.
  for (const auto& [height, width] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {3, 5}, {1, 1}, {6, 10}, {4, 4}, {5, 7}, {3, 4}, {6, 3}, {9, 20}, {7, 1}}) {
    EXPECT_THAT(nn::AdaptiveAvgPool2d({height, width})(x).ToFloats(),
                Pointwise(FloatNear(1e-6f), Pooled(x, height, width, /*maximum=*/false)))
        << height << " x " << width;
    const Tensor y = nn::AdaptiveMaxPool2d({height, width})(x);
    EXPECT_EQ(y.shape(), Shape({2, 3, height, width}));
    EXPECT_EQ(y.ToFloats(), Pooled(x, height, width, /*maximum=*/true)) << height << " x " << width;
  }
}

TEST(AdaptivePooling, OneSizeIsBothAndMinusOneKeepsAnExtent) {
  const Tensor x = Values({1, 1, 5, 4});
  EXPECT_EQ(nn::AdaptiveAvgPool2d(2)(x).shape(), Shape({1, 1, 2, 2}));
  EXPECT_EQ(nn::AdaptiveMaxPool2d({-1, 3})(x).shape(), Shape({1, 1, 5, 3}));
  EXPECT_THAT(ErrorOf(nn::AdaptiveAvgPool2d(0)(x)),
              HasSubstr("adaptive_avg_pool2d takes an image [N, C, H, W] and one or two sizes"));
  EXPECT_THAT(ErrorOf(adaptive_max_pool2d(x, {1, 2, 3})), HasSubstr("got tensor<1x1x5x4xf32> and sizes [1, 2, 3]"));
  EXPECT_THAT(ErrorOf(adaptive_max_pool2d(Values({5, 4}), {1})), HasSubstr("takes an image"));
  EXPECT_THAT(ErrorOf(adaptive_max_pool2d(x, {1, std::int64_t{1} << 60})),
              HasSubstr("poolings, and at most 4096 are allowed"));
}

TEST(AdaptivePooling, HasTheDerivativesOfDifferences) {
  ExpectGradient([](const Tensor& x) { return adaptive_avg_pool2d(x, {2, 4}); }, DistinctValues({1, 2, 3, 6}));
  ExpectGradient([](const Tensor& x) { return adaptive_max_pool2d(x, {2, 4}); }, DistinctValues({1, 2, 3, 6}));
}

TEST(AdaptivePooling, TheFirstOfEqualMaximaHasTheDerivative) {
  testing::GradientOfSum step([](const Tensor& x) { return adaptive_max_pool2d(x, {1, 3}); }, {1, 1, 2, 4});
  const std::vector<float> gradient = step(Tensor::Full({1, 1, 2, 4}, 1)).ToFloats();
  const std::vector<float> weights = Values({1, 1, 1, 3}, 9).ToFloats();
  // Windows of two columns begin at 0, 1 and 2.
  EXPECT_THAT(gradient, ElementsAre(weights[0], weights[1], weights[2], 0, 0, 0, 0, 0));
}

/// [N, 4, L] -> [N, L, 4] by the kinds of products that the front end composes.
class Products : public nn::Cell {
 public:
  MPC_CELL(Products, line, attention)
  Tensor Construct(Tensor x) {
    const Tensor y = einsum("ncl->nlc", {line(x)});
    const Tensor z = einsum("nts,nsc->ntc", {einsum("ntc,nsc->nts", {y, y}), y});
    return attention(y, z, z);
  }
  nn::Conv1d line{4, 4, 3};
  nn::MultiheadAttention attention{4, 2};
};

/// The IR of `network` on [2, 4, 6] at O1 in bf16, after all passes.
template <typename Network>
std::string IrAtO1(Network& network) {
  internal::StepOptions options;
  internal::UseDevice("cpu", options);
  options.compile.level = "O1";
  options.compile.dtype = "bf16";
  options.networks = {&network};
  const auto step = internal::CompileStep(
      &network, [&](const std::vector<Tensor>& inputs) { return std::vector<Tensor>{network(inputs[0])}; },
      {TensorSpec{DType::kF32, {2, 4, 6}}}, options);
  EXPECT_TRUE(step.ok()) << step.status();
  return step.ok() ? (*step)->compiled().final_ir.Print() : "";
}

TEST(ComposedLayers, ProductsAreInTheClassThatTheirHeadersState) {
  Products network;
  const std::string ir = IrAtO1(network);
  for (const auto& [operation, count] :
       {std::pair("mpc.conv2d ", 1), std::pair("mpc.batch_matmul ", 2), std::pair("mpc.attention ", 1)}) {
    const std::vector<std::string> lines = testing::LinesWith(ir, operation);
    EXPECT_EQ(lines.size(), static_cast<std::size_t>(count)) << operation << ir;
    for (const std::string& line : lines) EXPECT_THAT(line, HasSubstr("xbf16>")) << "Allow is low";
  }
}

/// Attention of [N, 4, L] whose scores are values of the graph.
class MaskedAttention : public nn::Cell {
 public:
  MPC_CELL(MaskedAttention, attention)
  Tensor Construct(Tensor x) {
    const Tensor y = transpose(x, {0, 2, 1});
    return attention(y, y, y, {.attn_mask = Tensor::Zeros({6, 6})});
  }
  nn::MultiheadAttention attention{4, 2};
};

TEST(ComposedLayers, AttentionWithAFloatingMaskHasTheClassesThatItsHeaderStates) {
  MaskedAttention network;
  const std::string ir = IrAtO1(network);
  EXPECT_THAT(testing::LinesWith(ir, "mpc.attention "), ::testing::IsEmpty());
  const std::vector<std::string> products = testing::LinesWith(ir, "mpc.batch_matmul ");
  EXPECT_EQ(products.size(), 2u) << ir;
  for (const std::string& line : products) EXPECT_THAT(line, HasSubstr("xbf16>")) << "Allow is low";
  const std::vector<std::string> weights = testing::LinesWith(ir, "mpc.softmax ");
  EXPECT_EQ(weights.size(), 1u) << ir;
  for (const std::string& line : weights) EXPECT_THAT(line, HasSubstr(" as <f32, user_cast")) << "behind the mask, f32";
}

}  // namespace
}  // namespace mpc
