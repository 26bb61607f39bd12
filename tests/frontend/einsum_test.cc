// Einstein's summation, made of products and movement.
#include "frontend/graph/einsum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/graph/einsum_equation.h"
#include "tests/frontend/error_of.h"
#include "tests/frontend/numeric_gradient.h"

namespace mpc {
namespace {

using ::testing::ElementsAre;
using testing::ErrorOf;
using testing::ExpectGradient;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using testing::Values;

/// The sum over every index of every label, in f64.
std::vector<float> ByDefinition(const std::string& equation, const std::vector<Tensor>& operands) {
  std::vector<Shape> shapes;
  std::vector<std::vector<float>> values;
  for (const Tensor& operand : operands) {
    shapes.push_back(operand.shape());
    values.push_back(operand.ToFloats());
  }
  const internal::EinsumEquation read = *internal::ReadEinsumEquation(equation, shapes);
  std::int64_t size = 1, count = 1;
  for (const internal::AxisLabel label : read.result) size *= read.extents.at(label);
  for (const auto& [label, extent] : read.extents) count *= extent;
  std::vector<double> sums(static_cast<std::size_t>(size), 0.0);
  for (std::int64_t at = 0; at < count; ++at) {
    std::map<internal::AxisLabel, std::int64_t> index;
    std::int64_t rest = at;
    for (const auto& [label, extent] : read.extents) {
      index[label] = rest % extent;
      rest /= extent;
    }
    double product = 1;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      std::int64_t offset = 0;
      for (std::size_t axis = 0; axis < shapes[i].size(); ++axis) {
        offset = offset * shapes[i][axis] + (shapes[i][axis] == 1 ? 0 : index[read.operands[i][axis]]);
      }
      product *= values[i][static_cast<std::size_t>(offset)];
    }
    std::int64_t place = 0;
    for (const internal::AxisLabel label : read.result) place = place * read.extents.at(label) + index[label];
    sums[static_cast<std::size_t>(place)] += product;
  }
  return {sums.begin(), sums.end()};
}

TEST(Einsum, IsTheSumOfItsDefinition) {
  const std::vector<std::pair<const char*, std::vector<Shape>>> cases = {
      {"ij,jk->ik", {{2, 3}, {3, 4}}},
      {"ij,jk", {{2, 3}, {3, 4}}},
      {"ij,kj->ki", {{2, 3}, {4, 3}}},
      {"ji,jk->ik", {{3, 2}, {3, 4}}},
      {"bij,bjk->bik", {{2, 3, 4}, {2, 4, 2}}},
      {"bhtd,bhsd->bhts", {{2, 2, 3, 4}, {2, 2, 5, 4}}},
      {"bthd,bshd->bhts", {{2, 3, 2, 4}, {2, 5, 2, 4}}},
      {"ibj,bjk->kbi", {{3, 2, 4}, {2, 4, 2}}},
      {"...ij,...jk->...ik", {{2, 3, 4}, {5, 2, 4, 2}}},
      {"...ij,jk", {{2, 3, 4}, {4, 2}}},
      {"...i->...", {{2, 3, 4}}},
      {"i,j->ij", {{2}, {3}}},
      {"i,i->", {{4}, {4}}},
      {"ij,ij->ij", {{2, 3}, {2, 3}}},
      {"ij,j->ij", {{2, 3}, {3}}},
      {"ij,ik->", {{2, 3}, {2, 4}}},
      {"ij->ji", {{2, 3}}},
      {"ij->", {{2, 3}}},
      {"ba", {{2, 3}}},
      {"ii->i", {{3, 3}}},
      {"ii", {{3, 3}}},
      {"iij,jk->ik", {{3, 3, 2}, {2, 4}}},
      {"iii->i", {{2, 2, 2}}},
      {"bibi->ib", {{2, 3, 2, 3}}},
      {"ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 2}}},
      {"ij,ij,ik->jk", {{2, 3}, {2, 3}, {2, 4}}},
      {" i j , j k -> i k ", {{2, 3}, {3, 4}}},
      {"ij,jk->ik", {{2, 1}, {3, 4}}},
      {"bij,bjk->bik", {{1, 3, 4}, {2, 4, 2}}},
      {"Aa,aB->BA", {{2, 3}, {3, 4}}},
  };
  for (const auto& [equation, shapes] : cases) {
    std::vector<Tensor> operands;
    for (const Shape& shape : shapes) operands.push_back(Values(shape, static_cast<std::int64_t>(operands.size())));
    const Tensor y = einsum(equation, operands);
    ASSERT_TRUE(y.status().ok()) << equation << ": " << y.status();
    // At most 12 products below 1 are summed in f32.
    EXPECT_THAT(y.ToFloats(), Pointwise(FloatNear(12 * 0x1p-22f), ByDefinition(equation, operands))) << equation;
  }
  EXPECT_EQ(einsum("ibj,bjk->kbi", {Values({3, 2, 4}), Values({2, 4, 5})}).shape(), Shape({5, 2, 3}));
  EXPECT_EQ(einsum("ij,jk", {Values({2, 3}), Values({3, 4})}).shape(), Shape({2, 4}));
  EXPECT_EQ(einsum("...ij,...jk", {Values({2, 3, 4}), Values({5, 1, 4, 6})}).shape(), Shape({5, 2, 3, 6}));
  EXPECT_EQ(einsum("ii", {Values({3, 3})}).rank(), 0);
  EXPECT_THAT(einsum("ii->i", {Tensor::From({1.0f, 2.0f, 3.0f, 4.0f}, {2, 2})}).ToFloats(), ElementsAre(1, 4));
}

TEST(Einsum, HasTheDerivativesOfDifferences) {
  const Tensor a = Values({2, 3, 4}, 1), b = Values({2, 4, 2}, 2);
  ExpectGradient([&](const Tensor& a) { return einsum("bij,bjk->kbi", {a, b}); }, a);
  ExpectGradient([&](const Tensor& b) { return einsum("bij,bjk->kbi", {a, b}); }, b);
  ExpectGradient([](const Tensor& x) { return einsum("ij,kj,i->ki", {x, x, Values({2}, 3)}); }, Values({2, 3}));
  ExpectGradient([](const Tensor& x) { return einsum("iji->ij", {x}); }, Values({2, 3, 2}));
  ExpectGradient([](const Tensor& x) { return einsum("i,j->ij", {x, x}); }, Values({3}));
}

TEST(Einsum, NamesWhatIsWrongWithAnEquation) {
  const Tensor x = Values({2, 3}), y = Values({3, 4});
  const auto error = [&](const char* equation) { return ErrorOf(einsum(equation, {x, y})); };
  EXPECT_THAT(error("ij->i"), HasSubstr("einsum equation \"ij->i\" has 1 terms for 2 operands"));
  EXPECT_THAT(error("ij,j2->i"), HasSubstr("has \"2\", which is no letter, \",\", \"->\" or \"...\""));
  EXPECT_THAT(error("ij,.jk->i"), HasSubstr("has the term \".jk\" for an operand of rank 2"));
  EXPECT_THAT(error("ij,.j->i"), HasSubstr("has \".\", which is no letter"));
  EXPECT_THAT(error("ij,j->i"), HasSubstr("has the term \"j\" for an operand of rank 2"));
  EXPECT_THAT(error("...ijk,jk->i"), HasSubstr("has the term \"...ijk\" for an operand of rank 2"));
  EXPECT_THAT(error("......,jk->"), HasSubstr("has the term \"......\" for an operand of rank 2"));
  EXPECT_THAT(error("ij,ik->jk"), HasSubstr("gives \"i\" the extents 2 and 3"));
  EXPECT_THAT(ErrorOf(einsum("ii->i", {Values({1, 3})})),
              HasSubstr("gives \"i\" the extents 1 and 3 in the term \"ii\""));
  EXPECT_THAT(ErrorOf(einsum("iji,i->j", {Values({3, 2, 1}), Values({3})})),
              HasSubstr("gives \"i\" the extents 3 and 1 in the term \"iji\""));
  EXPECT_THAT(error("i...,k...->ik"), HasSubstr("gives an axis of \"...\" the extents 3 and 4"));
  EXPECT_THAT(error("ij,jk->iz"), HasSubstr("has \"z\" in its result and in no operand"));
  EXPECT_THAT(error("ij,jk->ii"), HasSubstr("has \"i\" twice in its result"));
  EXPECT_THAT(error("ij,jk->i->k"), HasSubstr("has more than one \"->\""));
  EXPECT_THAT(error("ij,jk-i"), HasSubstr("rank 2"));
  EXPECT_THAT(ErrorOf(einsum("i......->i", {Values({2, 3, 4, 5})})), HasSubstr("has \"...\" twice in one term"));
  EXPECT_THAT(ErrorOf(einsum("", {})), HasSubstr("einsum takes at least one operand"));
}

}  // namespace
}  // namespace mpc
