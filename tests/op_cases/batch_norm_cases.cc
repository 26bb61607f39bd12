#include "absl/strings/str_cat.h"
#include "tests/op_cases/families.h"

namespace mpc::op_cases {
namespace {

struct Normalisation {
  std::string name;
  Shape x;
  std::int64_t channels;
  Attributes attributes;
  Values values = Normal(0.5, 2);
};

std::vector<Normalisation> Normalisations() {
  const Attributes nhwc = {{"data_format", std::string("NHWC")}};
  return {
      {"rank_2", {8, 5}, 5, {}},
      {"rank_2_wide", {32, 120}, 120, {}},
      {"two_elements", {2, 3}, 3, {}},
      {"nchw", {4, 3, 5, 7}, 3, {}},
      {"nhwc", {4, 5, 7, 3}, 3, nhwc},
      {"nhwc_one_channel", {2, 3, 3, 1}, 1, nhwc},
      {"nhwc_16_channels", {8, 9, 9, 16}, 16, nhwc},
      {"one_image", {1, 2, 2, 2}, 2, {}},
      {"large", {16, 6, 28, 28}, 6, {}},
      {"plane_in_parts", {2, 2, 48, 48}, 2, {}},
      {"odd_plane_in_parts", {10, 1, 47, 49}, 1, {}},
      {"nhwc_rows_in_blocks", {4, 17, 16, 64}, 64, nhwc},
      {"nhwc_odd_rows_in_blocks", {3, 16, 17, 33}, 33, nhwc},
      {"epsilon", {4, 3, 3, 3}, 3, {{"epsilon", 1e-3}}},
      // E[x^2] - E[x]^2 would lose most digits of the variance.
      {"mean_beyond_deviation", {16, 4, 4, 4}, 4, {}, Normal(100, 1)},
      {"constant", {4, 2, 3, 3}, 2, {}, List({0.75})},
  };
}

void AddNormalisation(std::vector<OpCase>& cases, const Normalisation& norm) {
  const Shape c = {norm.channels};
  const OperandCase gamma = Variable(c, Uniform(0.5, 1.5));
  const OperandCase mean = Variable(c, Normal(norm.values.a, 0.1));
  const OperandCase variance = Variable(c, Uniform(0.5, 2));
  const bool smooth = norm.name != "constant";  // at variance zero a finite difference says nothing
  const OperandCase x{F32(norm.x), norm.values, smooth};

  OpCase train{"batch_norm_train/" + norm.name,
               "batch_norm_train",
               norm.attributes,
               {x, gamma, Variable(c)},
               {F32(norm.x), F32(c), F32(c), F32(c)}};
  train.f32_operands = {1, 2};
  train.f32_results = {1, 2, 3};
  cases.push_back(train);

  OpCase train_grad{"batch_norm_train_grad/" + norm.name,
                    "batch_norm_train_grad",
                    norm.attributes,
                    {Variable(norm.x), x, gamma, Variable(c, Computed("batch_norm_train", 1, {1, 2, 5})),
                     Variable(c, Computed("batch_norm_train", 3, {1, 2, 5}))},
                    {F32(norm.x), F32(c), F32(c)}};
  train_grad.auxiliary = {Fixed(c)};
  train_grad.f32_operands = {2, 3, 4};
  train_grad.f32_results = {1, 2};
  cases.push_back(train_grad);

  OpCase apply{"batch_norm_apply/" + norm.name,
               "batch_norm_apply",
               norm.attributes,
               {Fixed(norm.x, norm.values), gamma, Fixed(c), mean, variance},
               {F32(norm.x)}};
  apply.f32_operands = {1, 2, 3, 4};
  cases.push_back(apply);

  OpCase infer{"batch_norm_infer/" + norm.name,
               "batch_norm_infer",
               norm.attributes,
               {Variable(norm.x, norm.values), gamma, Variable(c), mean, variance},
               {F32(norm.x)}};
  infer.f32_operands = {1, 2, 3, 4};
  cases.push_back(infer);

  OpCase infer_grad{"batch_norm_infer_grad/" + norm.name,
                    "batch_norm_infer_grad",
                    norm.attributes,
                    {Variable(norm.x), Variable(norm.x, norm.values), gamma, mean, variance},
                    {F32(norm.x), F32(c), F32(c)}};
  infer_grad.f32_operands = {2, 3, 4};
  infer_grad.f32_results = {1, 2};
  cases.push_back(infer_grad);
}

void AddRunningUpdates(std::vector<OpCase>& cases) {
  for (std::int64_t channels : {1, 6, 37}) {
    for (std::int64_t count : {0, 2, 1000}) {  // 0: variances are weighted already
      for (int predicate : {-1, 0, 1}) {       // -1: absent
        const Shape c = {channels};
        OpCase op_case{absl::StrCat("batch_norm_running_update/", channels, "_channels_", count, "_elements",
                                    predicate < 0    ? ""
                                    : predicate == 0 ? "_skipped"
                                                     : "_taken"),
                       "batch_norm_running_update",
                       {{"momentum", 0.9}, {"count", count}},
                       {Fixed(c), Fixed(c, Uniform(0.5, 2)), Fixed(c), Fixed(c, Uniform(0.5, 2))},
                       {F32(c), F32(c)}};
        if (predicate >= 0) op_case.operands.push_back({Bool({}), List({static_cast<double>(predicate)})});
        op_case.low = false;
        cases.push_back(op_case);
        op_case.name += "_of_4_batches";
        op_case.attributes = {{"momentum", 0.9}, {"count", count}, {"batches", std::int64_t{4}}};
        for (std::size_t i : {2, 3}) op_case.operands[i].spec.shape = {4, channels};
        cases.push_back(op_case);
      }
    }
  }
}

}  // namespace

std::vector<OpCase> BatchNormCases() {
  std::vector<OpCase> cases;
  for (const Normalisation& norm : Normalisations()) AddNormalisation(cases, norm);
  AddRunningUpdates(cases);
  return cases;
}

}  // namespace mpc::op_cases
