#include "tests/op_cases/elementwise_shapes.h"

#include "absl/strings/str_cat.h"
#include "tests/op_cases/families.h"

namespace mpc::op_cases {

const std::vector<Shape>& UnaryShapes() {
  static const auto* const shapes = new std::vector<Shape>{{1}, {7}, {}, {3, 5}, {2, 3, 4, 5}, {1027}, {3, 40961}};
  return *shapes;
}

void AddUnary(std::vector<OpCase>& cases, const std::string& op, const Values& values,
              const std::vector<double>& special, bool differentiable) {
  for (const Shape& shape : UnaryShapes()) {
    cases.push_back(
        {absl::StrCat(op, "/", ShapeToString(shape)), op, {}, {{F32(shape), values, differentiable}}, {F32(shape)}});
  }
  const Shape shape = {static_cast<std::int64_t>(special.size())};
  cases.push_back({op + "/special_values", op, {}, {Fixed(shape, List(special))}, {F32(shape)}});
}

const std::vector<BroadcastShapes>& BinaryShapes() {
  static const auto* const shapes = new std::vector<BroadcastShapes>{
      {{1}, {1}, {1}},
      {{}, {}, {}},
      {{3, 5}, {3, 5}, {3, 5}},
      {{1027}, {1}, {1027}},
      {{}, {2, 3}, {2, 3}},
      {{64, 33}, {33}, {64, 33}},
      {{33, 64}, {33, 1}, {33, 64}},
      {{4, 1, 5}, {3, 1}, {4, 3, 5}},
      {{2, 3, 4, 5}, {1, 3, 1, 1}, {2, 3, 4, 5}},
      {{3, 40961}, {3, 40961}, {3, 40961}},
  };
  return *shapes;
}

std::string NameOf(const std::string& op, const BroadcastShapes& shapes) {
  return absl::StrCat(op, "/", ShapeToString(shapes.a), "_with_", ShapeToString(shapes.b));
}

void AddBinary(std::vector<OpCase>& cases, const std::string& op, const Values& b) {
  for (const BroadcastShapes& shapes : BinaryShapes()) {
    cases.push_back({NameOf(op, shapes), op, {}, {Variable(shapes.a), Variable(shapes.b, b)}, {F32(shapes.y)}});
  }
}

}  // namespace mpc::op_cases
