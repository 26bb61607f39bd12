// The claims that kernels of every device meet, each for all cases of an operation in every storage type. A failure
// names the case and the type.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/kernels/error_bounds.h"
#include "tests/kernels/kernel_device.h"
#include "tests/kernels/kernel_run.h"

namespace mpc::test {

std::vector<DType> TypesOf(const op_cases::OpCase& op_case);

/// Calls `check(op_case, dtype)` for each case of `op` in each type it runs in.
template <typename Check>
void ForEachCase(const std::string& op, const Check& check) {
  for (const op_cases::OpCase& op_case : op_cases::AllOpCases()) {
    if (op_case.op != op) continue;
    for (DType dtype : TypesOf(op_case)) {
      SCOPED_TRACE(op_case.name + " in " + std::string(DTypeName(dtype)));
      check(op_case, dtype);
    }
  }
}

/// What the kernels of a case are to compute: its operands, the unrounded results, the bounds of ArithmeticErrors.
struct Expectation {
  std::vector<reference::Tensor> inputs, exact;
  std::vector<std::optional<ElementErrors>> errors;
};
Expectation ExpectationOf(const op_cases::OpCase& op_case, DType dtype,
                          AttentionArithmetic attention = AttentionArithmetic::kAsWritten);
/// ExpectMatchesReference for several kernels of one case: the reference runs once.
void ExpectMatches(const KernelDevice& device, const op_cases::OpCase& op_case, DType dtype,
                   const Expectation& expected, const RunOptions& options = {});

/// Within the error bounds that are derived for f32 arithmetic, and one rounding.
void ExpectMatchesReference(const KernelDevice& device, const std::string& op);
void ExpectMatchesReference(const KernelDevice& device, const op_cases::OpCase& op_case, DType dtype,
                            const RunOptions& options = {});
/// The same of the other results when one is unused.
void ExpectMatchesReferenceWithoutAResult(const KernelDevice& device, const std::string& op);

/// Equal bits in `runs` runs; `before(run)` is called before each.
void ExpectEqualRunsGiveEqualBits(const KernelDevice& device, const std::string& op, int runs = 2,
                                  void (*before)(int run) = nullptr);

/// Each result that may lie in an operand's storage has the same bits there.
void ExpectSharedStorageChangesNothing(const KernelDevice& device, const std::string& op);

void ExpectUnusedResultsChangeNoOther(const KernelDevice& device, const std::string& op);

/// Operations whose results replace the operands at their positions, except for a shadow.
const std::vector<std::string>& StateUpdates();

/// All results in their operands' storage at once, as a compiled step has them.
void ExpectInPlaceGivesTheBitsOfOutOfPlace(const KernelDevice& device, const std::string& op);

/// Where the predicate is false: whatever an overflow left in the operands.
void ExpectFalsePredicateLeavesStateBitsUnchanged(const KernelDevice& device, const std::string& op);

/// relu, and products that end in it, have no result with a sign: what is not above zero becomes +0, also where the
/// product rounds to -0.
void ExpectReluGivesNoNegativeZero(const KernelDevice& device);

/// Mnemonics that the reference has, for INSTANTIATE_TEST_SUITE_P.
std::vector<std::string> ReferenceNames();

}  // namespace mpc::test
