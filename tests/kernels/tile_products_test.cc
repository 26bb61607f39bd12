// Products on tiles, with the instructions of AMX emulated where the processor has none.
#include "kernels/cpu/tile_products.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/panel_matmul.h"
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

/// Numbers of bf16 of any size that a float can have, subnormal ones and infinities among them.
std::vector<std::uint16_t> DrawnBits(std::size_t count, std::mt19937& engine) {
  std::vector<std::uint16_t> bits(count);
  for (std::uint16_t& value : bits) value = static_cast<std::uint16_t>(engine());
  return bits;
}

// Where the processor has tiles, this compares them with their emulation bit for bit.
TEST_F(TileProducts, HaveTheBitsOfTheirEmulation) {
  constexpr std::size_t kSide = cpu::kTileRows;
  std::mt19937 engine(7);
  const cpu::TileScope scope;
  for (int trial = 0; trial < 200; ++trial) {
    const std::vector<std::uint16_t> a = DrawnBits(2 * kSide * kSide, engine), b = DrawnBits(2 * kSide * kSide, engine);
    std::vector<float> c(kSide * kSide);
    for (float& value : c) value = std::bit_cast<float>(static_cast<std::uint32_t>(engine()));
    std::vector<float> expected = c;
    MultiplyPairsInSoftware(a.data(), b.data(), expected.data());
    cpu::AddTileBlock({.a = reinterpret_cast<const TilePair*>(a.data()),
                       .a_stride = cpu::kTilePairs,
                       .a_below = 0,
                       .a_behind = 0,
                       .panels = reinterpret_cast<const TilePair*>(b.data()),
                       .panel_size = 0,
                       .c = c.data(),
                       .c_stride = cpu::kPanel,
                       .two_rows = false,
                       .two_columns = false},
                      nullptr, 1);
    for (std::size_t i = 0; i < c.size(); ++i) {
      if (std::isnan(expected[i])) {
        EXPECT_TRUE(std::isnan(c[i])) << i;
      } else {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(c[i]), std::bit_cast<std::uint32_t>(expected[i])) << i;
      }
    }
  }
}

// Rows of every length, with and without a row that is added. Behind a row nothing is written.
TEST_F(TileProducts, RoundRowsAsStoreFloatsDoes) {
  std::mt19937 engine(3);
  std::uniform_real_distribution<float> uniform(-2, 2);
  constexpr std::int64_t kRows = 3, kStride = 96;
  std::vector<float> numbers(kRows * kStride), addend(kStride);
  for (float& value : numbers) value = uniform(engine);
  for (float& value : addend) value = uniform(engine);
  numbers[1] = std::numeric_limits<float>::quiet_NaN();
  numbers[kStride] = std::numeric_limits<float>::infinity();
  numbers[kStride + 2] = std::bit_cast<float>(0x3f808000u);  // between two numbers of bf16
  for (const DType dtype : {DType::kBF16, DType::kF32, DType::kF16}) {
    for (const std::int64_t columns : {1, 15, 16, 17, 31, 32, 33, 64, 90}) {
      for (const float* added : {static_cast<const float*>(nullptr), static_cast<const float*>(addend.data())}) {
        std::vector<std::byte> stored(numbers.size() * ElementSize(dtype), std::byte{0x55}), expected = stored;
        cpu::StoreRoundedRows(dtype, {numbers.data(), kStride, kRows, columns}, added, stored.data(), kStride);
        for (std::int64_t r = 0; r < kRows; ++r) {
          std::vector<float> sums(numbers.begin() + r * kStride, numbers.begin() + r * kStride + columns);
          for (std::size_t j = 0; added != nullptr && j < sums.size(); ++j) sums[j] += added[j];
          cpu::StoreFloats(dtype, sums.data(), expected.data(), r * kStride, columns);
        }
        EXPECT_EQ(stored, expected) << DTypeName(dtype) << ", columns " << columns;
      }
    }
  }
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
  std::string activation = "none";
};

OpCase CaseOf(const Product& product) {
  const auto& [m, k, n, transpose_a, transpose_b, addend_rank, is_f32, activation] = product;
  const auto f32 = [](Shape shape) { return TensorSpec{DType::kF32, std::move(shape)}; };
  OpCase op_case;
  op_case.name = "matmul/tiles";
  op_case.op = "matmul";
  op_case.attributes = {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}, {"activation", activation}};
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

// Strips of rows and of columns, and what is left of them.
TEST_F(TileProducts, OfMatricesMatchTheReference) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      ExpectTilesMatchTheReference({70, 205, 41, transpose_a, transpose_b});
      ExpectTilesMatchTheReference({41, 301, 70, transpose_a, transpose_b, 2, true});
      ExpectTilesMatchTheReference({601, 39, 30, transpose_a, transpose_b, 1, true});
      ExpectTilesMatchTheReference({30, 40, 601, transpose_a, transpose_b, 2});
    }
  }
  ExpectTilesMatchTheReference({4500, 3, 18, true, false, 1});
}

// More terms than a chunk has, and so many that a strip of half a megabyte is one block.
TEST_F(TileProducts, OfLongSumsMatchTheReference) {
  ExpectTilesMatchTheReference({17, 8200, 33, false, false, 2});
  ExpectTilesMatchTheReference({33, 8200, 3, true, true, 1, true, "gelu"});
  ExpectTilesMatchTheReference({3, 4100, 520, true, false});
}

// What is left of columns fills a panel of a block, or both in part.
TEST_F(TileProducts, OfMatricesAreActivated) {
  for (const std::int64_t n : {3, 16, 17, 35}) {
    ExpectTilesMatchTheReference({40, 33, n, false, false, 0, false, "gelu"});
    ExpectTilesMatchTheReference({n, 33, 40, false, true, 1, true, "relu"});
  }
}

// Rows of the result begin anywhere in a cache line, or all with a whole one.
TEST_F(TileProducts, OfMatricesHaveTheSameBitsPastTheCaches) {
  for (const bool is_f32 : {false, true}) {
    for (const auto& [m, n] : {std::pair{33, 601}, {601, 96}, {601, 48}, {601, 33}}) {
      const OpCase op_case = CaseOf({m, 5, n, false, true, 1, is_f32});
      const std::vector<reference::Tensor> inputs = op_cases::MakeInputs(op_case, DType::kBF16);
      const auto run = [&](std::size_t streamed_bytes) {
        const auto make = [=](const KernelSpec& spec) { return cpu::MakeTileMatmul(spec, streamed_bytes); };
        return RunKernel(*CpuKernelsMadeBy(make), op_case, DType::kBF16, inputs);
      };
      const auto cached = run(cpu::kStreamedBytes), streamed = run(0);
      ASSERT_TRUE(cached.ok() && streamed.ok()) << cached.status() << streamed.status();
      EXPECT_EQ(*cached, *streamed) << m << "x" << n;
    }
  }
}

TEST_F(TileProducts, AddToAMatrixWhereItLies) {
  const OpCase op_case = CaseOf({17, 8200, 33, false, false, 2});
  const auto device = CpuKernelsChosen(kOnTiles);
  ASSERT_TRUE(device->MayAlias("matmul", 0, 2));
  ExpectMatchesReference(*device, op_case, DType::kBF16, {.aliases = {2}, .output_used = {}});
}

/// The choice of the rules for a product.
std::string RuleOf(const Product& product, DType dtype = DType::kBF16) {
  const std::vector<std::string> choices = cpu::CandidateChoices(SpecOf(CaseOf(product), dtype));
  return choices.empty() ? "" : choices.front();
}

// docs/cpu.md has the times that these rules come from.
TEST_F(TileProducts, AreTheRuleWhereTheyAreFaster) {
  EXPECT_EQ(RuleOf({384, 1024, 1536, true, false}), kOnTiles) << "a^T by rows, as in a weight's gradient";
  EXPECT_EQ(RuleOf({50257, 1024, 384, true, false}), kOnTiles);
  EXPECT_EQ(RuleOf({1024, 384, 50257, false, true}), kOnTiles) << "a vocabulary";
  EXPECT_NE(RuleOf({1024, 384, 1536, false, false}), kOnTiles) << "the library is as fast";
  EXPECT_EQ(RuleOf({64, 384, 50257, false, false}), kOnTiles);
  EXPECT_NE(RuleOf({2048, 512, 32, true, false}), kOnTiles) << "few columns";
  EXPECT_NE(RuleOf({1, 384, 50257, false, true}), kOnTiles) << "few rows";
  EXPECT_NE(RuleOf({128, 4096, 128, true, false}), kOnTiles) << "long sums of few results";
  EXPECT_EQ(RuleOf({2048, 8200, 4096, true, false}), kOnTiles) << "sums of 32 MiB";
  EXPECT_NE(RuleOf({2048, 8200, 4112, true, false}), kOnTiles) << "sums of more, from chunk to chunk";
  EXPECT_EQ(RuleOf({2048, 8192, 4112, true, false}), kOnTiles) << "one chunk";
  EXPECT_NE(RuleOf({384, 1024, 1536, true, false}, DType::kF32), kOnTiles);
}

TEST_F(TileProducts, AreTheRuleOfAttentionThatFillsThem) {
  const auto rule_of = [](const Shape& shape) {
    KernelSpec spec;
    spec.name = "attention";
    spec.attributes = {{"scale", 0.125}, {"causal", true}};
    spec.inputs.assign(3, {DType::kBF16, shape});
    spec.outputs = {{DType::kBF16, shape}, {DType::kF32, {shape[0], shape[1], shape[2]}}};
    return cpu::CandidateChoices(spec).front();
  };
  EXPECT_EQ(rule_of({4, 6, 256, 64}), kOnTiles);
  EXPECT_EQ(rule_of({1, 2, 32, 16}), kOnTiles);
  EXPECT_EQ(rule_of({1, 2, 16, 32}), kOnTiles);
  EXPECT_NE(rule_of({8, 4, 16, 16}), kOnTiles) << "few scores";
  EXPECT_NE(rule_of({8, 4, 256, 8}), kOnTiles) << "heads that fill half a tile";
  EXPECT_NE(rule_of({8, 4, 8, 128}), kOnTiles) << "rows that fill half a tile";
}

/// The gradient of attention of one head.
OpCase AttentionGradOf(std::int64_t rows, std::int64_t columns, bool is_causal) {
  constexpr std::int64_t kWidth = 40, kValueWidth = 24;
  const auto variable = [](Shape shape) {
    return op_cases::OperandCase{{DType::kF32, std::move(shape)}, op_cases::Uniform(-1, 1)};
  };
  const op_cases::OperandCase query = variable({1, 1, rows, kWidth}), key = variable({1, 1, columns, kWidth}),
                              value = variable({1, 1, columns, kValueWidth}), dy = variable({1, 1, rows, kValueWidth});
  OpCase op_case;
  op_case.name = "attention_grad/tiles";
  op_case.op = "attention_grad";
  op_case.attributes = {{"scale", 0.25}, {"causal", is_causal}};
  op_case.operands = {
      dy, query, key, value, {{DType::kF32, {1, 1, rows}}, op_cases::Computed("attention", 1, {1, 2, 3})}};
  op_case.results = {query.spec, key.spec, value.spec};
  op_case.f32_operands = {4};
  return op_case;
}

// Several shares of the gradients of key and value, the last of them short. Some rows begin behind the columns that
// earlier ones have read, and some read nothing.
TEST_F(TileProducts, OfAttentionAddSharesOfManyRows) {
  const auto device = CpuKernelsChosen(kOnTiles);
  for (const bool is_causal : {false, true}) {
    ExpectMatchesReference(*device, AttentionGradOf(300, 300, is_causal), DType::kBF16);
    ExpectMatchesReference(*device, AttentionGradOf(171, 203, is_causal), DType::kBF16);
    ExpectMatchesReference(*device, AttentionGradOf(331, 171, is_causal), DType::kBF16);
  }
}

}  // namespace
}  // namespace mpc::test
