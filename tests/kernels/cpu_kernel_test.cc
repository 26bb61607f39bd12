// Every case of the table, in every storage type: the CPU kernels against the reference. Operations that the CPU has
// generated code for and no kernel are in cpu_operations_test. One operation alone:
//   cpu_kernel_test --gtest_filter='*/conv2d'
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cpu/kernel.h"
#include "kernels/state_hash.h"
#include "tests/kernels/acceptance.h"
#include "tests/kernels/attention_checks.h"
#include "tests/kernels/cpu_kernel_device.h"
#include "tests/kernels/gradient_scaling_checks.h"
#include "tests/kernels/group_checks.h"
#include "tests/kernels/kernel_checks.h"

namespace mpc::test {
namespace {

using op_cases::OpCase;
using reference::Tensor;

TEST(Accepts, OneRoundingAndTheArithmeticErrorOnly) {
  const double half_ulp = 0x1p-11;  // of f16 at 1
  EXPECT_TRUE(Accepts(DType::kF16, 1, 1 + half_ulp, 0));
  EXPECT_TRUE(Accepts(DType::kF16, 1 + 2 * half_ulp, 1 + half_ulp, 0));
  EXPECT_FALSE(Accepts(DType::kF16, 1 + 2 * half_ulp, 1, 0x1p-24));
  EXPECT_FALSE(Accepts(DType::kF16, 1 + 2 * half_ulp, 1 + half_ulp, std::nullopt));
  EXPECT_TRUE(Accepts(DType::kF16, INFINITY, 65519.99, 0.02));
  EXPECT_FALSE(Accepts(DType::kF16, INFINITY, 65519, 0.02));
  EXPECT_FALSE(Accepts(DType::kF32, NAN, 1, 1));
  EXPECT_FALSE(Accepts(DType::kF32, 1e-30, 0, 0));
}

class CpuKernel : public testing::TestWithParam<std::string> {};

TEST_P(CpuKernel, MatchesReferenceWithinDerivedBounds) { ExpectMatchesReference(CpuKernels(), GetParam()); }

TEST_P(CpuKernel, EqualRunsGiveEqualBits) { ExpectEqualRunsGiveEqualBits(CpuKernels(), GetParam()); }

TEST_P(CpuKernel, SharedStorageGivesTheBitsOfSeparateStorage) {
  ExpectSharedStorageChangesNothing(CpuKernels(), GetParam());
}

TEST_P(CpuKernel, UnusedResultsChangeNoOther) { ExpectUnusedResultsChangeNoOther(CpuKernels(), GetParam()); }

std::vector<std::string> KernelNames() {
  std::vector<std::string> names;
  for (const std::string_view name : cpu::KernelNames()) {
    // No operations: packed_weights_test and state_hash_test have their claims.
    if (name != kPackWeight && name != kStateHash) names.emplace_back(name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Ops, CpuKernel, testing::ValuesIn(KernelNames()), [](const auto& info) { return info.param; });

TEST(CpuKernels, AreOfOperationsThatHaveAReference) {
  const std::vector<std::string> references = ReferenceNames();
  for (const std::string& name : KernelNames()) {
    EXPECT_NE(std::find(references.begin(), references.end(), name), references.end()) << name;
  }
}

TEST(CpuKernels, RefuseAWordThatTheirAttributeDoesNotTake) {
  const TensorSpec x{DType::kF32, {8}};
  const KernelSpec gelu{"gelu", {x}, {x}, {}, {{"approximate", std::string("exact")}}};
  const absl::Status refused =
      absl::InvalidArgumentError(R"(mpc.gelu: approximate is one of "none", "tanh"; got "exact")");
  EXPECT_EQ(cpu::CreateKernel(gelu).status(), refused);
  const KernelSpec momentum{"momentum", {x, x, x, {}}, {x, x}, {}, {{"shadow", std::string("f64")}}};
  EXPECT_EQ(cpu::CreateGroupKernel({momentum, momentum}).status().code(), absl::StatusCode::kInvalidArgument);
  const KernelSpec random{"random", {{DType::kI64, {}}}, {x}, {}, {}};
  EXPECT_EQ(cpu::CreateKernel(random).status().code(), absl::StatusCode::kInvalidArgument) << "no distribution";
}

TEST(StateUpdate, InPlaceGivesTheBitsOfOutOfPlace) {
  for (const std::string& op : StateUpdates()) ExpectInPlaceGivesTheBitsOfOutOfPlace(CpuKernels(), op);
}

TEST(StateUpdate, FalsePredicateLeavesStateBitsUnchanged) {
  for (const std::string& op : StateUpdates()) ExpectFalsePredicateLeavesStateBitsUnchanged(CpuKernels(), op);
}

TEST(Relu, GivesNoNegativeZero) { ExpectReluGivesNoNegativeZero(CpuKernels()); }

TEST(Optimizers, UnscaleAndClipAsTheOperationsOfTheirOwn) {
  for (const char* op : {"sgd", "momentum", "adam", "adam_weight_decay", "adamw", "lamb"}) {
    ExpectFoldedScalingGivesTheBitsOfSeparateOperations(CpuKernels(), op);
  }
}

// A matrix product has no use for it; neither has an operation that does not exist.
TEST(GroupKernels, AreThoseOfOptimizersWithoutNormsAndOfMessagesBetweenProcesses) {
  std::vector<std::string_view> grouped;
  for (std::string_view name : cpu::KernelNames()) {
    if (cpu::MayGroup(name)) grouped.push_back(name);
  }
  EXPECT_EQ(grouped, (std::vector<std::string_view>{"adam", "adam_weight_decay", "adamw", "all_gather", "all_reduce",
                                                    "all_reduce_max", "momentum", "sgd"}));
  EXPECT_FALSE(cpu::CreateGroupKernel({}).ok());
  const KernelSpec specs[] = {{.name = "matmul", .inputs = {}, .outputs = {}, .output_used = {}, .attributes = {}},
                              {.name = "none", .inputs = {}, .outputs = {}, .output_used = {}, .attributes = {}}};
  for (const KernelSpec& spec : specs) {
    EXPECT_EQ(cpu::CreateGroupKernel({&spec, 1}).status().code(), absl::StatusCode::kUnimplemented) << spec.name;
  }
}

TEST(GroupKernels, GiveTheBitsOfSingleKernelsWithAnyNumberOfThreads) {
  const int threads = cpu::NumThreads();
  for (const char* op : {"adam", "adam_weight_decay", "adamw", "momentum", "sgd"}) {
    cpu::SetNumThreads(1);
    ExpectGroupsGiveTheBitsOfSingleKernels(CpuKernels(), op);
    cpu::SetNumThreads(3);
    ExpectGroupsGiveTheBitsOfSingleKernels(CpuKernels(), op);
    ExpectAGroupTakes(CpuKernels(), op, 300);
  }
  cpu::SetNumThreads(threads);
}

TEST(PackedAttention, GivesTheBitsOfAttention) { ExpectPackedAttentionGivesTheBitsOfAttention(CpuKernels()); }

TEST(Threads, BitsDoNotDependOnTheirNumber) {
  const int threads = cpu::NumThreads();
  for (const char* op : {"tanh", "add", "dropout", "random", "momentum", "adam", "cast", "lamb", "global_norm",
                         "sum_of_squares", "all_finite", "tensor_statistics", "attention", "attention_grad",
                         "group_norm", "group_norm_grad", "lstm_cell", "lstm_cell_grad"}) {
    ForEachCase(op, [&](const OpCase& op_case, DType dtype) {
      const std::vector<Tensor> inputs = op_cases::MakeInputs(op_case, dtype);
      cpu::SetNumThreads(1);
      const auto one = RunKernel(CpuKernels(), op_case, dtype, inputs);
      cpu::SetNumThreads(std::max(threads, 3));
      const auto many = RunKernel(CpuKernels(), op_case, dtype, inputs);
      ASSERT_TRUE(one.ok() && many.ok()) << one.status() << many.status();
      EXPECT_EQ(*one, *many);
    });
  }
  cpu::SetNumThreads(threads);
}

}  // namespace
}  // namespace mpc::test
