#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/known_attributes.h"
#include "tests/op_cases/families.h"

namespace mpc::op_cases {
namespace {

using Ints = std::vector<std::int64_t>;

struct Transposed {
  std::string name;
  std::int64_t batch, channels, height, width;
  std::int64_t out_channels, kernel_height, kernel_width;
  std::int64_t result_height, result_width;
  Attributes attributes;
};

std::vector<Transposed> Shapes() {
  const Attributes same = {{"pad_mode", std::string("same")}};
  const Attributes pad_one = {{"pad_mode", std::string("pad")}, {"padding", Ints{1, 1, 1, 1}}};
  const Attributes stride_2 = {{"strides", Ints{2, 2}}};
  return {
      {"one_pixel", 1, 1, 1, 1, 1, 1, 1, 1, 1, {}},
      {"valid", 2, 3, 4, 5, 4, 3, 3, 6, 7, {}},
      {"stride_2", 2, 3, 4, 5, 4, 3, 2, 9, 10, stride_2},
      {"dcgan", 2, 8, 4, 4, 6, 4, 4, 8, 8, With(pad_one, stride_2)},
      {"pad_unequal",
       2,
       3,
       5,
       4,
       4,
       3,
       3,
       8,
       6,
       {{"pad_mode", std::string("pad")}, {"padding", Ints{1, 2, 0, 3}}, {"strides", Ints{2, 2}}}},
      {"output_padding", 2, 3, 4, 4, 2, 3, 3, 8, 7, With(With(pad_one, stride_2), {{"output_padding", Ints{1, 0}}})},
      {"same_stride_2", 2, 3, 4, 5, 4, 3, 3, 8, 10, With(same, stride_2)},
      {"same_small_kernel", 1, 2, 3, 3, 2, 1, 2, 9, 9, With(same, {{"strides", Ints{3, 3}}})},
      {"dilated", 2, 3, 4, 4, 2, 3, 3, 8, 10, {{"dilations", Ints{2, 3}}}},
      {"two_groups", 2, 4, 4, 4, 6, 3, 3, 6, 6, {{"groups", std::int64_t{2}}}},
      {"depthwise", 2, 4, 4, 4, 4, 2, 2, 8, 8, With(stride_2, {{"groups", std::int64_t{4}}})},
  };
}

}  // namespace

std::vector<OpCase> ConvTransposeCases() {
  std::vector<OpCase> cases;
  for (const Transposed& shape : Shapes()) {
    const auto& [name, n, c, h, w, o, kh, kw, result_h, result_w, more] = shape;
    for (const char* format : {"NCHW", "NHWC"}) {
      const Attributes attributes = With(more, {{"data_format", std::string(format)}});
      const bool last = std::string(format) == "NHWC";
      const std::int64_t groups = attributes.Get(attribute::kGroups);
      const Shape x = last ? Shape{n, h, w, c} : Shape{n, c, h, w};
      const Shape y = last ? Shape{n, result_h, result_w, o} : Shape{n, o, result_h, result_w};
      const Values weights = Normal(0, 1 / std::sqrt(static_cast<double>(c / groups * kh * kw)));
      for (const bool bias : {false, true}) {
        OpCase op_case{absl::StrCat("conv_transpose2d/", name, "_", format, bias ? "_bias" : ""),
                       "conv_transpose2d",
                       attributes,
                       {Variable(x), Variable({c, o / groups, kh, kw}, weights)},
                       {F32(y)}};
        if (bias) op_case.operands.push_back(Variable({o}));
        cases.push_back(std::move(op_case));
      }
    }
  }
  return cases;
}

}  // namespace mpc::op_cases
