// Every operation that may be in a region, alone in one, on the table of operation cases, in each form of this binary.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "compiler/dialect/dialect.h"
#include "tests/compiler/codegen/fusion_kernel_device.h"
#include "tests/compiler/cpu_operation_device.h"
#include "tests/compiler/op_case_module.h"
#include "tests/kernels/kernel_checks.h"

namespace mpc::test {
namespace {

using op_cases::OpCase;

bool IsFusible(const OpCase& op_case, DType dtype) { return FusionKernelDevice::IsFusible(SpecOf(op_case, dtype)); }

bool Reduces(const OpCase& op_case) {
  auto module = ForwardModule(ThreadContext(), op_case, DType::kF32);
  bool reduces = false;
  module->walk([&](FusibleOpInterface op) { reduces |= !op.getReductions().empty(); });
  return reduces;
}

class FusionOperation : public testing::TestWithParam<std::string> {};

TEST_P(FusionOperation, MatchesReferenceWithinDerivedBounds) {
  for (const FusionForm& form : FusionForms()) {
    const FusionKernelDevice device(form);
    ForEachCase(GetParam(), [&](const OpCase& op_case, DType dtype) {
      if (IsFusible(op_case, dtype)) ExpectMatchesReference(device, op_case, dtype);
    });
  }
}

// Element by element the code is that of kernels/scalar, so only a NaN may have another payload.
TEST_P(FusionOperation, ElementsHaveTheBitsOfTheCpu) {
  const std::vector<FusionForm> forms = FusionForms();
  // Where the CPU has no kernel written by hand, its bits are those of the product's form on the host, which would be
  // compared with itself: the form with narrower vectors is instead. Whether those bits are right, the test above asks
  // the reference, with derived bounds, and element_emission_test the formulas of kernels/scalar, bit by bit.
  const bool is_cpu = !HasCpuKernel(GetParam()) && forms.front().target.backend == codegen::Backend::Host;
  const FusionKernelDevice device(forms[is_cpu ? 1 : 0]);
  ForEachCase(GetParam(), [&](const OpCase& op_case, DType dtype) {
    if (!IsFusible(op_case, dtype) || Reduces(op_case)) return;
    const std::vector<reference::Tensor> inputs = op_cases::MakeInputs(op_case, dtype);
    const auto generated = RunKernel(device, op_case, dtype, inputs);
    const auto kernel = RunKernel(CpuOperations(), op_case, dtype, inputs);
    ASSERT_TRUE(generated.ok()) << generated.status();
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    const std::vector<TensorSpec> specs = op_cases::ResultSpecs(op_case, dtype);
    for (std::size_t r = 0; r < specs.size(); ++r) {
      const reference::Tensor ours = reference::FromStorage(specs[r], (*generated)[r].data());
      const reference::Tensor theirs = reference::FromStorage(specs[r], (*kernel)[r].data());
      for (std::size_t i = 0; i < ours.values.size(); ++i) {
        const double a = ours.values[i], b = theirs.values[i];
        const bool equal = std::memcmp(&a, &b, sizeof a) == 0 || (std::isnan(a) && std::isnan(b));
        ASSERT_TRUE(equal) << "result " << r << " [" << i << "]: " << a << ", the CPU gives " << b;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, FusionOperation, testing::ValuesIn(ReferenceNames()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace mpc::test
