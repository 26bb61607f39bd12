// Products in f32 by our own loops, on any processor: the rule takes them without AVX-512 alone.
#include "kernels/cpu/panel_matmul.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "kernels/cpu/convert.h"
#include "kernels/cpu/kernel.h"

namespace mpc::test {
namespace {

using Floats = std::vector<float>;

/// An operand in its storage type, and the numbers that it holds.
struct StoredMatrix {
  StoredMatrix(DType type, Shape extents, std::uint32_t seed)
      : spec{type, std::move(extents)}, values(static_cast<std::size_t>(NumElements(spec.shape))), data(spec.bytes()) {
    for (float& value : values) {
      seed = seed * 1664525u + 1013904223u;
      value = static_cast<float>(seed >> 16) * 0x1p-16f - 0.5f;
    }
    Store();
  }
  void Store() {
    cpu::StoreFloats(spec.dtype, values.data(), data.data(), 0, std::ssize(values));
    cpu::LoadFloats(spec.dtype, data.data(), 0, std::ssize(values), values.data());
  }
  TensorSpec spec;
  Floats values;
  std::vector<std::byte> data;
};

struct PanelProduct {
  std::int64_t m, k, n;
  bool transpose_a = false, transpose_b = false;
  DType type = DType::kF32, result = DType::kF32;
  int addend = 0;  ///< 1: a row, 2: a matrix
  std::string activation = "none";

  StoredMatrix A() const { return {type, transpose_a ? Shape{k, m} : Shape{m, k}, 1}; }
  StoredMatrix B() const { return {type, transpose_b ? Shape{n, k} : Shape{k, n}, 2}; }
  StoredMatrix Addend() const { return {DType::kF32, addend == 1 ? Shape{n} : Shape{m, n}, 3}; }
  float AOf(const StoredMatrix& a, std::int64_t i, std::int64_t t) const {
    return a.values[static_cast<std::size_t>(transpose_a ? t * m + i : i * k + t)];
  }
  float BOf(const StoredMatrix& b, std::int64_t t, std::int64_t j) const {
    return b.values[static_cast<std::size_t>(transpose_b ? j * k + t : t * n + j)];
  }
};

Floats Multiply(const PanelProduct& c, const StoredMatrix& a, const StoredMatrix& b, const StoredMatrix& addend) {
  KernelSpec spec{"matmul",
                  {a.spec, b.spec},
                  {{c.result, {c.m, c.n}}},
                  {},
                  {{"transpose_a", c.transpose_a}, {"transpose_b", c.transpose_b}, {"activation", c.activation}}};
  if (c.addend > 0) spec.inputs.push_back(addend.spec);
  auto kernel = cpu::MakePanelMatmul(spec);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  std::vector<std::byte> y(spec.outputs[0].bytes()), workspace((*kernel)->workspace_bytes() + 64);
  const auto place = reinterpret_cast<std::uintptr_t>(workspace.data());
  const void* operands[] = {a.data.data(), b.data.data(), addend.data.data()};
  void* results[] = {y.data()};
  (*kernel)->Run({operands, results, workspace.data() + (64 - place % 64)});
  Floats values(static_cast<std::size_t>(c.m * c.n));
  cpu::LoadFloats(c.result, y.data(), 0, c.m * c.n, values.data());
  return values;
}

/// Each product and addition rounds to 2^-24 of at most the sum of magnitudes, and the result to its type.
void ExpectProduct(const PanelProduct& c) {
  SCOPED_TRACE(testing::Message() << c.m << "x" << c.k << "x" << c.n << " transposed " << c.transpose_a << c.transpose_b
                                  << " of " << DTypeName(c.type) << " to " << DTypeName(c.result) << ", addend "
                                  << c.addend << ", " << c.activation);
  const StoredMatrix a = c.A(), b = c.B(), addend = c.Addend();
  const Floats y = Multiply(c, a, b, addend);
  const double rounding = c.result == DType::kF32 ? 0 : c.result == DType::kF16 ? 0x1p-11 : 0x1p-8;
  for (std::int64_t i = 0; i < c.m; ++i) {
    for (std::int64_t j = 0; j < c.n; ++j) {
      double sum = c.addend == 0 ? 0 : addend.values[static_cast<std::size_t>(c.addend == 1 ? j : i * c.n + j)];
      double magnitude = std::abs(sum);
      for (std::int64_t t = 0; t < c.k; ++t) {
        const double product = static_cast<double>(c.AOf(a, i, t)) * c.BOf(b, t, j);
        sum += product;
        magnitude += std::abs(product);
      }
      if (c.activation == "relu") sum = std::max(sum, 0.0);
      const double error = static_cast<double>(c.k + 2) * magnitude * 0x1p-24;
      const double bound = error + rounding * (std::abs(sum) + error);
      ASSERT_NEAR(y[static_cast<std::size_t>(i * c.n + j)], sum, bound) << i << ", " << j;
    }
  }
}

TEST(PanelMatmul, IsNearSumsInF64) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      ExpectProduct({1, 1, 1, transpose_a, transpose_b});
      ExpectProduct({23, 65, 50, transpose_a, transpose_b});
      ExpectProduct({97, 300, 33, transpose_a, transpose_b});
      ExpectProduct({5, 700, 129, transpose_a, transpose_b, DType::kF16, DType::kF16, 1});
      ExpectProduct({130, 40, 31, transpose_a, transpose_b, DType::kBF16, DType::kBF16, 2});
      ExpectProduct({49, 40, 48, transpose_a, transpose_b, DType::kBF16, DType::kF32, 1, "relu"});
    }
  }
  ExpectProduct({400, 17, 64, false, false, DType::kF32, DType::kF32, 1});
  ExpectProduct({31, 17, 700, false, false, DType::kF32, DType::kF32, 2});
}

// Sums of several chunks lie in the workspace in between.
TEST(PanelMatmul, AddsChunksOfTerms) {
  for (const bool transpose_a : {false, true}) {
    ExpectProduct({26, 4500, 18, transpose_a, false, DType::kF32, DType::kF32, 1, "relu"});
    ExpectProduct({7, 2049, 50, transpose_a, true, DType::kF16, DType::kF16, 2});
  }
}

TEST(PanelMatmul, BitsDoNotDependOnTheNumberOfThreads) {
  const int threads = cpu::NumThreads();
  for (const PanelProduct& c : {PanelProduct{500, 300, 200}, PanelProduct{100, 2500, 600, true, true}}) {
    const StoredMatrix a = c.A(), b = c.B(), addend = c.Addend();
    cpu::SetNumThreads(1);
    const Floats one = Multiply(c, a, b, addend);
    for (const int count : {2, 7}) {
      cpu::SetNumThreads(count);
      EXPECT_EQ(Multiply(c, a, b, addend), one);
    }
  }
  cpu::SetNumThreads(threads);
}

// Zeros fill up panels, and they meet no result.
TEST(PanelMatmul, AnInfinityReachesItsRowAlone) {
  const PanelProduct c{25, 40, 17};
  StoredMatrix a = c.A();
  const StoredMatrix b = c.B(), addend = c.Addend();
  a.values[static_cast<std::size_t>(24 * c.k)] = std::numeric_limits<float>::infinity();
  a.Store();
  const Floats y = Multiply(c, a, b, addend);
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isfinite(y[i]), i < 24 * 17) << i;
}

}  // namespace
}  // namespace mpc::test
