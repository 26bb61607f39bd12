#include "kernels/cpu/row_products.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/kernels/row_product_cases.h"

namespace mpc::test {
namespace {

using Operands = ProductOperands;

TEST(RowProducts, AreOneChainOfFusedMultiplyAdds) {
  for (const Operands& operands : DrawnProducts()) {
    SCOPED_TRACE(operands.Name());
    const auto& [rows, depth, columns, a, b, b_transposed] = operands;
    const std::int64_t stride = operands.c_stride();
    for (const bool packs_transpose : {false, true}) {
      std::vector<float> panels(static_cast<std::size_t>(stride * depth), 1.0f), c = operands.C();
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

TEST(RowProducts, OfPairsAreWithinTheBoundOfAChain) {
  if (!cpu::MultipliesPairs()) GTEST_SKIP() << "needs AVX512_BF16";
  ExpectProductsWithinTheBoundOfAChain<cpu::Bf16Pair>();
}

TEST(RowProducts, OfPairsHaveTheNaNsAndInfinitiesOfTheirTerms) {
  if (!cpu::MultipliesPairs()) GTEST_SKIP() << "needs AVX512_BF16";
  ExpectNaNsAndInfinitiesOfTerms<cpu::Bf16Pair>();
}

TEST(RowProducts, OfPairsTakeSubnormalNumbersAsZero) {
  if (!cpu::MultipliesPairs()) GTEST_SKIP() << "needs AVX512_BF16";
  ExpectSubnormalNumbersCountAsZero<cpu::Bf16Pair>();
}

}  // namespace
}  // namespace mpc::test
