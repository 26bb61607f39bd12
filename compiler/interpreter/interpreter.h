// Runs IR with the reference functions: the oracle that every pass is compared against.
#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/reference/reference.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <vector>

namespace mpc {

/// What becomes of an i64 element beyond 2^53 - 1, which f64 need not hold exactly.
enum class LargeIntegers {
  Refused, ///< an error
  Rounded, ///< the nearest number that f64 holds, for who looks at magnitudes alone
};

/// Runs \p function on \p inputs, operation by operation, and returns its results.
///
/// Any function of mpc operations and calls can be run, after any pass; fusions evaluate their region, guarded
/// updates theirs where the condition holds. Results are stored as \p rounding says: kLowOnly keeps f32 tensors at f64
/// accuracy.
///
/// Errors: INVALID_ARGUMENT where the inputs do not match the arguments. FAILED_PRECONDITION for an operation that a
/// pass must expand first (mpc.value_and_grad), and for functions without a body, with control flow or that call
/// themselves. FAILED_PRECONDITION also for a collective operation of several processes. NOT_FOUND for an operation
/// without a reference function. OUT_OF_RANGE for an i64 element beyond 2^53 - 1 where \p integers are Refused.
absl::StatusOr<std::vector<reference::Tensor>> interpret(mlir::func::FuncOp function,
                                                         absl::Span<const reference::Tensor> inputs,
                                                         reference::Rounding rounding = reference::Rounding::kStorage,
                                                         LargeIntegers integers = LargeIntegers::Refused);

/// Runs \p function in several processes in lockstep, process r on `inputs[r]`, and returns the results of each.
/// Collective operations exchange values between them. Sums over processes have f64 accuracy inside.
///
/// Errors: those of interpret(), of any process. INVALID_ARGUMENT: no inputs. FAILED_PRECONDITION: a collective
/// operation of another number of processes.
absl::StatusOr<std::vector<std::vector<reference::Tensor>>>
interpretProcesses(mlir::func::FuncOp function, absl::Span<const std::vector<reference::Tensor>> inputs,
                   reference::Rounding rounding = reference::Rounding::kStorage);

} // namespace mpc
