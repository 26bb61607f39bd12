#include <cmath>

#include "absl/strings/str_cat.h"
#include "tests/op_cases/families.h"

namespace mpc::op_cases {
namespace {

struct Size {
  std::int64_t m, k, n;
};

void AddBatchMatmuls(std::vector<OpCase>& cases) {
  const auto joined = [](Shape leading, std::int64_t rows, std::int64_t columns) {
    leading.insert(leading.end(), {rows, columns});
    return leading;
  };
  for (const Shape& leading : {Shape{1}, Shape{3}, Shape{2, 3}}) {
    for (const Size& size : {Size{1, 1, 1}, Size{3, 5, 7}, Size{17, 1, 9}, Size{1, 33, 1}, Size{16, 24, 32}}) {
      for (bool transpose_a : {false, true}) {
        for (bool transpose_b : {false, true}) {
          const auto& [m, k, n] = size;
          cases.push_back({absl::StrCat("batch_matmul/", ShapeToString(joined(leading, m, k)), "x", n,
                                        transpose_a ? "_ta" : "", transpose_b ? "_tb" : ""),
                           "batch_matmul",
                           {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}},
                           {Variable(transpose_a ? joined(leading, k, m) : joined(leading, m, k)),
                            Variable(transpose_b ? joined(leading, n, k) : joined(leading, k, n),
                                     Normal(0, 1 / std::sqrt(static_cast<double>(k))))},
                           {F32(joined(leading, m, n))}});
        }
      }
    }
  }
}

}  // namespace

std::vector<OpCase> MatmulCases() {
  std::vector<OpCase> cases;
  const auto add = [&](const Size& size, bool transpose_a, bool transpose_b, bool bias, const char* activation) {
    const Shape a = transpose_a ? Shape{size.k, size.m} : Shape{size.m, size.k};
    const Shape b = transpose_b ? Shape{size.n, size.k} : Shape{size.k, size.n};
    // Products of deviation 1, whatever the length of the sums.
    const Values weights = Normal(0, 1 / std::sqrt(static_cast<double>(size.k)));
    OpCase op_case{
        absl::StrCat("matmul/", size.m, "x", size.k, "x", size.n, transpose_a ? "_ta" : "", transpose_b ? "_tb" : "",
                     bias ? "_bias" : "", "_", activation),
        "matmul",
        {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}, {"activation", std::string(activation)}},
        {Variable(a), Variable(b, weights)},
        {F32({size.m, size.n})}};
    if (bias) op_case.operands.push_back(Variable({size.n}));
    cases.push_back(std::move(op_case));
  };
  const Size shapes[] = {{1, 1, 1},    {3, 5, 7},      {17, 1, 9},   {1, 33, 1},
                         {29, 84, 10}, {32, 400, 120}, {64, 64, 64}, {33, 130, 17}};
  for (const Size& size : shapes) {
    for (bool transpose_a : {false, true}) {
      for (bool transpose_b : {false, true}) {
        for (bool bias : {false, true}) add(size, transpose_a, transpose_b, bias, "none");
      }
    }
  }
  for (const Size& size : {Size{3, 5, 7}, Size{29, 84, 10}}) {
    for (const char* activation : {"relu", "sigmoid", "tanh", "gelu", "gelu_tanh"}) {
      for (bool bias : {false, true}) add(size, false, true, bias, activation);
    }
  }
  // A bias of the result's shape: what the product is added to.
  for (const Size& size : {Size{1, 1, 1}, Size{3, 5, 7}, Size{29, 84, 10}, Size{64, 64, 64}}) {
    for (bool transpose_a : {false, true}) {
      add(size, transpose_a, false, false, "none");
      OpCase& sum = cases.back();
      sum.name += "_whole_bias";
      sum.operands.push_back(Variable({size.m, size.n}));
    }
  }
  for (const char* activation : {"relu", "gelu", "gelu_tanh"}) {
    add({29, 84, 10}, true, false, false, activation);
    cases.back().name += "_whole_bias";
    cases.back().operands.push_back(Variable({29, 10}));
  }
  AddBatchMatmuls(cases);
  return cases;
}

}  // namespace mpc::op_cases
