#include "tests/kernels/kernel_checks.h"

#include <cmath>
#include <optional>

#include "kernels/known_attributes.h"
#include "tests/kernels/acceptance.h"

namespace mpc::test {
namespace {

using op_cases::OpCase;
using reference::Tensor;

// The reference's results before any rounding.
std::vector<Tensor> ExactResults(const OpCase& op_case, DType dtype, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> results;
  for (const TensorSpec& spec : op_cases::ResultSpecs(op_case, dtype)) {
    results.push_back({spec, std::vector<double>(static_cast<std::size_t>(spec.num_elements()))});
  }
  reference::Find(op_case.op)(op_case.attributes, inputs, absl::MakeSpan(results));
  return results;
}

// Results that update the operand at their position: all but a shadow.
std::size_t StateResults(const OpCase& op_case) {
  return op_case.results.size() - (op_case.attributes.Get(attribute::kLowCopy) == LowCopy::kNone ? 0 : 1);
}

bool HasFalsePredicate(const OpCase& op_case) {
  const op_cases::OperandCase& last = op_case.operands.back();
  return last.spec.dtype == DType::kBool && last.values.list == std::vector<double>{0};
}

// Runs `op_case` with result i in operand i's storage, as a compiled step does.
absl::StatusOr<ResultBits> RunInPlace(const KernelDevice& device, const OpCase& op_case, DType dtype,
                                      const std::vector<Tensor>& inputs) {
  RunOptions options;
  for (std::size_t i = 0; i < StateResults(op_case); ++i) options.aliases.emplace_back(i);
  return RunKernel(device, op_case, dtype, inputs, options);
}

// `bits` of a tensor with the reference's NaN for every NaN.
std::vector<std::uint8_t> WithOneNan(const TensorSpec& spec, std::vector<std::uint8_t> bits) {
  reference::ToStorage(reference::FromStorage(spec, bits.data()), bits.data());
  return bits;
}

}  // namespace

std::vector<DType> TypesOf(const OpCase& op_case) {
  if (!op_case.low) return {DType::kF32};
  return {DType::kF32, DType::kF16, DType::kBF16};
}

Expectation ExpectationOf(const OpCase& op_case, DType dtype, AttentionArithmetic attention) {
  Expectation expected;
  expected.inputs = op_cases::MakeInputs(op_case, dtype);
  expected.exact = ExactResults(op_case, dtype, expected.inputs);
  const auto& [inputs, exact, errors] = expected;
  if (op_case.op == "attention" || op_case.op == "packed_attention") {
    expected.errors = AttentionErrors(op_case, inputs, exact, attention);
  } else if (op_case.op == "attention_grad" || op_case.op == "packed_attention_grad") {
    expected.errors = AttentionGradErrors(op_case, inputs, attention);
  } else {
    expected.errors = ArithmeticErrors(op_case, inputs, exact);
  }
  return expected;
}

void ExpectMatches(const KernelDevice& device, const OpCase& op_case, DType dtype, const Expectation& expected,
                   const RunOptions& options) {
  const auto& [inputs, exact, errors] = expected;
  const auto bits = RunKernel(device, op_case, dtype, inputs, options);
  ASSERT_TRUE(bits.ok()) << bits.status();
  for (std::size_t r = 0; r < exact.size(); ++r) {
    if (!options.output_used.empty() && !options.output_used[r]) continue;
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

void ExpectMatchesReference(const KernelDevice& device, const OpCase& op_case, DType dtype, const RunOptions& options) {
  ExpectMatches(device, op_case, dtype, ExpectationOf(op_case, dtype, device.attention()), options);
}

void ExpectMatchesReference(const KernelDevice& device, const std::string& op) {
  ForEachCase(op, [&](const OpCase& op_case, DType dtype) { ExpectMatchesReference(device, op_case, dtype); });
}

void ExpectMatchesReferenceWithoutAResult(const KernelDevice& device, const std::string& op) {
  ForEachCase(op, [&](const OpCase& op_case, DType dtype) {
    if (op_case.results.size() < 2) return;
    for (std::size_t unused = 0; unused < op_case.results.size(); ++unused) {
      SCOPED_TRACE("without result " + std::to_string(unused));
      RunOptions options;
      options.output_used.assign(op_case.results.size(), true);
      options.output_used[unused] = false;
      ExpectMatchesReference(device, op_case, dtype, options);
    }
  });
}

void ExpectEqualRunsGiveEqualBits(const KernelDevice& device, const std::string& op, int runs,
                                  void (*before)(int run)) {
  ForEachCase(op, [&](const OpCase& op_case, DType dtype) {
    const std::vector<Tensor> inputs = op_cases::MakeInputs(op_case, dtype);
    std::optional<ResultBits> first;
    for (int run = 0; run < runs; ++run) {
      if (before != nullptr) before(run);
      const auto bits = RunKernel(device, op_case, dtype, inputs);
      ASSERT_TRUE(bits.ok()) << bits.status();
      if (!first) first = *bits;
      EXPECT_EQ(*first, *bits) << "run " << run;
    }
  });
}

void ExpectSharedStorageChangesNothing(const KernelDevice& device, const std::string& op) {
  ForEachCase(op, [&](const OpCase& op_case, DType dtype) {
    const KernelSpec spec = SpecOf(op_case, dtype);
    const std::vector<Tensor> inputs = op_cases::MakeInputs(op_case, dtype);
    const auto separate = RunKernel(device, op_case, dtype, inputs);
    ASSERT_TRUE(separate.ok()) << separate.status();
    for (std::size_t output = 0; output < spec.outputs.size(); ++output) {
      for (std::size_t input = 0; input < spec.inputs.size(); ++input) {
        if (!device.MayAlias(op_case.op, output, input) || spec.inputs[input] != spec.outputs[output]) continue;
        RunOptions options;
        options.aliases.resize(spec.outputs.size());
        options.aliases[output] = input;
        const auto shared = RunKernel(device, op_case, dtype, inputs, options);
        ASSERT_TRUE(shared.ok()) << shared.status();
        EXPECT_EQ(*separate, *shared) << "result " << output << " in operand " << input;
      }
    }
  });
}

void ExpectUnusedResultsChangeNoOther(const KernelDevice& device, const std::string& op) {
  ForEachCase(op, [&](const OpCase& op_case, DType dtype) {
    if (op_case.results.size() < 2) return;
    const std::vector<Tensor> inputs = op_cases::MakeInputs(op_case, dtype);
    const auto all = RunKernel(device, op_case, dtype, inputs);
    ASSERT_TRUE(all.ok()) << all.status();
    for (std::size_t unused = 0; unused < op_case.results.size(); ++unused) {
      RunOptions options;
      options.output_used.assign(op_case.results.size(), true);
      options.output_used[unused] = false;
      const auto some = RunKernel(device, op_case, dtype, inputs, options);
      ASSERT_TRUE(some.ok()) << some.status();
      for (std::size_t r = 0; r < op_case.results.size(); ++r) {
        if (r == unused) continue;
        EXPECT_EQ((*all)[r], (*some)[r]) << "result " << r << " without result " << unused;
      }
    }
  });
}

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

void ExpectInPlaceGivesTheBitsOfOutOfPlace(const KernelDevice& device, const std::string& op) {
  ForEachCase(op, [&](const OpCase& op_case, DType dtype) {
    for (std::size_t i = 0; i < StateResults(op_case); ++i) EXPECT_TRUE(device.MayAlias(op_case.op, i, i)) << i;
    const std::vector<Tensor> inputs = op_cases::MakeInputs(op_case, dtype);
    const auto separate = RunKernel(device, op_case, dtype, inputs);
    const auto in_place = RunInPlace(device, op_case, dtype, inputs);
    ASSERT_TRUE(separate.ok() && in_place.ok()) << separate.status() << in_place.status();
    EXPECT_EQ(*separate, *in_place);
  });
}

void ExpectFalsePredicateLeavesStateBitsUnchanged(const KernelDevice& device, const std::string& op) {
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
    const auto separate = RunKernel(device, op_case, dtype, inputs);
    const auto in_place = RunInPlace(device, op_case, dtype, inputs);
    ASSERT_TRUE(separate.ok() && in_place.ok()) << separate.status() << in_place.status();
    for (std::size_t i = 0; i < op_case.results.size(); ++i) {
      // A shadow is the old parameter, rounded; the device's conversion may give a NaN another payload.
      Tensor kept = inputs[i < StateResults(op_case) ? i : 0];
      kept.spec = op_cases::ResultSpecs(op_case, dtype)[i];
      std::vector<std::uint8_t> old(kept.spec.bytes());
      reference::ToStorage(kept, old.data());
      const bool shadow = i >= StateResults(op_case);
      for (const ResultBits* found : {&*separate, &*in_place}) {
        const std::vector<std::uint8_t> now = shadow ? WithOneNan(kept.spec, (*found)[i]) : (*found)[i];
        EXPECT_EQ(shadow ? WithOneNan(kept.spec, old) : old, now)
            << "result " << i << (found == &*in_place ? " in place" : "");
      }
    }
  });
  EXPECT_GT(skipped, 0) << op;
}

void ExpectReluGivesNoNegativeZero(const KernelDevice& device) {
  const op_cases::Values x = op_cases::List({-0.0, 0, -1, 1, -1e-5, -3e4});
  // -1e-5 times 1e-5 is beneath what f16 holds.
  const OpCase cases[] = {{"relu/zeros", "relu", {}, {{{DType::kF32, {4, 6}}, x}}, {{DType::kF32, {4, 6}}}},
                          {"matmul/zeros",
                           "matmul",
                           {{"activation", std::string("relu")}},
                           {{{DType::kF32, {6, 1}}, x}, {{DType::kF32, {1, 16}}, op_cases::List({1e-5, 1})}},
                           {{DType::kF32, {6, 16}}}}};
  for (const OpCase& op_case : cases) {
    for (DType dtype : TypesOf(op_case)) {
      SCOPED_TRACE(op_case.name + " in " + std::string(DTypeName(dtype)));
      const auto bits = RunKernel(device, op_case, dtype, op_cases::MakeInputs(op_case, dtype));
      ASSERT_TRUE(bits.ok()) << bits.status();
      const TensorSpec spec = op_cases::ResultSpecs(op_case, dtype)[0];
      for (const double value : reference::FromStorage(spec, (*bits)[0].data()).values)
        EXPECT_FALSE(std::signbit(value));
    }
  }
}

std::vector<std::string> ReferenceNames() {
  std::vector<std::string> names;
  for (std::string_view name : reference::Names()) names.emplace_back(name);
  return names;
}

}  // namespace mpc::test
