#include "tests/kernels/gradient_scaling_checks.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/kernels/kernel_checks.h"

namespace mpc::test {
namespace {

using op_cases::OpCase;
using reference::Tensor;

/// A case and the values of its operands.
struct Problem {
  OpCase op_case;
  std::vector<Tensor> inputs;
};

/// `op` on a gradient and a scalar, in f32.
void Apply(const KernelDevice& device, const std::string& op, const Attributes& attributes, const Tensor& scalar,
           DType dtype, Tensor& gradient) {
  const TensorSpec wide{DType::kF32, gradient.spec.shape};
  OpCase step{op, op, attributes, {{gradient.spec}, {scalar.spec}}, {wide}};
  step.f32_operands = {1};
  if (gradient.spec.dtype == DType::kF32) step.f32_operands.push_back(0);
  step.operands[0].spec.dtype = DType::kF32;
  step.f32_results = {0};
  const auto bits = RunKernel(device, step, dtype, {gradient, scalar});
  ASSERT_TRUE(bits.ok()) << bits.status();
  gradient = reference::FromStorage(wide, (*bits)[0].data());
}

void Drop(Problem& problem, std::size_t position) {
  problem.inputs.erase(problem.inputs.begin() + static_cast<std::ptrdiff_t>(position));
  problem.op_case.operands.erase(problem.op_case.operands.begin() + static_cast<std::ptrdiff_t>(position));
}

/// The same update on a gradient that other operations have unscaled and clipped.
Problem Unfolded(const KernelDevice& device, const OpCase& op_case, DType dtype) {
  Problem problem{op_case, op_cases::MakeInputs(op_case, dtype)};
  const bool momentum_like = op_case.op == "sgd" || op_case.op == "momentum";
  const std::size_t position = momentum_like ? 2 : 3;
  std::size_t scalar = op_case.op == "momentum" ? 4 : op_case.op == "sgd" || op_case.op == "adam_weight_decay" ? 5 : 6;
  Tensor& gradient = problem.inputs[position];
  if (op_case.attributes.GetBool("unscale")) {
    Apply(device, "unscale", {}, problem.inputs[scalar], dtype, gradient);
    Drop(problem, scalar);
  }
  if (const double max_norm = op_case.attributes.GetDouble("max_norm"); max_norm > 0) {
    Apply(device, "clip_by_norm", {{"max_norm", max_norm}}, problem.inputs[scalar], dtype, gradient);
    Drop(problem, scalar);
  }
  problem.op_case.attributes.Set("unscale", false);
  problem.op_case.attributes.Set("max_norm", 0.0);
  problem.op_case.f32_operands.push_back(position);
  return problem;
}

}  // namespace

void ExpectFoldedScalingGivesTheBitsOfSeparateOperations(const KernelDevice& device, const std::string& op) {
  int cases = 0;
  ForEachCase(op, [&](const OpCase& op_case, DType dtype) {
    if (!op_case.attributes.GetBool("unscale") && op_case.attributes.GetDouble("max_norm") == 0) return;
    ++cases;
    const auto folded = RunKernel(device, op_case, dtype, op_cases::MakeInputs(op_case, dtype));
    const Problem problem = Unfolded(device, op_case, dtype);
    const auto separate = RunKernel(device, problem.op_case, dtype, problem.inputs);
    ASSERT_TRUE(folded.ok() && separate.ok()) << folded.status() << separate.status();
    EXPECT_EQ(*folded, *separate);
  });
  EXPECT_GT(cases, 0);
}

}  // namespace mpc::test
