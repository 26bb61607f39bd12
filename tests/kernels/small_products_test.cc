// Small products, which are computed on one thread or in parts (kernels/cpu/onednn_matmul.cc).
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/kernel.h"
#include "kernels/reference/reference.h"
#include "tests/kernels/error_bounds.h"

namespace mpc::test {
namespace {

using Floats = std::vector<float>;
using Bytes = std::vector<std::uint8_t>;

/// What is added to a product.
enum class Addend { kNone, kBias, kMatrix };

struct Product {
  std::int64_t m, k, n;
  bool transpose_a, transpose_b;
  Addend addend;
  DType dtype = DType::kF32;

  std::int64_t addend_elements() const { return addend == Addend::kMatrix ? m * n : n; }
};

std::string NameOf(const testing::TestParamInfo<Product>& info) {
  const Product& p = info.param;
  const char* addend = p.addend == Addend::kNone ? "" : p.addend == Addend::kBias ? "_bias" : "_matrix";
  return absl::StrCat(p.m, "x", p.k, "x", p.n, p.transpose_a ? "_ta" : "", p.transpose_b ? "_tb" : "", addend, "_",
                      std::string(DTypeName(p.dtype)));
}

std::vector<Product> ProductsIn(DType dtype) {
  std::vector<Product> products;
  for (const bool transpose_b : {false, true}) {
    for (const Addend addend : {Addend::kNone, Addend::kBias, Addend::kMatrix}) {
      products.push_back({301, 190, 120, false, transpose_b, addend, dtype});
    }
  }
  return products;
}

std::vector<Product> Products() {
  std::vector<Product> products;
  // Of one part, of two and four, with a smaller one, and of as many rows as the smallest parts have.
  for (const auto& [m, k, n] :
       {std::array<std::int64_t, 3>{250, 84, 10}, {131, 160, 120}, {301, 190, 120}, {128, 256, 64}, {250, 400, 120}}) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        for (const Addend addend : {Addend::kNone, Addend::kBias, Addend::kMatrix}) {
          products.push_back({m, k, n, transpose_a, transpose_b, addend});
        }
      }
    }
  }
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    for (const Product& product : ProductsIn(dtype)) products.push_back(product);
  }
  return products;
}

Floats Values(std::int64_t count, std::uint32_t seed) {
  Floats values(static_cast<std::size_t>(count));
  for (float& value : values) {
    seed = seed * 1664525u + 1013904223u;
    // Of 8 bits, which bf16 holds.
    value = static_cast<float>(seed >> 24) * 0x1p-8f - 0.5f;
  }
  return values;
}

class SmallProduct : public testing::TestWithParam<Product> {
 protected:
  void TearDown() override { cpu::SetNumThreads(threads_); }

  static KernelSpec Spec() {
    const Product& p = GetParam();
    const auto matrix = [&p](std::int64_t rows, std::int64_t columns) { return TensorSpec{p.dtype, {rows, columns}}; };
    KernelSpec spec{
        "matmul",
        {p.transpose_a ? matrix(p.k, p.m) : matrix(p.m, p.k), p.transpose_b ? matrix(p.n, p.k) : matrix(p.k, p.n)},
        {matrix(p.m, p.n)},
        {},
        {{"transpose_a", p.transpose_a}, {"transpose_b", p.transpose_b}}};
    if (p.addend == Addend::kBias) spec.inputs.push_back({p.dtype, {p.n}});
    if (p.addend == Addend::kMatrix) spec.inputs.push_back(matrix(p.m, p.n));
    return spec;
  }

  /// y with `threads` threads.
  Floats Multiply(int threads) const {
    cpu::SetNumThreads(threads);
    const KernelSpec spec = Spec();
    auto kernel = cpu::CreateKernel(spec);
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    std::vector<std::uint8_t> workspace((*kernel)->workspace_bytes() + 64);
    const auto place = reinterpret_cast<std::uintptr_t>(workspace.data());
    const Bytes a = Stored(a_), b = Stored(b_), addend = Stored(addend_);
    Bytes result(spec.outputs[0].bytes());
    const void* inputs[] = {a.data(), b.data(), addend.data()};
    void* outputs[] = {result.data()};
    (*kernel)->Run({inputs, outputs, workspace.data() + (64 - place % 64)});
    const std::vector<double> values = reference::FromStorage(spec.outputs[0], result.data()).values;
    const Floats y(values.begin(), values.end());
    return y;
  }

  Bytes Stored(const Floats& values) const {
    const reference::Tensor tensor{{GetParam().dtype, {static_cast<std::int64_t>(values.size())}},
                                   {values.begin(), values.end()}};
    Bytes bytes(tensor.spec.bytes());
    reference::ToStorage(tensor, bytes.data());
    return bytes;
  }

  float A(std::int64_t row, std::int64_t i) const {
    const Product& p = GetParam();
    return a_[static_cast<std::size_t>(p.transpose_a ? i * p.m + row : row * p.k + i)];
  }
  float B(std::int64_t i, std::int64_t column) const {
    const Product& p = GetParam();
    return b_[static_cast<std::size_t>(p.transpose_b ? column * p.k + i : i * p.n + column)];
  }
  /// What is added to an element of the product.
  float AddendAt(std::int64_t row, std::int64_t column) const {
    const Product& p = GetParam();
    if (p.addend == Addend::kNone) return 0;
    return addend_[static_cast<std::size_t>(p.addend == Addend::kMatrix ? row * p.n + column : column)];
  }

  const Floats a_ = Values(GetParam().m * GetParam().k, 1), b_ = Values(GetParam().k * GetParam().n, 2),
               addend_ = Values(GetParam().addend_elements(), 3);

 private:
  int threads_ = cpu::NumThreads();
};

TEST_P(SmallProduct, IsTheProduct) {
  const Product& p = GetParam();
  const Floats y = Multiply(2);
  for (std::int64_t row = 0; row < p.m; ++row) {
    for (std::int64_t column = 0; column < p.n; ++column) {
      double sum = static_cast<double>(AddendAt(row, column));
      double magnitude = std::abs(sum);
      for (std::int64_t i = 0; i < p.k; ++i) {
        const double term = static_cast<double>(A(row, i)) * static_cast<double>(B(i, column));
        sum += term;
        magnitude += std::abs(term);
      }
      // k products and k additions in any order, each rounded: Higham, Accuracy and Stability, lemma 3.1.
      const double bound = static_cast<double>(p.k + 1) * 0x1p-24 / (1 - static_cast<double>(p.k + 1) * 0x1p-24);
      // Storing rounds once more; f32 is what the sum is in.
      const double stored = p.dtype == DType::kF32 ? 0 : HalfUlp(p.dtype, std::abs(sum) + bound * magnitude);
      ASSERT_NEAR(y[static_cast<std::size_t>(row * p.n + column)], sum, bound * magnitude + stored)
          << row << ", " << column;
    }
  }
}

TEST_P(SmallProduct, HasTheSameBitsWithAnyNumberOfThreads) {
  const Floats one = Multiply(1);
  EXPECT_EQ(Multiply(2), one);
  EXPECT_EQ(Multiply(5), one);
}

INSTANTIATE_TEST_SUITE_P(Products, SmallProduct, testing::ValuesIn(Products()), NameOf);

class WidenedProduct : public SmallProduct {};

// Each of four parts would widen b again, into a workspace of its own; the library may pack it once.
TEST_P(WidenedProduct, IsNotCutIntoParts) {
  const Product& p = GetParam();
  const auto kernel = cpu::CreateKernel(Spec());
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const auto widened = [](std::int64_t elements) { return static_cast<std::size_t>(elements) * sizeof(float); };
  EXPECT_LT((*kernel)->workspace_bytes(), widened(p.m * p.k + 4 * p.k * p.n + p.m * p.n));
}

INSTANTIATE_TEST_SUITE_P(F16, WidenedProduct, testing::ValuesIn(ProductsIn(DType::kF16)), NameOf);

}  // namespace
}  // namespace mpc::test
