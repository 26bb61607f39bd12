#include "absl/strings/str_cat.h"
#include "tests/op_cases/families.h"

namespace mpc::op_cases {

std::vector<OpCase> RecurrentCases() {
  struct Size {
    std::int64_t rows, width;
    double deviation;
  };
  std::vector<OpCase> cases;
  for (const Size& size : {Size{1, 1, 1}, Size{3, 5, 1}, Size{4, 37, 2}, Size{2, 1031, 1}}) {
    const Shape state = {size.rows, size.width};
    const Shape gates = {size.rows, 4 * size.width};
    const std::string tail = absl::StrCat("/", size.rows, "x", size.width);
    OpCase forward{"lstm_cell" + tail,
                   "lstm_cell",
                   {},
                   {Variable(gates, Normal(0, size.deviation)), Variable(state)},
                   {F32(state), F32(state), F32(gates)}};
    forward.f32_operands = {1};
    forward.f32_results = {1, 2};
    cases.push_back(forward);

    OpCase backward{"lstm_cell_grad" + tail,
                    "lstm_cell_grad",
                    {},
                    {Variable(state), Variable(state), Variable(gates, Computed("lstm_cell", 2, {5, 3})),
                     Variable(state), Variable(state, Computed("lstm_cell", 1, {5, 3}))},
                    {F32(gates), F32(state)}};
    backward.auxiliary = {Fixed(gates, Normal(0, size.deviation))};
    backward.f32_operands = {1, 2, 3, 4};
    backward.f32_results = {1};
    cases.push_back(backward);
  }
  return cases;
}

}  // namespace mpc::op_cases
