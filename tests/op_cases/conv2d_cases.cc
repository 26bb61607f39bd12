#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/known_attributes.h"
#include "tests/op_cases/families.h"

namespace mpc::op_cases {
namespace {

using Ints = std::vector<std::int64_t>;

struct Convolution {
  std::string name;
  std::int64_t batch, channels, height, width;
  std::int64_t out_channels, kernel_height, kernel_width;
  Attributes attributes;
};

std::vector<Convolution> Convolutions() {
  const Attributes same = {{"pad_mode", std::string("same")}};
  const Attributes pad_one = {{"pad_mode", std::string("pad")}, {"padding", Ints{1, 1, 1, 1}}};
  const auto groups = [](std::int64_t count) { return Attributes{{"groups", count}}; };
  const auto strides = [](std::int64_t height, std::int64_t width) {
    return Attributes{{"strides", Ints{height, width}}};
  };
  return {
      {"lenet_conv1", 2, 1, 32, 32, 6, 5, 5, {}},
      {"lenet_conv2", 2, 6, 14, 14, 16, 5, 5, {}},
      {"resnet_like", 2, 32, 9, 9, 32, 3, 3, same},
      {"one_pixel", 1, 1, 1, 1, 1, 1, 1, {}},
      {"pointwise", 3, 5, 7, 6, 9, 1, 1, {}},
      {"pointwise_stride_2", 2, 8, 7, 7, 4, 1, 1, strides(2, 2)},
      {"kernel_as_large_as_input", 2, 3, 4, 5, 2, 4, 5, {}},
      {"rectangular", 2, 3, 8, 9, 4, 3, 1, {}},
      {"same_even_kernel", 2, 3, 7, 8, 4, 2, 4, same},
      {"same_stride_2", 2, 3, 8, 7, 5, 3, 3, With(same, strides(2, 2))},
      {"same_stride_3_large_kernel", 1, 2, 10, 11, 3, 5, 5, With(same, strides(3, 3))},
      {"unequal_strides", 2, 3, 9, 10, 4, 3, 3, strides(1, 2)},
      {"pad_one", 2, 4, 6, 6, 4, 3, 3, pad_one},
      {"pad_unequal",
       2,
       3,
       6,
       7,
       4,
       3,
       3,
       {{"pad_mode", std::string("pad")}, {"padding", Ints{1, 2, 0, 3}}, {"strides", Ints{2, 2}}}},
      {"dilated", 2, 3, 9, 9, 4, 3, 3, {{"dilations", Ints{2, 2}}}},
      {"dilated_same", 2, 3, 9, 8, 4, 3, 3, With(same, {{"dilations", Ints{2, 3}}})},
      {"two_groups", 2, 4, 6, 6, 6, 3, 3, groups(2)},
      {"depthwise", 2, 5, 7, 7, 5, 3, 3, With(same, groups(5))},
      {"depthwise_multiplier_2", 2, 3, 6, 6, 6, 3, 3, groups(3)},
      {"few_channels_long_rows", 18, 2, 5, 39, 7, 3, 5, same},
      {"few_channels_rows_in_overlapping_blocks", 2, 3, 19, 9, 6, 3, 3, same},
      {"few_channels_from_sixteen", 2, 16, 9, 8, 3, 3, 2, same},
      {"few_channels_to_sixteen", 2, 3, 9, 6, 16, 2, 3, pad_one},
      {"groups_of_seven_strided_dilated", 3, 10, 9, 8, 14, 3, 2,
       With(groups(2), {{"strides", Ints{2, 1}}, {"dilations", Ints{1, 2}}})},
  };
}

Shape InputShape(const Convolution& convolution, const Attributes& attributes) {
  const auto& [name, n, c, h, w, o, kh, kw, more] = convolution;
  return attributes.Get(attribute::kDataFormat) == DataFormat::kNHWC ? Shape{n, h, w, c} : Shape{n, c, h, w};
}

OpCase Forward(const Convolution& convolution, const Attributes& attributes, bool bias, const std::string& name) {
  const std::int64_t groups = attributes.Get(attribute::kGroups);
  const Shape x = InputShape(convolution, attributes);
  const Shape weight = {convolution.out_channels, convolution.channels / groups, convolution.kernel_height,
                        convolution.kernel_width};
  const auto terms = static_cast<double>(NumElements(weight) / weight[0]);
  OpCase op_case{"conv2d/" + name,
                 "conv2d",
                 attributes,
                 {Variable(x), Variable(weight, Normal(0, 1 / std::sqrt(terms)))},
                 {F32(WindowResultShape(attributes, x, convolution.kernel_height, convolution.kernel_width,
                                        convolution.out_channels))}};
  if (bias) op_case.operands.push_back(Variable({convolution.out_channels}));
  return op_case;
}

/// The convolution of `forward` with statistics of its result.
OpCase Statistics(OpCase forward) {
  const Shape channels = {forward.operands[1].spec.shape[0]};
  forward.name.replace(0, forward.op.size(), "conv2d_statistics");
  forward.op = "conv2d_statistics";
  forward.results.insert(forward.results.end(), 3, F32(channels));
  forward.f32_results = {1, 2, 3};
  return forward;
}

}  // namespace

std::vector<OpCase> Conv2dCases() {
  std::vector<OpCase> cases;
  for (const Convolution& convolution : Convolutions()) {
    for (const char* format : {"NCHW", "NHWC"}) {
      const Attributes attributes = With(convolution.attributes, {{"data_format", std::string(format)}});
      const std::string name = absl::StrCat(convolution.name, "_", format);
      const OpCase forward = Forward(convolution, attributes, false, name);
      cases.push_back(forward);
      cases.push_back(Forward(convolution, attributes, true, name + "_bias"));
      const Shape x = forward.operands[0].spec.shape;
      const Shape weight = forward.operands[1].spec.shape;
      const Shape y = forward.results[0].shape;
      cases.push_back({"conv2d_grad_input/" + name,
                       "conv2d_grad_input",
                       With(attributes, {{"input_shape", x}}),
                       {Variable(y), forward.operands[1]},
                       {F32(x)}});
      const double terms = static_cast<double>(NumElements(y) / convolution.out_channels);
      cases.push_back({"conv2d_grad_weight/" + name,
                       "conv2d_grad_weight",
                       With(attributes, {{"weight_shape", weight}}),
                       {Variable(x), Variable(y, Normal(0, 1 / std::sqrt(terms)))},
                       {F32(weight)}});
    }
  }
  for (const std::size_t index : {0, 2, 3, 5, 9, 17}) {
    const Convolution convolution = Convolutions()[index];
    for (const char* format : {"NCHW", "NHWC"}) {
      const Attributes attributes = With(convolution.attributes, {{"data_format", std::string(format)}});
      cases.push_back(Statistics(Forward(convolution, attributes, false, absl::StrCat(convolution.name, "_", format))));
    }
  }
  for (const std::size_t index : {0, 1, 2, 16, 20}) {
    const Convolution convolution = Convolutions()[index];
    for (const char* activation : {"relu", "sigmoid", "tanh", "gelu", "gelu_tanh"}) {
      for (const char* format : {"NCHW", "NHWC"}) {
        const Attributes attributes = With(
            convolution.attributes, {{"data_format", std::string(format)}, {"activation", std::string(activation)}});
        cases.push_back(
            Forward(convolution, attributes, true, absl::StrCat(convolution.name, "_", format, "_bias_", activation)));
      }
    }
  }
  return cases;
}

}  // namespace mpc::op_cases
