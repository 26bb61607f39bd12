#include "tests/compiler/codegen/fusion_cases.h"

#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace mpc::test {
namespace {

// Types of one shape of space. W: whole, C: a value a column, R: a value a row, S: a single one; then the element type.
class Shapes {
 public:
  Shapes(std::int64_t rows, std::int64_t columns, const std::string& low)
      : whole_(absl::StrCat(rows, "x", columns, "x")),
        column_(absl::StrCat(columns, "x")),
        row_(absl::StrCat(rows, "x")),
        pillar_(absl::StrCat(rows, "x1x")),
        low_(low) {}

  // Spells $W, $C, $R, $P (a value a row, of rank 2), $S for low tensors and $Wf, $Cf, $Rf, $Pf, $Sf for f32, $Wi, ...
  // for i32, $Wl, ... for i64, $Wy, ... for i8, $Wb, ... for i1, $Wd, ... for f64.
  std::string Spelled(const std::string& text) const {
    const std::vector<std::pair<std::string, std::string>> extents = {
        {"$W", whole_}, {"$C", column_}, {"$R", row_}, {"$P", pillar_}, {"$S", ""}};
    const std::vector<std::pair<std::string, std::string>> types = {
        {"f", "f32"}, {"i", "i32"}, {"l", "i64"}, {"y", "i8"}, {"b", "i1"}, {"d", "f64"}, {"", low_}};
    std::map<std::string, std::string> names;
    for (const auto& [letter, sizes] : extents) {
      for (const auto& [suffix, type] : types) names[letter + suffix] = absl::StrCat("tensor<", sizes, type, ">");
    }
    return absl::StrReplaceAll(text, names);
  }

 private:
  std::string whole_, column_, row_, pillar_, low_;
};

class Cases {
 public:
  Cases(std::int64_t rows, std::int64_t columns, const std::string& low)
      : shapes_(rows, columns, low), suffix_(absl::StrCat("_", low, "_", rows, "x", columns)) {}

  FusionCase& Add(const std::string& name, std::vector<FusionOperand> operands, const std::string& body,
                  std::vector<std::string> results) {
    for (FusionOperand& operand : operands) operand.type = shapes_.Spelled(operand.type);
    for (std::string& result : results) result = shapes_.Spelled(result);
    FusionCase& made = cases_.emplace_back();
    made.name = absl::StrCat(name, suffix_);
    made.operands = std::move(operands);
    made.body = shapes_.Spelled(body);
    made.results = std::move(results);
    return made;
  }
  std::vector<FusionCase> Take() { return std::move(cases_); }

 private:
  Shapes shapes_;
  std::string suffix_;
  std::vector<FusionCase> cases_;
};

// Relative distance of two sums of n positive terms, each within n - 1 roundings of the exact one, and of what a few
// more operations make of them; a low result is rounded once more.
double SumBound(std::int64_t n, const std::string& low) {
  const double low_rounding = low == "f16" ? 0x1p-10 : low == "bf16" ? 0x1p-7 : 0;
  return 2 * static_cast<double>(n + 8) * 0x1p-24 + low_rounding;
}

}  // namespace

std::string FusionCase::text() const {
  std::vector<std::string> arguments, inner, types, names, yielded;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    arguments.push_back(absl::StrCat("%x", i, ": ", operands[i].type));
    inner.push_back(absl::StrCat("%a", i, ": ", operands[i].type));
    types.push_back(operands[i].type);
    names.push_back(absl::StrCat("%x", i));
  }
  for (std::size_t i = 0; i < results.size(); ++i) yielded.push_back(absl::StrCat("%r", i));
  const std::string outputs = absl::StrJoin(results, ", ");
  std::vector<std::string> returned;
  for (std::size_t i = 0; i < results.size(); ++i) {
    returned.push_back(results.size() == 1 ? "%y" : absl::StrCat("%y#", i));
  }
  return absl::StrCat("func.func @region(", absl::StrJoin(arguments, ", "), ") -> (", outputs, ") {\n  %y",
                      results.size() == 1 ? "" : absl::StrCat(":", results.size()), " = mpc.fusion(",
                      absl::StrJoin(names, ", "), ") {\n  ^bb0(", absl::StrJoin(inner, ", "), "):\n", body,
                      "    mpc.yield ", absl::StrJoin(yielded, ", "), " : ", outputs, "\n  } : (",
                      absl::StrJoin(types, ", "), ") -> (", outputs, ")\n  return ", absl::StrJoin(returned, ", "),
                      " : ", outputs, "\n}\n");
}

std::vector<FusionCase> ElementwiseRegions(std::int64_t rows, std::int64_t columns, const std::string& low) {
  Cases cases(rows, columns, low);
  cases.Add("bias_relu", {{"$W"}, {"$C"}}, R"(
    %s = mpc.add %a0, %a1 : ($W, $C) -> $W
    %r0 = mpc.relu %s : ($W) -> $W
)",
            {"$W"});
  cases.Add("gelu_chain", {{"$W", Fill::kFinite}, {"$W"}}, R"(
    %g = mpc.gelu %a0 : ($W) -> $W
    %m = mpc.mul %g, %a1 : ($W, $W) -> $W
    %r0 = mpc.tanh %m : ($W) -> $W
    %r1 = mpc.sigmoid %a1 : ($W) -> $W
)",
            {"$W", "$W"});
  cases.Add("divide_sqrt_log", {{"$W"}, {"$W", Fill::kPositive}}, R"(
    %q = mpc.div %a0, %a1 : ($W, $W) -> $W
    %s = mpc.sqrt %a1 : ($W) -> $W
    %l = mpc.log %s : ($W) -> $W
    %r0 = mpc.add %q, %l : ($W, $W) -> $W
)",
            {"$W"});
  cases.Add("rows_and_columns", {{"$W"}, {"$P"}, {"$C"}, {"$S"}}, R"(
    %c = mpc.mul %a2, %a3 : ($C, $S) -> $C
    %m = mpc.mul %a0, %a1 : ($W, $P) -> $W
    %r0 = mpc.add %m, %c : ($W, $C) -> $W
)",
            {"$W"});
  cases.Add("select_and_cast", {{"$Wb", Fill::kBools}, {"$W"}, {"$W"}}, R"(
    %s = mpc.select %a0, %a1, %a2 : ($Wb, $W, $W) -> $W
    %r0 = mpc.cast %s : ($W) -> $Wf
    %r1 = mpc.equal %a1, %a2 : ($W, $W) -> $Wb
)",
            {"$Wf", "$Wb"});
  cases.Add("chosen_labels", {{"$Wb", Fill::kBools}, {"$Wl", Fill::kLabels}, {"$Sl", Fill::kLabels}, {"$W"}}, R"(
    %r0 = mpc.where %a0, %a1, %a2 : ($Wb, $Wl, $Sl) -> $Wl
    %e = mpc.equal %r0, %a2 : ($Wl, $Sl) -> $Wb
    %c = mpc.where %a0, %e, %a0 : ($Wb, $Wb, $Wb) -> $Wb
    %r1 = mpc.stop_gradient %c : ($Wb) -> $Wb
    %z = mpc.mul_scalar %a3 {value = 0.0 : f32} : ($W) -> $W
    %r2 = mpc.where %r1, %a3, %z : ($Wb, $W, $W) -> $W
)",
            {"$Wl", "$Wb", "$W"});
  cases.Add("casts_to_integers", {{"$W"}}, R"(
    %r0 = mpc.cast %a0 : ($W) -> $Wi
    %r1 = mpc.cast %a0 : ($W) -> $Wl
    %r2 = mpc.cast %r0 : ($Wi) -> $Wy
)",
            {"$Wi", "$Wl", "$Wy"});
  cases.Add("dropout", {{"$W"}, {"$Sl", Fill::kLabels}, {"$Si", Fill::kLabels}}, R"(
    %r0 = mpc.dropout %a0, %a1, %a2 {call_site = 3 : i64, p = 5.000000e-01 : f32} : ($W, $Sl, $Si) -> $W
)",
            {"$W"});
  cases.Add("small_results", {{"$C"}, {"$C"}, {"$W"}}, R"(
    %r0 = mpc.mul %a0, %a1 : ($C, $C) -> $C
    %r1 = mpc.add %a2, %r0 : ($W, $C) -> $W
)",
            {"$C", "$W"});
  return cases.Take();
}

std::vector<FusionCase> ReducingRegions(std::int64_t rows, std::int64_t columns, const std::string& low) {
  Cases cases(rows, columns, low);
  const double of_row = SumBound(columns, low), of_all = SumBound(rows * columns, "f32");

  // Rows.
  cases.Add("softmax", {{"$W", Fill::kFinite}}, "    %r0 = mpc.softmax %a0 : ($W) -> $W\n", {"$W"}).relative = of_row;
  FusionCase& residual = cases.Add(
      "residual_layer_norm",
      {{"$W", Fill::kIntegers}, {"$W", Fill::kIntegers}, {"$Cf", Fill::kPositive}, {"$Cf", Fill::kIntegers}}, R"(
    %r0 = mpc.add %a0, %a1 : ($W, $W) -> $W
    %r1, %r2, %r3 = mpc.layer_norm %r0, %a2, %a3 : ($W, $Cf, $Cf) -> ($W, $Rf, $Rf)
)",
      {"$W", "$W", "$Rf", "$Rf"});
  // What beta is added to is at most sqrt(n) gamma.
  residual.relative = of_row;
  residual.absolute = of_row * 2 * std::sqrt(static_cast<double>(columns));
  FusionCase& norm =
      cases.Add("layer_norm", {{"$W", Fill::kIntegers}, {"$Cf", Fill::kPositive}, {"$Cf", Fill::kHalf}}, R"(
    %b = mpc.mul_scalar %a2 {value = 0.000000e+00 : f32} : ($Cf) -> $Cf
    %r0, %r1, %r2 = mpc.layer_norm %a0, %a1, %b : ($W, $Cf, $Cf) -> ($W, $Rf, $Rf)
)",
                {"$W", "$Rf", "$Rf"});
  norm.relative = of_row;
  cases.Add("row_sum", {{"$W", Fill::kIntegers}}, R"(
    %r0 = mpc.reduce_sum %a0 {axes = array<i64: 1>} : ($W) -> $Rf
    %r1 = mpc.reduce_max %a0 {axes = array<i64: 1>} : ($W) -> $R
)",
            {"$Rf", "$R"});
  cases.Add("row_min", {{"$W", Fill::kIntegers}}, "    %r0 = mpc.reduce_min %a0 {axes = array<i64: 1>} : ($W) -> $R\n",
            {"$R"});

  // Columns.
  cases.Add("bias_gradient", {{"$W", Fill::kIntegers}, {"$W", Fill::kIntegers}}, R"(
    %r0 = mpc.relu_grad %a0, %a1 : ($W, $W) -> $W
    %r1 = mpc.reduce_sum %r0 {axes = array<i64: 0>} : ($W) -> $Cf
)",
            {"$W", "$Cf"});
  cases.Add("column_mean_only", {{"$W", Fill::kIntegers}},
            "    %r0 = mpc.reduce_mean %a0 {axes = array<i64: 0>} : ($W) -> $Cf\n", {"$Cf"});
  cases.Add("batch_norm", {{"$W", Fill::kIntegers}, {"$Cf", Fill::kPositive}, {"$Cf"}}, R"(
    %y, %r1, %r2, %r3 = mpc.batch_norm_train %a0, %a1, %a2 : ($W, $Cf, $Cf) -> ($W, $Cf, $Cf, $Cf)
    %r0 = mpc.relu %y : ($W) -> $W
)",
            {"$W", "$Cf", "$Cf", "$Cf"});
  cases.Add("batch_norm_grad",
            {{"$W", Fill::kIntegers},
             {"$W", Fill::kIntegers},
             {"$Cf", Fill::kPositive},
             {"$Cf", Fill::kIntegers},
             {"$Cf", Fill::kHalf}},
            R"(
    %d = mpc.relu_grad %a0, %a1 : ($W, $W) -> $W
    %r0, %r1, %r2 = mpc.batch_norm_train_grad %d, %a1, %a2, %a3, %a4 : ($W, $W, $Cf, $Cf, $Cf) -> ($W, $Cf, $Cf)
)",
            {"$W", "$Cf", "$Cf"});

  // Rows and columns.
  cases.Add(
      "layer_norm_grad",
      {{"$W", Fill::kIntegers},
       {"$W", Fill::kIntegers},
       {"$Cf", Fill::kIntegers},
       {"$Rf", Fill::kIntegers},
       {"$Rf", Fill::kHalf}},
      "    %r0, %r1, %r2 = mpc.layer_norm_grad %a0, %a1, %a2, %a3, %a4 : ($W, $W, $Cf, $Rf, $Rf) -> ($W, $Cf, $Cf)\n",
      {"$W", "$Cf", "$Cf"});

  // Everything.
  cases.Add("sum_of_all", {{"$W", Fill::kIntegers}}, R"(
    %r0 = mpc.reduce_sum %a0 {axes = array<i64: 0, 1>} : ($W) -> $Sf
    %r1 = mpc.neg %a0 : ($W) -> $W
)",
            {"$Sf", "$W"});
  cases.Add("of_the_sum", {{"$W", Fill::kIntegers}}, R"(
    %s = mpc.reduce_sum %a0 {axes = array<i64: 0, 1>} : ($W) -> $Sf
    %n = mpc.neg %s : ($Sf) -> $Sf
    %r0 = mpc.relu %n : ($Sf) -> $Sf
)",
            {"$Sf"});
  cases.Add("scaled_by_the_sum", {{"$W", Fill::kIntegers}}, R"(
    %s = mpc.reduce_sum %a0 {axes = array<i64: 0, 1>} : ($W) -> $Sf
    %f = mpc.cast %a0 : ($W) -> $Wf
    %r0 = mpc.mul %f, %s : ($Wf, $Sf) -> $Wf
)",
            {"$Wf"});
  // What is asked of a gradient while it is made: a bad element, and none.
  for (const auto& [name, fill] : {std::pair{"bad_gradient", Fill::kNumbers}, {"finite_gradient", Fill::kFinite}}) {
    cases.Add(name, {{"$W", fill}, {"$W", fill}, {"$Sf", Fill::kPositive}}, R"(
    %r0 = mpc.sum_n %a0, %a1 : ($W, $W) -> $W
    %r1 = mpc.check_finite %r0, %a2 : ($W, $Sf) -> $Sb
)",
              {"$W", "$Sb"});
  }
  FusionCase& squares =
      cases.Add("squared_gradient", {{"$W", Fill::kIntegers}, {"$W", Fill::kIntegers}, {"$Sf", Fill::kPositive}}, R"(
    %f = mpc.cast %a0 : ($W) -> $Wf
    %r0 = mpc.sum_n %f, %a1 : ($Wf, $W) -> $Wf
    %r1 = mpc.check_finite %r0, %a2 : ($Wf, $Sf) -> $Sb
    %r2 = mpc.sum_of_squares %r0, %a2 : ($Wf, $Sf) -> $Sd
    %r3 = mpc.sum_of_squares %a1 : ($W) -> $Sf
)",
                {"$Wf", "$Sb", "$Sd", "$Sf"});
  squares.relative = of_all;
  FusionCase& huge =
      cases.Add("huge_squares", {{"$Wf", Fill::kHuge}, {"$Wf", Fill::kHalf}, {"$Sf", Fill::kPositive}}, R"(
    %r0 = mpc.mul %a0, %a1 : ($Wf, $Wf) -> $Wf
    %r1 = mpc.sum_of_squares %r0 : ($Wf) -> $Sd
    %r2 = mpc.sum_of_squares %r0, %a2 : ($Wf, $Sf) -> $Sd
)",
                {"$Wf", "$Sd", "$Sd"});
  huge.relative = of_all;
  FusionCase& loss = cases.Add("cross_entropy", {{"$Wf", Fill::kFinite}, {"$Ri", Fill::kLabels}}, R"(
    %r0, %r1 = mpc.softmax_cross_entropy %a0, %a1 {reduction = "mean"} : ($Wf, $Ri) -> ($Sf, $Rf)
)",
                               {"$Sf", "$Rf"});
  loss.relative = of_all;
  loss.absolute = of_all;
  FusionCase& gradient =
      cases.Add("loss_and_gradient", {{"$W", Fill::kFinite}, {"$Ri", Fill::kLabels}, {"$Sf", Fill::kHalf}}, R"(
    %f = mpc.cast %a0 : ($W) -> $Wf
    %r0, %s = mpc.softmax_cross_entropy %f, %a1 {reduction = "mean"} : ($Wf, $Ri) -> ($Sf, $Rf)
    %g = mpc.softmax_cross_entropy_grad %a2, %f, %a1, %s {reduction = "mean"} : ($Sf, $Wf, $Ri, $Rf) -> $Wf
    %r1 = mpc.cast %g : ($Wf) -> $W
)",
                {"$Sf", "$W"});
  // The sum of a row is in the logarithm, and so a relative error of all shares.
  gradient.relative = of_all + of_row;
  gradient.absolute = of_all;
  return cases.Take();
}

}  // namespace mpc::test
