// What operations emit for an element, against the arithmetic of kernels/scalar on float: the same bits, for one
// element and for vectors.
#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "compiler/dialect/dialect.h"
#include "kernels/scalar/philox.h"
#include "tests/compiler/codegen/element_cases.h"
#include "tests/compiler/codegen/element_function.h"
#include "tests/compiler/op_case_module.h"

namespace mpc::test {
namespace {

using Case = ElementCase;

/// Operations with steps, which this table does not hold.
const std::set<std::string>& Reducing() {
  static const std::set<std::string> ops = {"reduce_sum",
                                            "reduce_mean",
                                            "reduce_max",
                                            "reduce_min",
                                            "softmax",
                                            "log_softmax",
                                            "softmax_grad",
                                            "log_softmax_grad",
                                            "softmax_cross_entropy",
                                            "mse",
                                            "bce_with_logits",
                                            "layer_norm",
                                            "layer_norm_grad",
                                            "batch_norm_train",
                                            "batch_norm_train_grad",
                                            "batch_norm_infer_grad",
                                            "softmax_cross_entropy_grad",
                                            "prelu_grad",
                                            "reduce_max_grad",
                                            "check_finite",
                                            "sum_of_squares"};
  return ops;
}

/// Where formulas change: signs, subnormals, overflow, thresholds, ties.
const std::vector<float>& SpecialFloats() {
  using Limits = std::numeric_limits<float>;
  static const std::vector<float> values = [] {
    std::vector<float> all;
    for (const float x : {0.0f,
                          1.0f,
                          0.5f,
                          2.0f,
                          2.5f,
                          0.625f,
                          0.6250001f,
                          1e-3f,
                          20.0f,
                          30.0f,
                          88.0f,
                          88.8f,
                          90.0f,
                          104.0f,
                          110.0f,
                          1e10f,
                          0x1p-126f,
                          0x1p-127f,
                          Limits::denorm_min(),
                          Limits::max(),
                          Limits::infinity(),
                          Limits::quiet_NaN()}) {
      all.push_back(x);
      all.push_back(-x);
    }
    return all;
  }();
  return values;
}

std::uint64_t Draw(char kind, std::uint64_t random, bool special) {
  const std::uint64_t low = random & 0xffffffff;
  switch (std::tolower(static_cast<unsigned char>(kind))) {
    case 'b':
      return random & 1;
    case 'i':
      return Word(std::int64_t{special ? static_cast<std::int32_t>(low % 5) - 2 : static_cast<std::int32_t>(low)});
    case 'l':
      return special ? Word(static_cast<std::int64_t>(low % 5) - 2) : random;
    default:
      return special ? Word(SpecialFloats()[low % SpecialFloats().size()]) : low;
  }
}

constexpr std::int64_t kCount = 1 << 14;

/// Half of special values, in all pairs, half of any bits. A scalar operand has one value.
Columns Operands(const Case& c, std::uint64_t seed) {
  Columns columns;
  for (std::size_t k = 0; k < c.operands.size(); ++k) {
    std::vector<std::uint64_t> column;
    const bool scalar = std::isupper(static_cast<unsigned char>(c.operands[k])) != 0;
    for (std::int64_t i = 0; i < kCount; ++i) {
      const auto words = PhiloxBlock(seed, 0, static_cast<std::uint32_t>(k), static_cast<std::uint64_t>(i));
      const std::uint64_t random = std::uint64_t{words[0]} << 32 | words[1];
      column.push_back(scalar && i > 0 ? column[0] : Draw(c.operands[k], random, scalar || i % 2 == 0));
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

bool Equal(char kind, std::uint64_t a, std::uint64_t b) {
  const bool floating = kind == 'f' || kind == 'h' || kind == 'r';
  return a == b || (floating && std::isnan(AsFloat(a)) && std::isnan(AsFloat(b)));
}

/// One column a result.
Columns ExpectedResults(const Case& c, const Columns& operands) {
  Columns results(c.results.size());
  std::vector<std::uint64_t> x(operands.size());
  for (std::int64_t i = 0; i < kCount; ++i) {
    for (std::size_t k = 0; k < x.size(); ++k) x[k] = operands[k][static_cast<std::size_t>(i)];
    const std::vector<std::uint64_t> expected = c.expected(x, i);
    for (std::size_t r = 0; r < results.size(); ++r) results[r].push_back(expected[r]);
  }
  return results;
}

void ExpectSameBits(const Case& c, const Columns& operands, const Columns& expected, const Columns& given) {
  ASSERT_EQ(given.size(), expected.size());
  for (std::size_t i = 0; i < static_cast<std::size_t>(kCount); ++i) {
    for (std::size_t r = 0; r < expected.size(); ++r) {
      ASSERT_TRUE(Equal(c.results[r], given[r][i], expected[r][i]))
          << "element " << i << ", result " << r << ": " << std::hex << given[r][i] << ", the functor gives "
          << expected[r][i] << " of " << operands[0][i] << (operands.size() > 1 ? ", " : "")
          << (operands.size() > 1 ? operands[1][i] : 0);
    }
  }
}

class ElementEmission : public testing::TestWithParam<Case> {};

TEST_P(ElementEmission, HasTheBitsOfTheScalarFunctor) {
  const Case& c = GetParam();
  std::map<unsigned, ElementFunction> functions;
  for (const unsigned lanes : {0u, 2u, 4u, 8u}) {
    functions.emplace(std::piecewise_construct, std::forward_as_tuple(lanes),
                      std::forward_as_tuple(c.op, c.operands, c.results, c.attributes, lanes));
  }
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Columns operands = Operands(c, seed);
    const Columns expected = ExpectedResults(c, operands);
    for (const auto& [lanes, function] : functions) {
      SCOPED_TRACE(testing::Message() << lanes << " lanes, seed " << seed);
      ASSERT_NO_FATAL_FAILURE(ExpectSameBits(c, operands, expected, function.Run(operands, kCount)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ElementEmission, testing::ValuesIn(ElementCases()), [](const auto& info) {
  return info.param.op + "_" + info.param.operands + "_" + std::to_string(info.index);
});

TEST(ElementEmissionTable, HoldsEveryFusibleOperation) {
  std::set<std::string> listed = Reducing();
  for (const Case& c : ElementCases()) listed.insert(c.op);
  auto context = MakeContext();
  for (mlir::RegisteredOperationName name : context->getRegisteredOperations()) {
    if (!name.hasInterface<FusibleOpInterface>()) continue;
    EXPECT_EQ(listed.erase(name.stripDialect().str()), 1u) << name.getStringRef().str() << " has no case";
  }
  EXPECT_TRUE(listed.empty()) << *listed.begin() << " has a case but no interface";
}

}  // namespace
}  // namespace mpc::test
