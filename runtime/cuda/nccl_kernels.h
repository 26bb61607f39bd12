// Instructions over several processes as kernels: what a step waits for other GPUs in.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/cuda/kernel.h"
#include "kernels/kernel_spec.h"
#include "runtime/cuda/nccl_group.h"

namespace mpc::runtime {

/// Whether `spec` is computed by several processes. Its kernel needs an NcclGroup, and a plan of it does not.
bool IsExchange(const KernelSpec& spec);

/// The workspace of CreateExchange for one instruction. Errors: UNIMPLEMENTED for an operation or type that no group
/// exchanges.
absl::StatusOr<std::size_t> ExchangeWorkspace(const KernelSpec& spec);

/// One kernel for all of `specs`, for which IsExchange holds. Several are sums and maxima, or gathers, of any types.
/// Its operands are those of the first spec, then those of the second, and so on. Errors: those of ExchangeWorkspace.
absl::StatusOr<std::unique_ptr<cuda::Kernel>> CreateExchange(absl::Span<const KernelSpec> specs,
                                                             std::shared_ptr<NcclGroup> group);

}  // namespace mpc::runtime
