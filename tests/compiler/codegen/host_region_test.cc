// Regions as host code, in shapes that leave vectors and tiles partly filled.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/compiler/codegen/compiled_fusion.h"
#include "tests/compiler/codegen/fusion_check.h"

namespace mpc::test {
namespace {

struct Form {
  int rows, columns;
  const char* type;
};

// The types in `text`: FF is whole, of the storage type, F32 in f32, BB in i1; RL, RR and LL have one value a row, of
// the storage type, f32 and i32; CL and CC one a column, of the storage type and f32; SS is a single f32.
std::string Spell(const std::string& text, const Form& form) {
  const std::string r = absl::StrCat(form.rows), c = absl::StrCat(form.columns);
  return absl::StrReplaceAll(text, {{"F32", absl::StrCat("tensor<", r, "x", c, "xf32>")},
                                    {"FF", absl::StrCat("tensor<", r, "x", c, "x", form.type, ">")},
                                    {"BB", absl::StrCat("tensor<", r, "x", c, "xi1>")},
                                    {"LL", absl::StrCat("tensor<", r, "xi32>")},
                                    {"RL", absl::StrCat("tensor<", r, "x1x", form.type, ">")},
                                    {"RR", absl::StrCat("tensor<", r, "xf32>")},
                                    {"CL", absl::StrCat("tensor<", c, "x", form.type, ">")},
                                    {"CC", absl::StrCat("tensor<", c, "xf32>")},
                                    {"SS", "tensor<f32>"}});
}

/// The code's: as wide as this processor's, half as wide, with results stored around the caches.
enum class Kind { kHost, kNarrow, kStreamed };

codegen::CodeTarget TargetOf(Kind kind) {
  return kind == Kind::kHost ? HostTarget() : kind == Kind::kNarrow ? NarrowTarget() : StreamedTarget();
}

class HostFusion : public testing::TestWithParam<std::tuple<int, int, const char*, Kind>> {
 protected:
  Form form() const {
    const auto& [rows, columns, type, kind] = GetParam();
    return {rows, columns, type};
  }
  void Expect(const std::string& text, int aliases = -1) {
    ExpectRegionIsItsOperations(Spell(text, form()), TargetOf(std::get<3>(GetParam())), aliases);
  }
};

TEST_P(HostFusion, ElementsOfAFlatSpace) {
  Expect(R"(func.func @f(%x: FF, %y: FF) -> (FF, FF, BB) {
    %r:3 = mpc.fusion(%x, %y) {
    ^bb0(%a: FF, %b: FF):
      %s = mpc.add %a, %b : (FF, FF) -> FF
      %t = mpc.tanh %s : (FF) -> FF
      %u = mpc.mul %t, %b : (FF, FF) -> FF
      %g = mpc.greater %u, %s : (FF, FF) -> BB
      mpc.yield %u, %s, %g : FF, FF, BB
    } : (FF, FF) -> (FF, FF, BB)
    return %r#0, %r#1, %r#2 : FF, FF, BB })",
         4);
}

TEST_P(HostFusion, BiasOfEachColumn) {
  Expect(R"(func.func @f(%x: FF, %b: CL) -> FF {
    %r = mpc.fusion(%x, %b) {
    ^bb0(%a: FF, %c: CL):
      %s = mpc.add %a, %c : (FF, CL) -> FF
      %t = mpc.relu %s : (FF) -> FF
      mpc.yield %t : FF
    } : (FF, CL) -> FF
    return %r : FF })");
}

TEST_P(HostFusion, FactorOfEachRow) {
  Expect(R"(func.func @f(%x: FF, %b: RL) -> FF {
    %r = mpc.fusion(%x, %b) {
    ^bb0(%a: FF, %c: RL):
      %d = mpc.sigmoid %c : (RL) -> RL
      %s = mpc.mul %a, %d : (FF, RL) -> FF
      %t = mpc.add_scalar %s {value = 1.0 : f32} : (FF) -> FF
      mpc.yield %t : FF
    } : (FF, RL) -> FF
    return %r : FF })");
}

TEST_P(HostFusion, LayerNormOfASum) {
  Expect(R"(func.func @f(%x: FF, %y: FF, %g: CC, %b: CC) -> (FF, FF, RR, RR, FF) {
    %r:5 = mpc.fusion(%x, %y, %g, %b) {
    ^bb0(%a: FF, %c: FF, %d: CC, %e: CC):
      %s = mpc.add %a, %c : (FF, FF) -> FF
      %n, %m, %i = mpc.layer_norm %s, %d, %e {epsilon = 1.0e-5 : f32} : (FF, CC, CC) -> (FF, RR, RR)
      %t = mpc.relu %n : (FF) -> FF
      mpc.yield %s, %n, %m, %i, %t : FF, FF, RR, RR, FF
    } : (FF, FF, CC, CC) -> (FF, FF, RR, RR, FF)
    return %r#0, %r#1, %r#2, %r#3, %r#4 : FF, FF, RR, RR, FF })",
         form().rows == 1 || form().columns == 1 ? -1 : 6);
}

TEST_P(HostFusion, LayerNormAndItsGradient) {
  Expect(R"(func.func @f(%x: FF, %y: FF, %g: CC) -> (FF, RR, RR, FF, CC, CC) {
    %r:6 = mpc.fusion(%x, %y, %g) {
    ^bb0(%a: FF, %c: FF, %d: CC):
      %n, %m, %i = mpc.layer_norm %c, %d, %d {epsilon = 1.0e-5 : f32} : (FF, CC, CC) -> (FF, RR, RR)
      %q, %o, %p = mpc.layer_norm_grad %a, %c, %d, %m, %i : (FF, FF, CC, RR, RR) -> (FF, CC, CC)
      mpc.yield %n, %m, %i, %q, %o, %p : FF, RR, RR, FF, CC, CC
    } : (FF, FF, CC) -> (FF, RR, RR, FF, CC, CC)
    return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5 : FF, RR, RR, FF, CC, CC })");
}

TEST_P(HostFusion, BatchNormThenSumAndRelu) {
  Expect(R"(func.func @f(%x: FF, %y: FF, %g: CC, %b: CC) -> (FF, CC, CC, CC, FF) {
    %r:5 = mpc.fusion(%x, %y, %g, %b) {
    ^bb0(%a: FF, %c: FF, %d: CC, %e: CC):
      %n, %m, %v, %i = mpc.batch_norm_train %a, %d, %e {data_format = "NHWC", epsilon = 1.0e-5 : f32}
        : (FF, CC, CC) -> (FF, CC, CC, CC)
      %s = mpc.add %n, %c : (FF, FF) -> FF
      %t = mpc.relu %s : (FF) -> FF
      mpc.yield %n, %m, %v, %i, %t : FF, CC, CC, CC, FF
    } : (FF, FF, CC, CC) -> (FF, CC, CC, CC, FF)
    return %r#0, %r#1, %r#2, %r#3, %r#4 : FF, CC, CC, CC, FF })");
}

TEST_P(HostFusion, BiasGradientOfARelu) {
  Expect(R"(func.func @f(%x: FF, %y: FF) -> (FF, CL, CL) {
    %r:3 = mpc.fusion(%x, %y) {
    ^bb0(%a: FF, %c: FF):
      %d = mpc.relu_grad %a, %c : (FF, FF) -> FF
      %s = mpc.reduce_sum %d {axes = array<i64: 0>} : (FF) -> CL
      %n = mpc.neg %s : (CL) -> CL
      mpc.yield %d, %s, %n : FF, CL, CL
    } : (FF, FF) -> (FF, CL, CL)
    return %r#0, %r#1, %r#2 : FF, CL, CL })");
}

TEST_P(HostFusion, CrossEntropyOfClasses) {
  if (form().columns < 10) GTEST_SKIP() << "labels are 0 to 9";
  Expect(R"(func.func @f(%x: FF, %y: LL) -> (SS, RR) {
    %r:2 = mpc.fusion(%x, %y) {
    ^bb0(%a: FF, %c: LL):
      %d, %e = mpc.softmax_cross_entropy %a, %c {reduction = "mean"} : (FF, LL) -> (SS, RR)
      mpc.yield %d, %e : SS, RR
    } : (FF, LL) -> (SS, RR)
    return %r#0, %r#1 : SS, RR })");
}

TEST_P(HostFusion, SoftmaxThenItsSumOfEverything) {
  Expect(R"(func.func @f(%x: FF) -> (FF, SS, F32) {
    %r:3 = mpc.fusion(%x) {
    ^bb0(%a: FF):
      %d = mpc.softmax %a {axis = -1 : i64} : (FF) -> FF
      %q = mpc.mul %d, %d : (FF, FF) -> F32
      %e = mpc.reduce_sum %q {axes = array<i64: 0, 1>} : (F32) -> SS
      %s = mpc.mul %q, %e : (F32, SS) -> F32
      mpc.yield %d, %e, %s : FF, SS, F32
    } : (FF) -> (FF, SS, F32)
    return %r#0, %r#1, %r#2 : FF, SS, F32 })");
}

std::string NameOf(const testing::TestParamInfo<HostFusion::ParamType>& info) {
  const auto& [rows, columns, type, kind] = info.param;
  constexpr const char* kNames[] = {"", "_narrow", "_streamed"};
  return absl::StrCat(rows, "x", columns, type, kNames[static_cast<int>(kind)]);
}

INSTANTIATE_TEST_SUITE_P(OddSizes, HostFusion,
                         testing::Combine(testing::Values(1, 3, 100), testing::Values(1, 3, 17, 64, 1023),
                                          testing::Values("f32", "f16", "bf16"), testing::Values(Kind::kHost)),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(
    ManyTiles, HostFusion,
    testing::Values(std::tuple(5001, 6, "f32", Kind::kHost), std::tuple(5003, 10, "bf16", Kind::kHost),
                    std::tuple(4097, 33, "f16", Kind::kNarrow), std::tuple(3, 40000, "f32", Kind::kHost),
                    std::tuple(70, 5000, "f32", Kind::kNarrow), std::tuple(1, 300001, "f32", Kind::kHost),
                    std::tuple(5001, 7, "f32", Kind::kStreamed), std::tuple(70, 5001, "bf16", Kind::kStreamed)),
    NameOf);
INSTANTIATE_TEST_SUITE_P(HalfWidth, HostFusion,
                         testing::Combine(testing::Values(3, 65), testing::Values(3, 17, 84),
                                          testing::Values("f32", "bf16"), testing::Values(Kind::kNarrow)),
                         NameOf);
// Rows that begin at every place in a cache line; of 64 elements at one, of less than 64 stored as they come.
INSTANTIATE_TEST_SUITE_P(AroundTheCaches, HostFusion,
                         testing::Combine(testing::Values(1, 40), testing::Values(17, 64, 65, 79, 1030),
                                          testing::Values("f32", "f16", "bf16"), testing::Values(Kind::kStreamed)),
                         NameOf);

}  // namespace
}  // namespace mpc::test
