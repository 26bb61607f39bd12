#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "tests/op_cases/families.h"

namespace mpc::op_cases {
namespace {

struct Case {
  std::string name;
  std::int64_t batch, heads, rows, columns, width, value_width;
  bool causal = false;
  std::optional<OperandCase> mask;
  double scale = 0;  ///< 0: 1 / sqrt(width)
};

OperandCase Mask(Shape shape, Values values) { return {Bool(std::move(shape)), std::move(values)}; }

std::vector<Case> AttentionShapes() {
  return {
      {"one_position", 1, 1, 1, 1, 1, 1},
      {"self", 2, 3, 7, 7, 8, 8},
      {"odd_sizes", 1, 2, 5, 9, 3, 11},
      {"several_row_blocks", 1, 2, 53, 37, 16, 16},
      {"wide_heads", 1, 1, 4, 6, 70, 33},
      {"scale", 1, 2, 4, 4, 5, 5, false, {}, 0.75},
      {"causal", 2, 2, 33, 33, 8, 8, true},
      {"causal_more_columns", 1, 2, 5, 9, 4, 4, true},
      {"causal_more_rows", 1, 2, 9, 5, 4, 4, true},  // the first four rows may read nothing
      {"causal_odd_columns_of_a_block", 1, 1, 30, 33, 8, 8, true},
      {"causal_empty_block", 1, 1, 60, 5, 4, 4, true},
      {"mask", 2, 2, 6, 5, 4, 4, false, Mask({2, 2, 6, 5}, Integers(0, 2))},
      {"mask_by_column", 2, 3, 4, 5, 4, 4, false, Mask({2, 1, 1, 5}, List({1, 1, 0, 1, 0, 0, 1, 1, 1, 1}))},
      {"mask_of_rank_2", 1, 2, 3, 4, 4, 4, false, Mask({3, 4}, List({1, 0, 0, 1, 1, 1, 0, 1, 0, 0, 1, 0}))},
      {"mask_by_row", 1, 2, 3, 4, 4, 4, false, Mask({3, 1}, List({1, 0, 1}))},
      {"fully_masked_row", 1, 2, 3, 4, 4, 4, false, Mask({3, 4}, List({1, 1, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1}))},
      {"everything_masked", 1, 1, 2, 3, 4, 4, false, Mask({1, 1, 1, 1}, List({0}))},
      {"causal_mask", 1, 2, 6, 6, 4, 4, true, Mask({1, 1, 6}, List({0, 1, 1, 0, 1, 1}))},
      {"self_several_tiles", 1, 2, 70, 70, 16, 16},
      {"self_several_tiles_causal", 2, 1, 70, 70, 8, 8, true},
      {"self_odd_width", 2, 3, 5, 5, 11, 11, true},
      {"self_mask_by_column", 2, 3, 4, 4, 8, 8, false, Mask({2, 1, 1, 4}, List({1, 1, 0, 1, 0, 0, 1, 0}))},
      {"self_fully_masked_row", 1, 2, 3, 3, 4, 4, false, Mask({3, 3}, List({1, 1, 0, 0, 0, 0, 1, 1, 1}))},
  };
}

// The same self-attention with query, key and value in one tensor.
std::vector<OpCase> PackedCases(const Case& shape, const Attributes& apart) {
  const Shape y = {shape.batch, shape.rows, shape.heads * shape.width};
  const Shape log_sum_exp = {shape.batch, shape.heads, shape.rows};
  const OperandCase qkv = Variable({shape.batch, shape.rows, 3 * shape.heads * shape.width});
  Attributes attributes = apart;
  attributes.Set("heads", shape.heads);
  OpCase forward{"packed_attention/" + shape.name, "packed_attention", attributes, {qkv}, {F32(y), F32(log_sum_exp)}};
  forward.f32_results = {1};
  std::vector<std::size_t> from = {1};
  if (shape.mask.has_value()) from.push_back(4);
  OpCase backward{"packed_attention_grad/" + shape.name,
                  "packed_attention_grad",
                  attributes,
                  {Fixed(y), qkv, Fixed(y, Computed("packed_attention", 0, from)),
                   Fixed(log_sum_exp, Computed("packed_attention", 1, from))},
                  {qkv.spec}};
  backward.f32_operands = {3};
  for (OpCase* op_case : {&forward, &backward}) {
    if (shape.mask.has_value()) op_case->operands.push_back(*shape.mask);
  }
  return {forward, backward};
}

}  // namespace

std::vector<OpCase> AttentionCases() {
  std::vector<OpCase> cases;
  for (const Case& shape : AttentionShapes()) {
    const auto& [name, b, h, t, s, d, e, causal, mask, scale] = shape;
    const Attributes attributes = {{"scale", scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(d))},
                                   {"causal", causal}};
    const OperandCase query = Variable({b, h, t, d});
    const OperandCase key = Variable({b, h, s, d});
    const OperandCase value = Variable({b, h, s, e});
    const Shape y = {b, h, t, e};
    const Shape log_sum_exp = {b, h, t};
    OpCase forward{"attention/" + name, "attention", attributes, {query, key, value}, {F32(y), F32(log_sum_exp)}};
    if (mask.has_value()) forward.operands.push_back(*mask);
    forward.f32_results = {1};
    cases.push_back(forward);

    std::vector<std::size_t> from = {1, 2, 3};
    if (mask.has_value()) from.push_back(5);
    OpCase backward{"attention_grad/" + name,
                    "attention_grad",
                    attributes,
                    {Variable(y), query, key, value, Variable(log_sum_exp, Computed("attention", 1, from))},
                    {query.spec, key.spec, value.spec}};
    if (mask.has_value()) backward.operands.push_back(*mask);
    backward.f32_operands = {4};
    cases.push_back(backward);
    if (t != s || d != e) continue;
    for (OpCase& packed : PackedCases(shape, attributes)) cases.push_back(std::move(packed));
  }
  return cases;
}

}  // namespace mpc::op_cases
