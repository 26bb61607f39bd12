#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "tests/op_cases/families.h"

namespace mpc::op_cases {
namespace {

using Ints = std::vector<std::int64_t>;

struct Pooling {
  std::string name;
  std::int64_t batch, channels, height, width;
  Attributes attributes;
  DType indices = DType::kI8;
};

std::vector<Pooling> Poolings() {
  const auto pooling = [](Ints size, Ints strides, const char* pad_mode, Ints padding = {0, 0, 0, 0}) {
    return Attributes{{"kernel_size", std::move(size)},
                      {"strides", std::move(strides)},
                      {"pad_mode", std::string(pad_mode)},
                      {"padding", std::move(padding)}};
  };
  return {
      {"lenet", 2, 6, 28, 28, pooling({2, 2}, {2, 2}, "valid")},
      {"one_pixel", 1, 1, 1, 1, pooling({1, 1}, {1, 1}, "valid")},
      {"global", 2, 5, 4, 3, pooling({4, 3}, {1, 1}, "valid")},
      {"remainder", 2, 3, 7, 9, pooling({2, 2}, {2, 2}, "valid")},
      {"overlapping", 2, 3, 7, 8, pooling({3, 3}, {1, 1}, "valid")},
      {"same_remainder", 2, 6, 7, 9, pooling({2, 2}, {2, 2}, "same")},
      {"padded_disjoint", 2, 6, 7, 9, pooling({2, 3}, {2, 3}, "pad", {1, 1, 2, 1})},
      {"gaps", 1, 3, 9, 9, pooling({2, 2}, {3, 3}, "valid")},
      {"rectangular", 2, 3, 8, 9, pooling({3, 2}, {2, 1}, "valid")},
      {"same", 2, 16, 7, 8, pooling({3, 3}, {2, 2}, "same")},
      {"same_even", 1, 2, 5, 5, pooling({2, 2}, {1, 1}, "same")},
      {"padded", 2, 3, 6, 7, pooling({3, 3}, {2, 2}, "pad", {1, 1, 1, 1})},
      {"padded_unequally", 2, 3, 6, 7, pooling({3, 3}, {2, 2}, "pad", {0, 1, 2, 1})},
      {"wide_indices", 2, 3, 8, 9, pooling({3, 2}, {2, 1}, "same"), DType::kI32},
      {"narrow_wide_indices", 2, 6, 8, 10, pooling({2, 2}, {2, 2}, "valid"), DType::kI32},
      {"largest_window_of_i8", 1, 2, 19, 17, pooling({16, 8}, {2, 3}, "pad", {3, 4, 5, 6})},
      {"larger_window", 1, 2, 19, 17, pooling({13, 10}, {3, 2}, "same"), DType::kI32},
  };
}

void AddPooling(std::vector<OpCase>& cases, const Pooling& pooling, const std::string& format) {
  const Attributes attributes = With(pooling.attributes, {{"data_format", format}});
  const Ints size = attributes.GetInts("kernel_size");
  const Shape x = format == "NHWC" ? Shape{pooling.batch, pooling.height, pooling.width, pooling.channels}
                                   : Shape{pooling.batch, pooling.channels, pooling.height, pooling.width};
  const Shape y = WindowResultShape(attributes, x, size[0], size[1], pooling.channels);
  const Attributes backward = With(attributes, {{"input_shape", x}});
  const std::string name = absl::StrCat(pooling.name, "_", format);
  const TensorSpec indices{pooling.indices, y};

  cases.push_back({"max_pool2d/" + name, "max_pool2d", attributes, {Variable(x)}, {F32(y), indices}});
  // All negative: padding counted as zero would win. Few values: ties go to the first.
  cases.push_back({"max_pool2d/" + name + "_negative_ties",
                   "max_pool2d",
                   attributes,
                   {Fixed(x, Integers(-3, 0))},
                   {F32(y), indices}});
  OpCase max_grad{"max_pool2d_grad/" + name,
                  "max_pool2d_grad",
                  backward,
                  {Variable(y), {indices, Computed("max_pool2d", 1, {2})}},
                  {F32(x)}};
  max_grad.auxiliary = {Fixed(x)};
  cases.push_back(max_grad);
  // Positions outside the window, and those in the padding, receive nothing.
  cases.push_back({"max_pool2d_grad/" + name + "_any_indices",
                   "max_pool2d_grad",
                   backward,
                   {Variable(y), {indices, Integers(-2, std::min<std::int64_t>(size[0] * size[1] + 2, 128))}},
                   {F32(x)}});
  for (bool include : {true, false}) {
    const Attributes count = {{"count_include_pad", include}};
    const std::string full_name = name + (include ? "" : "_inside_only");
    cases.push_back({"avg_pool2d/" + full_name, "avg_pool2d", With(attributes, count), {Variable(x)}, {F32(y)}});
    cases.push_back(
        {"avg_pool2d_grad/" + full_name, "avg_pool2d_grad", With(backward, count), {Variable(y)}, {F32(x)}});
  }
}

}  // namespace

std::vector<OpCase> PoolingCases() {
  std::vector<OpCase> cases;
  for (const Pooling& pooling : Poolings()) {
    for (const char* format : {"NCHW", "NHWC"}) AddPooling(cases, pooling, format);
  }
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  cases.push_back({"max_pool2d/special_values",
                   "max_pool2d",
                   {{"kernel_size", Ints{2, 2}}, {"strides", Ints{2, 2}}},
                   {Fixed({1, 1, 2, 8}, List({1, nan, -infinity, -infinity, infinity, nan, 3, infinity,  //
                                              2, nan, -infinity, -infinity, nan, 5, infinity, 4}))},
                   {F32({1, 1, 1, 4}), I8({1, 1, 1, 4})}});
  // The same windows, each in two channels.
  cases.push_back({"max_pool2d/special_values_NHWC",
                   "max_pool2d",
                   {{"kernel_size", Ints{2, 2}}, {"strides", Ints{2, 2}}, {"data_format", std::string("NHWC")}},
                   {Fixed({1, 2, 4, 2}, List({1, 3, nan, infinity, -infinity, infinity, -infinity, nan,  //
                                              2, infinity, nan, 4, -infinity, nan, -infinity, 5}))},
                   {F32({1, 1, 2, 2}), I8({1, 1, 2, 2})}});
  return cases;
}

}  // namespace mpc::op_cases
