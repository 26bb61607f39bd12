// SerialLibrary (kernels/cpu/onednn_common.h) leaves OpenMP, which all of the process shares, as it was. What the
// library throws in a loop reaches the caller (kernels/cpu/onednn_calls.h).
#include <gtest/gtest.h>
#include <omp.h>

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <thread>
#include <vector>

#include "kernels/cpu/kernel.h"
#include "kernels/cpu/onednn_calls.h"
#include "kernels/cpu/onednn_common.h"
#include "kernels/cpu/parallel.h"

namespace mpc::test {
namespace {

using cpu::SerialLibrary;

/// What a thread has set of OpenMP.
struct OpenMpSettings {
  int threads = omp_get_max_threads();
  int dynamic = omp_get_dynamic();
  int active_levels = omp_get_max_active_levels();

  bool operator==(const OpenMpSettings&) const = default;
};

class SerialLibraryAmong : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    cpu::SetNumThreads(3);
    omp_set_num_threads(GetParam());
    before_ = OpenMpSettings();
    ASSERT_EQ(before_.threads, GetParam()) << "loops of our own have their threads apart";
  }
  void TearDown() override {
    cpu::SetNumThreads(threads_);
    omp_set_num_threads(openmp_threads_);
  }

  OpenMpSettings before_;

 private:
  int threads_ = cpu::NumThreads(), openmp_threads_ = omp_get_max_threads();
};

TEST_P(SerialLibraryAmong, GivesTheThreadsBack) {
  {
    const SerialLibrary serial;
    EXPECT_EQ(omp_get_max_threads(), 1);
    EXPECT_EQ(cpu::NumThreads(), 3) << "loops of our own keep their threads";
  }
  EXPECT_EQ(OpenMpSettings(), before_);
}

TEST_P(SerialLibraryAmong, GivesThemBackWithTheOutermostAlone) {
  {
    const SerialLibrary outer;
    {
      const SerialLibrary inner;
      EXPECT_EQ(omp_get_max_threads(), 1);
    }
    EXPECT_EQ(omp_get_max_threads(), 1);
  }
  EXPECT_EQ(OpenMpSettings(), before_);
}

TEST_P(SerialLibraryAmong, GivesThemBackWhereThereIsNoSuchPrimitive) {
  // oneDNN throws then.
  EXPECT_THROW(
      {
        const SerialLibrary serial;
        throw std::runtime_error("no such primitive");
      },
      std::runtime_error);
  EXPECT_EQ(OpenMpSettings(), before_);
}

TEST_P(SerialLibraryAmong, LeavesOtherThreadsTheirs) {
  const SerialLibrary serial;
  int elsewhere = 0, within = 0;
  std::thread([&] {
    omp_set_num_threads(7);
    { const SerialLibrary of_the_thread; }
    elsewhere = omp_get_max_threads();
    const SerialLibrary of_the_thread;
    within = omp_get_max_threads();
  }).join();
  EXPECT_EQ(elsewhere, 7);
  EXPECT_EQ(within, 1);
  EXPECT_EQ(omp_get_max_threads(), 1);
}

TEST_P(SerialLibraryAmong, AProductInPartsLeavesThemToTheNext) {
  const KernelSpec spec{
      "matmul", {{DType::kF32, {256, 160}}, {DType::kF32, {160, 120}}}, {{DType::kF32, {256, 120}}}, {}, {}};
  const auto kernel = cpu::CreateKernel(spec);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ(OpenMpSettings(), before_);
  // 64-byte aligned, as operands are.
  struct alignas(64) Line {
    float values[16];
  };
  std::vector<Line> a(256 * 160 / 16), b(160 * 120 / 16), y(256 * 120 / 16),
      workspace((*kernel)->workspace_bytes() / 64 + 1);
  const void* inputs[] = {a.data(), b.data()};
  void* outputs[] = {y.data()};
  (*kernel)->Run({inputs, outputs, workspace.data()});
  EXPECT_EQ(OpenMpSettings(), before_);
}

INSTANTIATE_TEST_SUITE_P(Threads, SerialLibraryAmong, testing::Values(1, 2, 5));

TEST(FirstError, IsThrownBehindTheLoop) {
  cpu::FirstError error;
  error.Throw();  // there is none yet
  cpu::ParallelFor(64, std::numeric_limits<std::int64_t>::max(), [&](std::int64_t task) {
    error.Catch([task] {
      if (task % 2 != 0) throw std::runtime_error("an odd task");
    });
  });
  EXPECT_THROW(error.Throw(), std::runtime_error);
}

}  // namespace
}  // namespace mpc::test
