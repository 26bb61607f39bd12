#include "tests/op_cases/families.h"

namespace mpc::op_cases {
namespace {

struct Normalisation {
  std::string name;
  Shape x, parameters, statistics;
  Attributes attributes;
  Values values = Normal(0.5, 2);
};

std::vector<Normalisation> LayerNorms() {
  return {
      {"rows", {6, 10}, {10}, {6}, {}},
      {"odd_width", {3, 5, 33}, {33}, {3, 5}, {}},
      {"two_trailing_axes", {4, 3, 5}, {3, 5}, {4}, {}},
      {"every_axis", {3, 4}, {3, 4}, {}, {}},
      {"two_elements", {4, 2}, {2}, {4}, {}},
      {"wide", {3, 1500}, {1500}, {3}, {}},
      {"wide_vectors", {3, 1608}, {1608}, {3}, {}},
      {"very_wide", {2, 8203}, {8203}, {2}, {}},
      {"very_wide_vectors", {2, 8216}, {8216}, {2}, {}},
      {"rows_in_blocks", {1040, 32}, {32}, {1040}, {}},
      {"many_rows", {150, 24}, {24}, {150}, {}},
      {"large", {128, 300}, {300}, {128}, {}},
      {"epsilon", {4, 6}, {6}, {4}, {{"epsilon", 1e-3}}},
      // E[x^2] - E[x]^2 would lose most digits of the variance.
      {"mean_beyond_deviation", {4, 64}, {64}, {4}, {}, Normal(100, 1)},
      {"constant", {3, 8}, {8}, {3}, {}, List({0.75})},
  };
}

std::vector<Normalisation> GroupNorms() {
  const auto groups = [](std::int64_t count, const char* format) {
    return Attributes{{"groups", count}, {"data_format", std::string(format)}};
  };
  return {
      {"one_group", {2, 4, 3, 5}, {4}, {2, 1}, groups(1, "NCHW")},
      {"two_groups", {3, 4, 5, 3}, {4}, {3, 2}, groups(2, "NCHW")},
      {"instance_norm", {2, 3, 4, 4}, {3}, {2, 3}, groups(3, "NCHW")},
      {"large_plane", {2, 4, 28, 27}, {4}, {2, 2}, groups(2, "NCHW")},
      {"large", {4, 8, 40, 30}, {8}, {4, 4}, groups(4, "NCHW")},
      {"plane_in_parts", {1, 2, 48, 48}, {2}, {1, 2}, groups(2, "NCHW")},
      {"channels_last_rows_in_blocks", {2, 33, 32, 16}, {16}, {2, 2}, groups(2, "NHWC")},
      {"channels_last_large", {4, 30, 40, 8}, {8}, {4, 4}, groups(4, "NHWC")},
      {"channels_last", {2, 5, 3, 6}, {6}, {2, 3}, groups(3, "NHWC")},
      {"channels_last_one_group", {2, 3, 3, 5}, {5}, {2, 1}, groups(1, "NHWC")},
      {"channels_last_instance_norm", {2, 4, 4, 3}, {3}, {2, 3}, groups(3, "NHWC")},
      {"channels_last_wide", {1, 2, 2, 600}, {600}, {1, 4}, groups(4, "NHWC")},
      {"epsilon", {2, 4, 3, 3}, {4}, {2, 2}, With(groups(2, "NCHW"), {{"epsilon", 1e-3}})},
      {"mean_beyond_deviation", {2, 4, 4, 4}, {4}, {2, 2}, groups(2, "NCHW"), Normal(100, 1)},
      {"constant", {2, 3, 3, 4}, {4}, {2, 2}, groups(2, "NHWC"), List({0.75})},
  };
}

void AddNormalisation(std::vector<OpCase>& cases, const std::string& op, const Normalisation& norm) {
  const bool smooth = norm.name != "constant";  // at variance zero a finite difference says nothing
  const OperandCase x{F32(norm.x), norm.values, smooth};
  const OperandCase gamma = Variable(norm.parameters, Uniform(0.5, 1.5));
  OpCase forward{op + "/" + norm.name,
                 op,
                 norm.attributes,
                 {x, gamma, Variable(norm.parameters)},
                 {x.spec, F32(norm.statistics), F32(norm.statistics)}};
  forward.f32_operands = {1, 2};
  forward.f32_results = {1, 2};
  cases.push_back(forward);

  OpCase backward{op + "_grad/" + norm.name,
                  op + "_grad",
                  norm.attributes,
                  {Variable(norm.x), x, gamma, Variable(norm.statistics, Computed(op, 1, {1, 2, 5})),
                   Variable(norm.statistics, Computed(op, 2, {1, 2, 5}))},
                  {x.spec, gamma.spec, gamma.spec}};
  backward.auxiliary = {Fixed(norm.parameters)};
  backward.f32_operands = {2, 3, 4};
  backward.f32_results = {1, 2};
  cases.push_back(backward);
}

}  // namespace

std::vector<OpCase> NormCases() {
  std::vector<OpCase> cases;
  for (const Normalisation& norm : LayerNorms()) AddNormalisation(cases, "layer_norm", norm);
  for (const Normalisation& norm : GroupNorms()) AddNormalisation(cases, "group_norm", norm);
  return cases;
}

}  // namespace mpc::op_cases
