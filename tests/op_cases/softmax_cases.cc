#include "absl/strings/str_cat.h"
#include "tests/op_cases/families.h"

namespace mpc::op_cases {

std::vector<OpCase> SoftmaxCases() {
  struct Lines {
    Shape shape;
    std::int64_t axis;
    Values logits = Normal();
    const char* note = "";
  };
  const std::vector<Lines> all = {
      {{1, 1}, -1},
      {{7}, 0},
      {{29, 10}, -1},
      {{4, 10}, 0},
      {{3, 5, 2}, 1},
      {{2, 1000}, 1},
      {{2, 1601}, 1},  // beyond a warp's registers
      {{2, 1608}, 1},
      {{2, 8203}, 1},  // beyond a block's
      {{2, 8216}, 1},
      {{4, 17}, -1, Normal(0, 30), "_far_apart"},
      {{4, 17}, -1, Normal(500, 1), "_large"},  // exp of the raw logits would overflow
      {{3, 9}, -1, List({2}), "_equal"},
  };
  std::vector<OpCase> cases;
  for (const Lines& lines : all) {
    const Attributes attributes = {{"axis", lines.axis}};
    for (const char* op : {"softmax", "log_softmax"}) {
      const std::string tail = absl::StrCat("/", ShapeToString(lines.shape), "_along_", lines.axis, lines.note);
      cases.push_back({op + tail, op, attributes, {Variable(lines.shape, lines.logits)}, {F32(lines.shape)}});
      OpCase backward{op + std::string("_grad") + tail,
                      op + std::string("_grad"),
                      attributes,
                      {Variable(lines.shape), Variable(lines.shape, Computed(op, 0, {2}))},
                      {F32(lines.shape)}};
      backward.auxiliary = {Fixed(lines.shape, lines.logits)};
      cases.push_back(backward);
    }
  }
  return cases;
}

}  // namespace mpc::op_cases
