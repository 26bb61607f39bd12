// Operations that the CPU has no kernel written by hand for, each alone in a function, on the table of operation cases:
// the passes make regions of them, in every layout and along every axis. One alone:
//   cpu_operations_test --gtest_filter='*/softmax'
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "compiler/dialect/dialect.h"
#include "kernels/cpu/kernel.h"
#include "tests/compiler/cpu_operation_device.h"
#include "tests/compiler/op_case_module.h"
#include "tests/kernels/acceptance.h"
#include "tests/kernels/kernel_checks.h"

namespace mpc::test {
namespace {

using op_cases::OpCase;

std::vector<std::string> WithoutKernel() {
  std::vector<std::string> names = ReferenceNames();
  names.erase(std::remove_if(names.begin(), names.end(), HasCpuKernel), names.end());
  return names;
}

class GeneratedOperation : public testing::TestWithParam<std::string> {};

TEST_P(GeneratedOperation, MatchesReferenceWithinDerivedBounds) { ExpectMatchesReference(CpuOperations(), GetParam()); }

// Tiles, and so the order of sums, follow from what a region stores: the bits of the others may change.
TEST_P(GeneratedOperation, MatchesReferenceWithoutEachOfItsResults) {
  ExpectMatchesReferenceWithoutAResult(CpuOperations(), GetParam());
}

TEST_P(GeneratedOperation, BitsDoNotDependOnTheNumberOfThreads) {
  const int threads = cpu::NumThreads();
  ForEachCase(GetParam(), [&](const OpCase& op_case, DType dtype) {
    const std::vector<reference::Tensor> inputs = op_cases::MakeInputs(op_case, dtype);
    cpu::SetNumThreads(1);
    const auto one = RunKernel(CpuOperations(), op_case, dtype, inputs);
    cpu::SetNumThreads(3);
    const auto many = RunKernel(CpuOperations(), op_case, dtype, inputs);
    ASSERT_TRUE(one.ok() && many.ok()) << one.status() << many.status();
    EXPECT_EQ(*one, *many);
  });
  cpu::SetNumThreads(threads);
}

INSTANTIATE_TEST_SUITE_P(Ops, GeneratedOperation, testing::ValuesIn(WithoutKernel()),
                         [](const auto& info) { return info.param; });

// What operations say of themselves, which fusion goes by, is what the table of kernels holds.
TEST(GeneratedOperations, AreThoseThatFusionMakesRegionsOf) {
  const auto context = MakeContext();
  for (const std::string& op : ReferenceNames()) {
    bool generated = false;
    ForEachCase(op, [&](const OpCase& op_case, DType dtype) {
      ForwardModule(*context, op_case, dtype)->walk([&](mlir::Operation* made) {
        generated |= made->getName().stripDialect() == op && has<Property::GeneratedOnCpu>(made);
      });
    });
    EXPECT_EQ(generated, !HasCpuKernel(op)) << op;
  }
}

}  // namespace
}  // namespace mpc::test
