#include "absl/strings/str_cat.h"
#include "tests/op_cases/families.h"

namespace mpc::op_cases {
namespace {

struct Resizing {
  std::string name;
  std::int64_t channels, height, width, new_height, new_width;
  bool wide = false;  ///< more than a block of pixels a row, and no gradient check
};

void AddResizing(std::vector<OpCase>& cases, const Resizing& resizing, const Attributes& attributes) {
  const std::string format = attributes.GetString("data_format");
  const auto image = [&](std::int64_t height, std::int64_t width) {
    return format == "NHWC" ? Shape{2, height, width, resizing.channels} : Shape{2, resizing.channels, height, width};
  };
  const Shape x = image(resizing.height, resizing.width), y = image(resizing.new_height, resizing.new_width);
  const std::string name = absl::StrCat("/", resizing.name, "_", attributes.GetString("interpolation"), "_",
                                        attributes.GetString("coordinates"), "_", format);
  const std::vector<std::int64_t> size = {resizing.new_height, resizing.new_width};
  cases.push_back({"resize" + name,
                   "resize",
                   With(attributes, {{"size", size}}),
                   {resizing.wide ? Fixed(x) : Variable(x)},
                   {F32(y)}});
  cases.push_back({"resize_grad" + name,
                   "resize_grad",
                   With(attributes, {{"input_shape", x}}),
                   {resizing.wide ? Fixed(y) : Variable(y)},
                   {F32(x)}});
}

Attributes How(const std::string& interpolation, const std::string& coordinates, const std::string& format) {
  return {{"interpolation", interpolation}, {"coordinates", coordinates}, {"data_format", format}};
}

}  // namespace

std::vector<OpCase> ResizeCases() {
  std::vector<OpCase> cases;
  for (const char* interpolation : {"nearest", "bilinear"}) {
    for (const char* coordinates : {"asymmetric", "half_pixel", "align_corners"}) {
      for (const char* format : {"NCHW", "NHWC"}) {
        const Attributes how = How(interpolation, coordinates, format);
        AddResizing(cases, {"larger", 3, 3, 4, 7, 8}, how);
        AddResizing(cases, {"smaller", 2, 7, 5, 3, 2}, how);
      }
      const Attributes how = How(interpolation, coordinates, "NCHW");
      AddResizing(cases, {"lower_and_wider", 1, 4, 3, 2, 9}, how);
      AddResizing(cases, {"to_one_pixel", 2, 3, 4, 1, 1}, how);
      AddResizing(cases, {"from_one_pixel", 2, 1, 1, 3, 2}, how);
    }
  }
  AddResizing(cases, {"same_size", 2, 3, 4, 3, 4}, How("bilinear", "half_pixel", "NCHW"));
  AddResizing(cases, {"eight_channels", 8, 3, 2, 5, 4}, How("bilinear", "half_pixel", "NHWC"));
  AddResizing(cases, {"wider_than_a_block", 1, 1, 700, 1, 1500, true}, How("bilinear", "half_pixel", "NCHW"));
  AddResizing(cases, {"from_more_than_a_block", 1, 2, 2600, 1, 650, true}, How("bilinear", "half_pixel", "NCHW"));
  AddResizing(cases, {"channels_of_two_blocks", 1030, 1, 2, 2, 3, true}, How("bilinear", "half_pixel", "NHWC"));
  return cases;
}

}  // namespace mpc::op_cases
