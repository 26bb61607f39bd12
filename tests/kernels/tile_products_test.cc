// Products on tiles, with the instructions of AMX emulated where the processor has none.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/kernel.h"
#include "kernels/cpu/tile_matmul.h"
#include "kernels/cpu/tiles.h"
#include "tests/kernels/cpu_kernel_device.h"
#include "tests/kernels/kernel_checks.h"
#include "tests/kernels/row_product_cases.h"
#include "tests/kernels/tile_emulator.h"

namespace mpc::test {
namespace {

using cpu::TilePair;
using op_cases::OpCase;

using cpu::kOnTiles;

class TileProducts : public testing::Test {
 protected:
  void SetUp() override {
    if (!EmulateTiles()) GTEST_SKIP() << "needs AVX-512";
  }
};

TEST_F(TileProducts, AreWithinTheBoundOfAChain) {
  const cpu::TileScope scope;
  ExpectProductsWithinTheBoundOfAChain<TilePair>();
}

TEST_F(TileProducts, HaveTheNaNsAndInfinitiesOfTheirTerms) {
  const cpu::TileScope scope;
  ExpectNaNsAndInfinitiesOfTerms<TilePair>();
}

TEST_F(TileProducts, TakeSubnormalNumbersAsZero) {
  const cpu::TileScope scope;
  ExpectSubnormalNumbersCountAsZero<TilePair>();
}

TEST_F(TileProducts, NeedAScope) {
  std::mt19937 engine(1);
  const ProductOperands operands(1, 1, 1, engine);
  EXPECT_DEATH(ProductOfPairs<TilePair>(operands, false, false), cpu::HasTiles() ? "" : "without a configuration");
}

/// Calls check(op_case, device) for every case of `op` whose kernel may compute on tiles.
template <typename Check>
void ForEachCaseOnTiles(const std::string& op, const Check& check) {
  int count = 0;
  ForEachCase(op, [&](const OpCase& op_case, DType dtype) {
    const std::vector<std::string> choices = cpu::CandidateChoices(SpecOf(op_case, dtype));
    if (std::ranges::count(choices, kOnTiles) == 0) return;
    ++count;
    EXPECT_EQ(dtype, DType::kBF16);
    EXPECT_NE(choices.front(), kOnTiles) << "measured, not assumed";
    check(op_case, *CpuKernelsChosen(kOnTiles));
  });
  EXPECT_GT(count, 5);
}

class OnTiles : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!EmulateTiles()) GTEST_SKIP() << "needs AVX-512";
  }
};

TEST_P(OnTiles, MatchTheReferenceWithinDerivedBounds) {
  ForEachCaseOnTiles(GetParam(), [](const OpCase& op_case, const KernelDevice& device) {
    ExpectMatchesReference(device, op_case, DType::kBF16);
  });
}

TEST_P(OnTiles, GiveTheSameBitsWithAnyNumberOfThreads) {
  const int threads = cpu::NumThreads();
  ForEachCaseOnTiles(GetParam(), [](const OpCase& op_case, const KernelDevice& device) {
    const std::vector<reference::Tensor> inputs = op_cases::MakeInputs(op_case, DType::kBF16);
    cpu::SetNumThreads(1);
    const auto one = RunKernel(device, op_case, DType::kBF16, inputs);
    cpu::SetNumThreads(3);
    const auto several = RunKernel(device, op_case, DType::kBF16, inputs);
    ASSERT_TRUE(one.ok() && several.ok()) << one.status() << several.status();
    EXPECT_EQ(*one, *several);
  });
  cpu::SetNumThreads(threads);
}

INSTANTIATE_TEST_SUITE_P(Ops, OnTiles,
                         testing::Values("attention", "attention_grad", "matmul", "packed_attention",
                                         "packed_attention_grad"),
                         [](const auto& info) { return info.param; });

struct Product {
  std::int64_t m, k, n;
  bool transpose_a, transpose_b;
  int addend_rank = 0;  ///< 0: nothing is added
  bool is_f32 = false;  ///< the result
};

OpCase CaseOf(const Product& product) {
  const auto& [m, k, n, transpose_a, transpose_b, addend_rank, is_f32] = product;
  const auto f32 = [](Shape shape) { return TensorSpec{DType::kF32, std::move(shape)}; };
  OpCase op_case;
  op_case.name = "matmul/tiles";
  op_case.op = "matmul";
  op_case.attributes = {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}};
  op_case.operands = {{f32(transpose_a ? Shape{k, m} : Shape{m, k}), op_cases::Uniform(-1, 1)},
                      {f32(transpose_b ? Shape{n, k} : Shape{k, n}), op_cases::Uniform(-1, 1)}};
  if (addend_rank > 0) {
    op_case.operands.push_back({f32(addend_rank == 1 ? Shape{n} : Shape{m, n}), op_cases::Uniform(-1, 1)});
  }
  op_case.results = {f32({m, n})};
  if (is_f32) op_case.f32_results = {0};
  return op_case;
}

void ExpectTilesMatchTheReference(const Product& product) {
  SCOPED_TRACE(testing::Message() << product.m << "x" << product.k << "x" << product.n << product.transpose_a
                                  << product.transpose_b << product.addend_rank);
  const OpCase op_case = CaseOf(product);
  const int threads = cpu::NumThreads();
  cpu::SetNumThreads(3);
  ExpectMatchesReference(*CpuKernelsChosen(kOnTiles), op_case, DType::kBF16);
  cpu::SetNumThreads(threads);
}

// One chunk of terms and several, strips of rows and of columns, and what is left of each.
TEST_F(TileProducts, OfMatricesMatchTheReference) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      ExpectTilesMatchTheReference({70, 1101, 41, transpose_a, transpose_b});
      ExpectTilesMatchTheReference({41, 2050, 70, transpose_a, transpose_b, 2, true});
      ExpectTilesMatchTheReference({601, 39, 30, transpose_a, transpose_b, 1, true});
      ExpectTilesMatchTheReference({30, 40, 601, transpose_a, transpose_b, 2});
    }
  }
  ExpectTilesMatchTheReference({4500, 3, 18, true, false, 1});
}

// Rows of the result begin anywhere in a cache line.
TEST_F(TileProducts, OfMatricesHaveTheSameBitsPastTheCaches) {
  for (const bool is_f32 : {false, true}) {
    const OpCase op_case = CaseOf({33, 5, 601, false, true, 1, is_f32});
    const std::vector<reference::Tensor> inputs = op_cases::MakeInputs(op_case, DType::kBF16);
    const auto run = [&](std::size_t streamed_bytes) {
      const auto make = [=](const KernelSpec& spec) { return cpu::MakeTileMatmul(spec, streamed_bytes); };
      return RunKernel(*CpuKernelsMadeBy(make), op_case, DType::kBF16, inputs);
    };
    const auto cached = run(cpu::kStreamedBytes), streamed = run(0);
    ASSERT_TRUE(cached.ok() && streamed.ok()) << cached.status() << streamed.status();
    EXPECT_EQ(*cached, *streamed);
  }
}

TEST_F(TileProducts, AddToAMatrixWhereItLies) {
  const OpCase op_case = CaseOf({70, 1101, 41, false, false, 2});
  const auto device = CpuKernelsChosen(kOnTiles);
  ASSERT_TRUE(device->MayAlias("matmul", 0, 2));
  ExpectMatchesReference(*device, op_case, DType::kBF16, {.aliases = {2}, .output_used = {}});
}

}  // namespace
}  // namespace mpc::test
