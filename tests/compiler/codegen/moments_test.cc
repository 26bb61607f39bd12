// The statistics of batch normalisation as generated code, of data that a sum of squares in f32 would lose.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/compiler/codegen/fusion_form.h"
#include "tests/compiler/op_case_module.h"
#include "tests/kernels/error_notation.h"
#include "tests/kernels/kernel_run.h"

namespace mpc::test {
namespace {

// Of 8 rows about one of them, see tests/kernels/batch_norm_error_bounds.cc: of the sum of distances, which are at most
// sqrt(18) deviations in the mean, and of the variance.
constexpr double kMeanRoundings = 9;
constexpr double kVarianceRoundings = 373;

struct Statistics {
  std::vector<float> mean, variance;
};

std::vector<std::uint32_t> BitsOf(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

/// x is [rows, columns]. The second operand is added to it first, so that the sums are those of a computed value.
class Moments {
 public:
  Moments(int rows, int columns) : columns_(columns), context_(MakeContext()) {
    const std::string text = absl::StrReplaceAll(
        R"(func.func @f(%x: XX, %z: XX, %g: CC, %b: CC) -> (XX, CC, CC) {
          %r:3 = mpc.fusion(%x, %z, %g, %b) {
          ^bb0(%a: XX, %c: XX, %d: CC, %e: CC):
            %s = mpc.add %a, %c : (XX, XX) -> XX
            %n, %m, %v, %i = mpc.batch_norm_train %s, %d, %e {data_format = "NHWC", epsilon = 1.0e-5 : f32}
              : (XX, CC, CC) -> (XX, CC, CC, CC)
            mpc.yield %n, %m, %v : XX, CC, CC
          } : (XX, XX, CC, CC) -> (XX, CC, CC)
          return %r#0, %r#1, %r#2 : XX, CC, CC })",
        {{"XX", absl::StrCat("tensor<", rows, "x", columns, "xf32>")},
         {"CC", absl::StrCat("tensor<", columns, "xf32>")}});
    module_ = ParseModule(*context_, text);
    module_->walk([&](FusionOp op) { fusion_ = op; });
  }

  /// In every order of tiles, or of blocks and threads, which must all agree.
  Statistics Compute(const FusionForm& form, std::vector<float> x) const {
    auto loaded = LoadedFusions::Create({fusion_}, form.target, form.provided);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    const LoadedFusion& region = (*loaded)->regions().front();
    Statistics first;
    for (int order = 0; order < form.orders; ++order) {
      const Statistics found = Run(form, region, x, order);
      if (order == 0) first = found;
      EXPECT_EQ(BitsOf(found.mean), BitsOf(first.mean)) << "order " << order;
      EXPECT_EQ(BitsOf(found.variance), BitsOf(first.variance)) << "order " << order;
    }
    return first;
  }

 private:
  Statistics Run(const FusionForm& form, const LoadedFusion& region, std::vector<float>& x, int order) const {
    const auto columns = static_cast<std::size_t>(columns_);
    std::vector<float> zeros(x.size()), gamma(columns, 1), beta(columns);
    GuardedBuffer y(x.size() * sizeof(float));  // aligned, as stores around the caches take it
    Statistics found{std::vector<float>(columns), std::vector<float>(columns)};
    std::vector<double> workspace(region.code.workspace_bytes / sizeof(double) + 1);
    void* operands[] = {x.data(), zeros.data(),      gamma.data(),         beta.data(),
                        y.data(), found.mean.data(), found.variance.data()};
    const absl::Status status = form.run(region, operands, workspace.data(), order);
    EXPECT_TRUE(status.ok()) << status;
    return found;
  }

  int columns_;
  std::unique_ptr<mlir::MLIRContext> context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  FusionOp fusion_;
};

class GeneratedMoments : public testing::TestWithParam<std::size_t> {
 protected:
  static FusionForm form() { return FusionForms()[GetParam()]; }
};

std::vector<float> Normal(int rows, int columns, double mean, double deviation) {
  std::mt19937 generator(7);
  std::normal_distribution<double> draw(mean, deviation);
  std::vector<float> x;
  for (int i = 0; i < rows * columns; ++i) x.push_back(static_cast<float>(draw(generator)));
  return x;
}

void ExpectAccurate(const Statistics& found, const std::vector<float>& x, int rows, int columns) {
  for (int c = 0; c < columns; ++c) {
    double mean = 0, variance = 0, square = 0;
    for (int r = 0; r < rows; ++r) mean += x[static_cast<std::size_t>(r * columns + c)] / static_cast<double>(rows);
    for (int r = 0; r < rows; ++r) {
      const double value = x[static_cast<std::size_t>(r * columns + c)];
      variance += (value - mean) * (value - mean) / rows;
      square += value * value / rows;
    }
    // The result is rounded to f32. What f64 loses of the squares grows with the number of additions.
    const double in_f64 = rows * 0x1p-53 * square;
    const auto i = static_cast<std::size_t>(c);
    EXPECT_NEAR(found.mean[i], mean, kU * (std::abs(mean) + kMeanRoundings * std::sqrt(18 * variance)));
    EXPECT_NEAR(found.variance[i], variance, kVarianceRoundings * kU * variance + in_f64);
  }
}

TEST_P(GeneratedMoments, KeepASmallVarianceAboutALargeMean) {
  const int rows = 1003, columns = 37;
  const std::vector<float> x = Normal(rows, columns, 1e4, 1);
  ExpectAccurate(Moments(rows, columns).Compute(form(), x), x, rows, columns);
}

TEST_P(GeneratedMoments, OneFarRowInATileCostsNothing) {
  const int rows = 256, columns = 16;
  std::vector<float> x = Normal(rows, columns, -3, 0.01);
  // The first row of some visits, and a row between others.
  for (int row : {0, 64, 100}) {
    for (int c = 0; c < columns; ++c) x[static_cast<std::size_t>(row * columns + c)] = 1e6f;
  }
  ExpectAccurate(Moments(rows, columns).Compute(form(), x), x, rows, columns);
}

TEST_P(GeneratedMoments, OfEqualRowsVarianceIsZero) {
  const int rows = 77, columns = 16;
  const std::vector<float> x(static_cast<std::size_t>(rows * columns), 0.5f);
  const Statistics found = Moments(rows, columns).Compute(form(), x);
  for (int c = 0; c < columns; ++c) {
    EXPECT_EQ(found.mean[static_cast<std::size_t>(c)], 0.5f);
    EXPECT_EQ(found.variance[static_cast<std::size_t>(c)], 0);
  }
}

TEST_P(GeneratedMoments, InfinitiesAndNanReachTheStatistics) {
  const int rows = 40, columns = 16;
  const float infinity = std::numeric_limits<float>::infinity();
  for (int row : {0, 1, 8, 39}) {
    std::vector<float> x = Normal(rows, columns, 1, 1);
    x[static_cast<std::size_t>(row * columns + 1)] = infinity;
    x[static_cast<std::size_t>(row * columns + 2)] = -infinity;
    x[static_cast<std::size_t>(row * columns + 3)] = std::numeric_limits<float>::quiet_NaN();
    const Statistics found = Moments(rows, columns).Compute(form(), x);
    EXPECT_TRUE(std::isfinite(found.mean[0]) && std::isfinite(found.variance[0]));
    EXPECT_EQ(found.mean[1], infinity);
    EXPECT_EQ(found.mean[2], -infinity);
    EXPECT_TRUE(std::isnan(found.mean[3]));
    for (std::size_t c : {1u, 2u, 3u}) EXPECT_TRUE(std::isnan(found.variance[c]));
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, GeneratedMoments, testing::Range<std::size_t>(0, FusionForms().size()));

}  // namespace
}  // namespace mpc::test
