#include "tests/kernels/row_product_cases.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "kernels/cpu/tile_products.h"
#include "kernels/float16.h"

namespace mpc::test {
namespace {

using cpu::Bf16Pair;
using cpu::TilePair;

std::vector<std::uint16_t> Bf16Of(const std::vector<float>& values) {
  std::vector<std::uint16_t> stored;
  for (const float value : values) stored.push_back(BFloat16(value).bits);
  return stored;
}

std::size_t Size(std::int64_t count) { return static_cast<std::size_t>(count); }

/// a as a left operand, in `pairs`, from its rows or from its transpose.
template <typename Pair>
cpu::LeftMatrix<Pair> LeftOperand(const ProductOperands& operands, bool transposes_rows, std::vector<Pair>& pairs) {
  const auto& [rows, depth, columns, a, b, b_transposed] = operands;
  const std::int64_t length = cpu::LengthOf<Pair>(depth);
  std::vector<std::uint16_t> stored = Bf16Of(a), transposed(stored.size());
  pairs.assign(Size(cpu::PaddedToTile(rows) * length), Pair{});
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t k = 0; k < depth; ++k) {
      const std::uint16_t bits = stored[ProductOperands::At(i, depth, k)];
      transposed[ProductOperands::At(k, rows, i)] = bits;
      Pair& pair = pairs[ProductOperands::At(i, length, k / 2)];
      (k % 2 == 0 ? pair.first : pair.second) = bits;
    }
  }
  if (!transposes_rows) return {pairs.data(), length, 1};
  // Whatever is not stored is not zero.
  Pair other;
  other.first = other.second = 0x7fc0;
  std::fill_n(pairs.begin(), rows * length, other);
  if constexpr (std::is_same_v<Pair, TilePair>) {
    cpu::TransposeRowsTo(transposed.data(), depth, rows, rows, pairs.data(), length);
    return {pairs.data(), length, 1};
  } else {
    cpu::PairRows(transposed.data(), depth, rows, rows, pairs.data(), rows);
    return {pairs.data(), 1, rows};
  }
}

}  // namespace

ProductOperands::ProductOperands(std::int64_t rows, std::int64_t depth, std::int64_t columns, std::mt19937& engine)
    : rows(rows), depth(depth), columns(columns) {
  std::normal_distribution<float> normal;
  const auto draw = [&](std::int64_t count) {
    std::vector<float> values(Size(count));
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

std::string ProductOperands::Name() const {
  return std::to_string(rows) + "x" + std::to_string(depth) + "x" + std::to_string(columns);
}

std::vector<float> ProductOperands::C() const {
  std::vector<float> c(Size(cpu::PaddedToTile(rows) * c_stride()));
  for (std::size_t i = 0; i < c.size(); ++i) c[i] = static_cast<float>(i % 5) - 2;
  return c;
}

std::vector<ProductOperands> DrawnProducts() {
  std::mt19937 engine(18);
  std::vector<ProductOperands> drawn = {
      {1, 1, 1, engine}, {24, 64, 256, engine}, {25, 13, 33, engine}, {12, 2, 32, engine}, {70, 100, 48, engine}};
  std::uniform_int_distribution<std::int64_t> extent(1, 50);
  for (int i = 0; i < 40; ++i) drawn.emplace_back(extent(engine), extent(engine), extent(engine), engine);
  return drawn;
}

template <typename Pair>
std::vector<float> ProductOfPairs(const ProductOperands& operands, bool packs_transpose, bool transposes_rows) {
  const auto& [rows, depth, columns, a, b, b_transposed] = operands;
  const std::int64_t length = cpu::LengthOf<Pair>(depth), stride = operands.c_stride();
  const std::vector<std::uint16_t> stored = Bf16Of(packs_transpose ? b_transposed : b);
  Pair one;
  one.first = one.second = 1;
  std::vector<Pair> panels(Size(stride * length), one), left;
  if (packs_transpose) {
    cpu::PackTransposedPanels({DType::kBF16, stored.data()}, 0, depth, depth, columns, panels.data());
  } else {
    cpu::PackPanels({DType::kBF16, stored.data()}, 0, columns, depth, columns, panels.data());
  }
  const cpu::LeftMatrix<Pair> matrix = LeftOperand(operands, transposes_rows, left);
  std::vector<float> c = operands.C();
  cpu::AddProduct(matrix, rows, depth, panels.data(), depth, columns, c.data(), stride);
  c.resize(Size(rows * stride));
  return c;
}

template <typename Pair>
void ExpectProductsWithinTheBoundOfAChain() {
  for (const ProductOperands& operands : DrawnProducts()) {
    SCOPED_TRACE(operands.Name());
    const auto& [rows, depth, columns, a, b, b_transposed] = operands;
    const std::vector<float> c = ProductOfPairs<Pair>(operands, false, false), start = operands.C();
    const std::int64_t stride = operands.c_stride();
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        double sum = start[ProductOperands::At(i, stride, j)], magnitude = std::abs(sum);
        for (std::int64_t k = 0; k < depth; ++k) {
          const double term = double{a[ProductOperands::At(i, depth, k)]} * b[ProductOperands::At(k, columns, j)];
          sum += term;
          magnitude += std::abs(term);
        }
        const double bound = static_cast<double>(depth + 1) * std::numeric_limits<float>::epsilon() / 2 * magnitude;
        ASSERT_NEAR(c[ProductOperands::At(i, stride, j)], sum, bound) << "row " << i << ", column " << j;
      }
    }
    for (const auto& [packs_transpose, transposes_rows] : {std::pair{true, false}, {false, true}, {true, true}}) {
      EXPECT_EQ(ProductOfPairs<Pair>(operands, packs_transpose, transposes_rows), c)
          << packs_transpose << transposes_rows;
    }
  }
}

template <typename Pair>
void ExpectNaNsAndInfinitiesOfTerms() {
  constexpr std::int64_t kRows = 13, kDepth = 7, kColumns = 18;
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  std::mt19937 engine(5);
  ProductOperands operands(kRows, kDepth, kColumns, engine);
  operands.a[ProductOperands::At(12, kDepth, 6)] = nan;
  operands.a[ProductOperands::At(3, kDepth, 2)] = infinity;
  operands.b[ProductOperands::At(4, kColumns, 17)] = operands.b_transposed[ProductOperands::At(17, kDepth, 4)] = nan;
  for (const bool packs_transpose : {false, true}) {
    for (const bool transposes_rows : {false, true}) {
      const std::vector<float> c = ProductOfPairs<Pair>(operands, packs_transpose, transposes_rows);
      for (std::int64_t i = 0; i < kRows; ++i) {
        for (std::int64_t j = 0; j < kColumns; ++j) {
          const float result = c[ProductOperands::At(i, 32, j)];
          EXPECT_EQ(std::isnan(result), i == 12 || j == 17) << i << ", " << j;
          EXPECT_EQ(std::isinf(result), i == 3 && j != 17) << i << ", " << j;
        }
      }
    }
  }
}

template <typename Pair>
void ExpectSubnormalNumbersCountAsZero() {
  std::mt19937 engine(5);
  ProductOperands operands(1, 2, 1, engine);
  operands.a = {0x1p-127f, 1.0f};
  operands.b = operands.b_transposed = {0x1p127f, 3.0f};
  EXPECT_EQ(ProductOfPairs<Pair>(operands, false, false)[0], operands.C()[0] + 3.0f);
}

template std::vector<float> ProductOfPairs<Bf16Pair>(const ProductOperands&, bool, bool);
template std::vector<float> ProductOfPairs<TilePair>(const ProductOperands&, bool, bool);
template void ExpectProductsWithinTheBoundOfAChain<Bf16Pair>();
template void ExpectProductsWithinTheBoundOfAChain<TilePair>();
template void ExpectNaNsAndInfinitiesOfTerms<Bf16Pair>();
template void ExpectNaNsAndInfinitiesOfTerms<TilePair>();
template void ExpectSubnormalNumbersCountAsZero<Bf16Pair>();
template void ExpectSubnormalNumbersCountAsZero<TilePair>();

}  // namespace mpc::test
