// Every case of the table, in every storage type: the CPU kernels against the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "tests/kernels/acceptance.h"
#include "tests/kernels/error_bounds.h"
#include "tests/kernels/kernel_run.h"

namespace mpc::test {
namespace {

using op_cases::AllOpCases;
using op_cases::OpCase;
using reference::Tensor;

std::vector<DType> TypesOf(const OpCase& op_case) {
  if (!op_case.low) return {DType::kF32};
  return {DType::kF32, DType::kF16, DType::kBF16};
}

// Calls `check(op_case, dtype)` for each case of `op` in each type it runs in.
template <typename Check>
void ForEachCase(const std::string& op, Check check) {
  for (const OpCase& op_case : AllOpCases()) {
    if (op_case.op != op) continue;
    for (DType dtype : TypesOf(op_case)) {
      SCOPED_TRACE(op_case.name + " in " + std::string(DTypeName(dtype)));
      check(op_case, dtype);
    }
  }
}

// The reference's results before any rounding.
std::vector<Tensor> ExactResults(const OpCase& op_case, DType dtype, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> results;
  for (const TensorSpec& spec : op_cases::ResultSpecs(op_case, dtype)) {
    results.push_back({spec, std::vector<double>(static_cast<std::size_t>(spec.num_elements()))});
  }
  reference::Find(op_case.op)(op_case.attributes, inputs, absl::MakeSpan(results));
  return results;
}

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

void ExpectMatchesReference(const OpCase& op_case, DType dtype) {
  const std::vector<Tensor> inputs = op_cases::MakeInputs(op_case, dtype);
  const std::vector<Tensor> exact = ExactResults(op_case, dtype, inputs);
  const auto errors = ArithmeticErrors(op_case, inputs, exact);
  const auto bits = RunKernel(op_case, dtype, inputs);
  ASSERT_TRUE(bits.ok()) << bits.status();
  for (std::size_t r = 0; r < exact.size(); ++r) {
    const Tensor actual = reference::FromStorage(exact[r].spec, (*bits)[r].data());
    int reported = 0;
    for (std::size_t i = 0; i < actual.values.size() && reported < 3; ++i) {
      const std::optional<double> error = errors[r] ? std::optional((*errors[r])[i]) : std::nullopt;
      if (Accepts(exact[r].spec.dtype, actual.values[i], exact[r].values[i], error)) continue;
      ADD_FAILURE() << "result " << r << " [" << i << "]: " << actual.values[i] << ", exactly " << exact[r].values[i]
                    << ", arithmetic error bound " << error.value_or(0);
      ++reported;
    }
  }
}

class CpuKernel : public testing::TestWithParam<std::string> {};

TEST_P(CpuKernel, MatchesReferenceWithinDerivedBounds) { ForEachCase(GetParam(), ExpectMatchesReference); }

TEST_P(CpuKernel, EqualRunsGiveEqualBits) {
  ForEachCase(GetParam(), [](const OpCase& op_case, DType dtype) {
    const std::vector<Tensor> inputs = op_cases::MakeInputs(op_case, dtype);
    const auto first = RunKernel(op_case, dtype, inputs);
    const auto second = RunKernel(op_case, dtype, inputs);
    ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
    EXPECT_EQ(*first, *second);
  });
}

TEST_P(CpuKernel, SharedStorageGivesTheBitsOfSeparateStorage) {
  ForEachCase(GetParam(), [](const OpCase& op_case, DType dtype) {
    const cpu::KernelSpec spec = SpecOf(op_case, dtype);
    const std::vector<Tensor> inputs = op_cases::MakeInputs(op_case, dtype);
    const auto separate = RunKernel(op_case, dtype, inputs);
    ASSERT_TRUE(separate.ok()) << separate.status();
    for (std::size_t output = 0; output < spec.outputs.size(); ++output) {
      for (std::size_t input = 0; input < spec.inputs.size(); ++input) {
        if (!cpu::MayAlias(op_case.op, output, input) || spec.inputs[input] != spec.outputs[output]) continue;
        RunOptions options;
        options.aliases.resize(spec.outputs.size());
        options.aliases[output] = input;
        const auto shared = RunKernel(op_case, dtype, inputs, options);
        ASSERT_TRUE(shared.ok()) << shared.status();
        EXPECT_EQ(*separate, *shared) << "result " << output << " in operand " << input;
      }
    }
  });
}

TEST_P(CpuKernel, UnusedResultsChangeNoOther) {
  ForEachCase(GetParam(), [](const OpCase& op_case, DType dtype) {
    if (op_case.results.size() < 2) return;
    const std::vector<Tensor> inputs = op_cases::MakeInputs(op_case, dtype);
    const auto all = RunKernel(op_case, dtype, inputs);
    ASSERT_TRUE(all.ok()) << all.status();
    for (std::size_t unused = 0; unused < op_case.results.size(); ++unused) {
      RunOptions options;
      options.output_used.assign(op_case.results.size(), true);
      options.output_used[unused] = false;
      const auto some = RunKernel(op_case, dtype, inputs, options);
      ASSERT_TRUE(some.ok()) << some.status();
      for (std::size_t r = 0; r < op_case.results.size(); ++r) {
        if (r == unused) continue;
        EXPECT_EQ((*all)[r], (*some)[r]) << "result " << r << " without result " << unused;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ops, CpuKernel, testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (std::string_view name : reference::Names()) names.emplace_back(name);
                           return names;
                         }()),
                         [](const auto& info) { return info.param; });

TEST(CpuKernels, EveryReferenceOperationHasOne) { EXPECT_EQ(cpu::KernelNames(), reference::Names()); }

const std::vector<std::string>& StateUpdates() {
  static const auto* const names = new std::vector<std::string>{"increment",
                                                                "next_micro_step",
                                                                "accumulate_gradient",
                                                                "batch_norm_running_update",
                                                                "sgd",
                                                                "momentum",
                                                                "adam",
                                                                "adam_weight_decay",
                                                                "adamw",
                                                                "lamb"};
  return *names;
}

// Results that update the operand at their position: all but a shadow.
std::size_t StateResults(const OpCase& op_case) {
  return op_case.results.size() - (op_case.attributes.GetString("shadow", "none") == "none" ? 0 : 1);
}

bool HasFalsePredicate(const OpCase& op_case) {
  const op_cases::OperandCase& last = op_case.operands.back();
  return last.spec.dtype == DType::kBool && last.values.list == std::vector<double>{0};
}

// Runs `op_case` with result i in operand i's storage, as a compiled step does.
absl::StatusOr<std::vector<std::vector<std::uint8_t>>> RunInPlace(const OpCase& op_case, DType dtype,
                                                                  const std::vector<Tensor>& inputs) {
  RunOptions options;
  for (std::size_t i = 0; i < StateResults(op_case); ++i) options.aliases.emplace_back(i);
  return RunKernel(op_case, dtype, inputs, options);
}

TEST(StateUpdate, InPlaceGivesTheBitsOfOutOfPlace) {
  for (const std::string& op : StateUpdates()) {
    ForEachCase(op, [](const OpCase& op_case, DType dtype) {
      for (std::size_t i = 0; i < StateResults(op_case); ++i) EXPECT_TRUE(cpu::MayAlias(op_case.op, i, i)) << i;
      const std::vector<Tensor> inputs = op_cases::MakeInputs(op_case, dtype);
      const auto separate = RunKernel(op_case, dtype, inputs);
      const auto in_place = RunInPlace(op_case, dtype, inputs);
      ASSERT_TRUE(separate.ok() && in_place.ok()) << separate.status() << in_place.status();
      EXPECT_EQ(*separate, *in_place);
    });
  }
}

TEST(StateUpdate, FalsePredicateLeavesStateBitsUnchanged) {
  for (const std::string& op : StateUpdates()) {
    int skipped = 0;
    ForEachCase(op, [&](const OpCase& op_case, DType dtype) {
      if (!HasFalsePredicate(op_case)) return;
      ++skipped;
      std::vector<Tensor> inputs = op_cases::MakeInputs(op_case, dtype);
      // What an overflow leaves behind, in the old state and in what would update it.
      for (Tensor& input : inputs) {
        if (!IsFloating(input.spec.dtype)) continue;
        input.values.front() = std::nan("");
        input.values.back() = -0.0;
      }
      const auto separate = RunKernel(op_case, dtype, inputs);
      const auto in_place = RunInPlace(op_case, dtype, inputs);
      ASSERT_TRUE(separate.ok() && in_place.ok()) << separate.status() << in_place.status();
      for (std::size_t i = 0; i < op_case.results.size(); ++i) {
        // A shadow is the old parameter, rounded.
        Tensor kept = inputs[i < StateResults(op_case) ? i : 0];
        kept.spec = op_cases::ResultSpecs(op_case, dtype)[i];
        std::vector<std::uint8_t> old(kept.spec.bytes());
        reference::ToStorage(kept, old.data());
        EXPECT_EQ(old, (*separate)[i]) << "result " << i;
        EXPECT_EQ(old, (*in_place)[i]) << "result " << i << " in place";
      }
    });
    EXPECT_GT(skipped, 0) << op;
  }
}

TEST(Threads, BitsDoNotDependOnTheirNumber) {
  const int threads = cpu::NumThreads();
  for (const char* op : {"tanh", "add", "dropout", "random", "momentum", "adam", "cast", "lamb", "global_norm",
                         "tensor_statistics", "attention", "attention_grad", "layer_norm", "layer_norm_grad",
                         "group_norm", "group_norm_grad", "lstm_cell", "lstm_cell_grad", "bce_with_logits"}) {
    ForEachCase(op, [&](const OpCase& op_case, DType dtype) {
      const std::vector<Tensor> inputs = op_cases::MakeInputs(op_case, dtype);
      cpu::SetNumThreads(1);
      const auto one = RunKernel(op_case, dtype, inputs);
      cpu::SetNumThreads(std::max(threads, 3));
      const auto many = RunKernel(op_case, dtype, inputs);
      ASSERT_TRUE(one.ok() && many.ok()) << one.status() << many.status();
      EXPECT_EQ(*one, *many);
    });
  }
  cpu::SetNumThreads(threads);
}

}  // namespace
}  // namespace mpc::test
