#include "kernels/cpu/row_products.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/float16.h"

namespace mpc::test {
namespace {

/// a [rows, depth], b [depth, columns] and its transpose.
struct Operands {
  std::int64_t rows, depth, columns;
  std::vector<float> a, b, b_transposed;

  Operands(std::int64_t rows, std::int64_t depth, std::int64_t columns, std::mt19937& engine)
      : rows(rows), depth(depth), columns(columns) {
    std::normal_distribution<float> normal;
    const auto draw = [&](std::int64_t count) {
      std::vector<float> values(static_cast<std::size_t>(count));
      // What bf16 has: the same numbers in both forms.
      for (float& value : values) value = static_cast<float>(BFloat16(normal(engine)));
      return values;
    };
    a = draw(rows * depth);
    b = draw(depth * columns);
    b_transposed.resize(b.size());
    for (std::int64_t k = 0; k < depth; ++k) {
      for (std::int64_t j = 0; j < columns; ++j) b_transposed[At(j, depth, k)] = b[At(k, columns, j)];
    }
  }

  static std::size_t At(std::int64_t row, std::int64_t columns, std::int64_t column) {
    return static_cast<std::size_t>(row * columns + column);
  }
};

std::vector<std::uint16_t> Bf16Of(const std::vector<float>& values) {
  std::vector<std::uint16_t> stored;
  for (const float value : values) stored.push_back(BFloat16(value).bits);
  return stored;
}

/// Columns of c, which begins with what is added to.
std::int64_t StrideOf(const Operands& operands) { return cpu::PaddedToPanel(operands.columns); }
std::vector<float> Start(const Operands& operands) {
  std::vector<float> c(static_cast<std::size_t>(operands.rows * StrideOf(operands)));
  for (std::size_t i = 0; i < c.size(); ++i) c[i] = static_cast<float>(i % 5) - 2;
  return c;
}

/// c + a b with pairs. The right operand is packed from b or from its transpose, the left one from rows or from its
/// transpose.
std::vector<float> WithPairs(const Operands& operands, bool packs_transpose, bool pairs_rows) {
  const auto& [rows, depth, columns, a, b, b_transposed] = operands;
  const std::int64_t length = cpu::LengthOf<cpu::Bf16Pair>(depth), stride = StrideOf(operands);
  const std::vector<std::uint16_t> stored_a = Bf16Of(a), stored_b = Bf16Of(packs_transpose ? b_transposed : b);
  std::vector<cpu::Bf16Pair> panels(static_cast<std::size_t>(stride * length), {1, 1});
  if (packs_transpose) {
    cpu::PackTransposedPanels({DType::kBF16, stored_b.data()}, 0, depth, depth, columns, panels.data());
  } else {
    cpu::PackPanels({DType::kBF16, stored_b.data()}, 0, columns, depth, columns, panels.data());
  }
  std::vector<cpu::Bf16Pair> left(static_cast<std::size_t>(rows * length));
  cpu::LeftMatrix<cpu::Bf16Pair> matrix{left.data(), length, 1};
  if (pairs_rows) {
    std::vector<std::uint16_t> transposed(stored_a.size());
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t k = 0; k < depth; ++k)
        transposed[Operands::At(k, rows, i)] = stored_a[Operands::At(i, depth, k)];
    }
    cpu::PairRows(transposed.data(), depth, rows, rows, left.data(), rows);
    matrix = {left.data(), 1, rows};
  } else {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t k = 0; k < depth; ++k) {
        cpu::Bf16Pair& pair = left[Operands::At(i, length, k / 2)];
        (k % 2 == 0 ? pair.first : pair.second) = stored_a[Operands::At(i, depth, k)];
      }
    }
  }
  std::vector<float> c = Start(operands);
  cpu::AddProduct(matrix, rows, depth, panels.data(), depth, columns, c.data(), stride);
  return c;
}

std::vector<Operands> Drawn() {
  std::mt19937 engine(18);
  std::vector<Operands> drawn = {{1, 1, 1, engine}, {24, 64, 256, engine}, {25, 13, 33, engine}, {12, 2, 32, engine}};
  std::uniform_int_distribution<std::int64_t> extent(1, 50);
  for (int i = 0; i < 40; ++i) drawn.emplace_back(extent(engine), extent(engine), extent(engine), engine);
  return drawn;
}

std::string Named(const Operands& operands) {
  return std::to_string(operands.rows) + "x" + std::to_string(operands.depth) + "x" + std::to_string(operands.columns);
}

TEST(RowProducts, AreOneChainOfFusedMultiplyAdds) {
  for (const Operands& operands : Drawn()) {
    SCOPED_TRACE(Named(operands));
    const auto& [rows, depth, columns, a, b, b_transposed] = operands;
    const std::int64_t stride = StrideOf(operands);
    for (const bool packs_transpose : {false, true}) {
      std::vector<float> panels(static_cast<std::size_t>(stride * depth), 1.0f), c = Start(operands);
      const std::vector<float> expected = c;
      if (packs_transpose) {
        cpu::PackTransposedPanels({DType::kF32, b_transposed.data()}, 0, depth, depth, columns, panels.data());
      } else {
        cpu::PackPanels({DType::kF32, b.data()}, 0, columns, depth, columns, panels.data());
      }
      cpu::AddProduct(cpu::LeftMatrix<float>{a.data(), depth, 1}, rows, depth, panels.data(), depth, columns, c.data(),
                      stride);
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
          float sum = expected[Operands::At(i, stride, j)];
          for (std::int64_t k = 0; k < depth; ++k) {
            sum = std::fma(a[Operands::At(i, depth, k)], b[Operands::At(k, columns, j)], sum);
          }
          ASSERT_EQ(c[Operands::At(i, stride, j)], sum) << "row " << i << ", column " << j;
        }
      }
    }
  }
}

// A rounding for each term, as it is added.
TEST(RowProducts, OfPairsAreWithinTheBoundOfAChain) {
  if (!cpu::MultipliesPairs()) GTEST_SKIP() << "needs AVX512_BF16";
  for (const Operands& operands : Drawn()) {
    SCOPED_TRACE(Named(operands));
    const auto& [rows, depth, columns, a, b, b_transposed] = operands;
    const std::vector<float> c = WithPairs(operands, false, false), start = Start(operands);
    const std::int64_t stride = StrideOf(operands);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        double sum = start[Operands::At(i, stride, j)], magnitude = std::abs(sum);
        for (std::int64_t k = 0; k < depth; ++k) {
          const double term = double{a[Operands::At(i, depth, k)]} * b[Operands::At(k, columns, j)];
          sum += term;
          magnitude += std::abs(term);
        }
        const double bound = static_cast<double>(depth + 1) * std::numeric_limits<float>::epsilon() / 2 * magnitude;
        ASSERT_NEAR(c[Operands::At(i, stride, j)], sum, bound) << "row " << i << ", column " << j;
      }
    }
    for (const auto& [packs_transpose, pairs_rows] : {std::pair{true, false}, {false, true}, {true, true}}) {
      EXPECT_EQ(WithPairs(operands, packs_transpose, pairs_rows), c) << packs_transpose << pairs_rows;
    }
  }
}

TEST(RowProducts, OfPairsHaveTheNaNsAndInfinitiesOfTheirTerms) {
  if (!cpu::MultipliesPairs()) GTEST_SKIP() << "needs AVX512_BF16";
  constexpr std::int64_t kRows = 13, kDepth = 7, kColumns = 18;
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  std::mt19937 engine(5);
  Operands operands(kRows, kDepth, kColumns, engine);
  operands.a[Operands::At(12, kDepth, 6)] = nan;
  operands.a[Operands::At(3, kDepth, 2)] = infinity;
  operands.b[Operands::At(4, kColumns, 17)] = operands.b_transposed[Operands::At(17, kDepth, 4)] = nan;
  for (const bool packs_transpose : {false, true}) {
    for (const bool pairs_rows : {false, true}) {
      const std::vector<float> c = WithPairs(operands, packs_transpose, pairs_rows);
      for (std::int64_t i = 0; i < kRows; ++i) {
        for (std::int64_t j = 0; j < kColumns; ++j) {
          const float result = c[Operands::At(i, 32, j)];
          EXPECT_EQ(std::isnan(result), i == 12 || j == 17) << i << ", " << j;
          EXPECT_EQ(std::isinf(result), i == 3 && j != 17) << i << ", " << j;
        }
      }
    }
  }
}

TEST(RowProducts, OfPairsTakeSubnormalNumbersAsZero) {
  if (!cpu::MultipliesPairs()) GTEST_SKIP() << "needs AVX512_BF16";
  std::mt19937 engine(5);
  Operands operands(1, 2, 1, engine);
  operands.a = {0x1p-127f, 1.0f};
  operands.b = operands.b_transposed = {0x1p127f, 3.0f};
  EXPECT_EQ(WithPairs(operands, false, false)[0], Start(operands)[0] + 3.0f);
}

}  // namespace
}  // namespace mpc::test
