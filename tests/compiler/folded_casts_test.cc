// An arithmetic operation with a low result gives the bits of the f32 operation and a cast behind it, on every device.
// Cast cleanup makes the one of the other (foldNarrowing).
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "compiler/dialect/dialect.h"
#include "tests/compiler/cpu_operation_device.h"
#include "tests/compiler/op_case_module.h"
#include "tests/cuda/emulated_kernel_device.h"
#include "tests/kernels/kernel_run.h"

namespace mpc::test {
namespace {

using op_cases::OpCase;
using reference::Tensor;

bool IsArithmetic(mlir::MLIRContext& context, const OpCase& op_case) {
  mlir::OwningOpRef<mlir::ModuleOp> module = ForwardModule(context, op_case, DType::kF32);
  bool arithmetic = false;
  module->walk([&](mlir::Operation* op) {
    if (op->getName().getStringRef() == "mpc." + op_case.op) arithmetic = has<Property::Arithmetic>(op);
  });
  return arithmetic;
}

std::vector<std::size_t> AllOf(std::size_t count) {
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < count; ++i) positions.push_back(i);
  return positions;
}

Tensor ResultOf(const KernelDevice& device, const OpCase& op_case, DType dtype, const std::vector<Tensor>& inputs) {
  const absl::StatusOr<ResultBits> bits = RunKernel(device, op_case, dtype, inputs);
  EXPECT_TRUE(bits.ok()) << bits.status();
  const TensorSpec spec = op_cases::ResultSpecs(op_case, dtype)[0];
  return bits.ok() ? reference::FromStorage(spec, (*bits)[0].data()) : Tensor{spec, {}};
}

bool SameNumber(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

void ExpectSame(const Tensor& folded, const Tensor& wide) {
  ASSERT_EQ(folded.values.size(), wide.values.size());
  for (std::size_t i = 0; i < folded.values.size(); ++i) {
    const double cast = reference::RoundTo(folded.spec.dtype, wide.values[i]);
    ASSERT_TRUE(SameNumber(folded.values[i], cast)) << "element " << i << ": " << folded.values[i] << ", not " << cast;
  }
}

TEST(FoldedCasts, GiveTheBitsOfACastBehindTheOperation) {
  const auto context = MakeContext();
  int cases = 0;
  for (const OpCase& op_case : op_cases::AllOpCases()) {
    if (!op_case.low || !IsArithmetic(*context, op_case)) continue;
    ++cases;
    for (const DType dtype : {DType::kF16, DType::kBF16}) {
      for (const bool low_operands : {false, true}) {
        OpCase folded = op_case, wide = op_case;
        if (!low_operands) folded.f32_operands = wide.f32_operands = AllOf(op_case.operands.size());
        wide.f32_results = AllOf(op_case.results.size());
        const std::vector<Tensor> inputs = op_cases::MakeInputs(folded, dtype);
        for (const KernelDevice* device : {&CpuOperations(), &EmulatedKernels()}) {
          SCOPED_TRACE(op_case.name + " to " + std::string(DTypeName(dtype)) + (low_operands ? " of it" : " of f32") +
                       (device == &CpuOperations() ? " on the CPU" : " on CUDA, emulated"));
          ExpectSame(ResultOf(*device, folded, dtype, inputs), ResultOf(*device, wide, dtype, inputs));
          if (HasFailure()) return;
        }
      }
    }
  }
  EXPECT_GT(cases, 20);
}

}  // namespace
}  // namespace mpc::test
