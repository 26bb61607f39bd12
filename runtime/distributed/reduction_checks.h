// What every transport asks of the operands of a collective. All say it in the same words.
#pragma once

#include <cstddef>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/communicator.h"

namespace mpc::distributed {

/// The name of a reduction in messages: "sum", "max", "min".
std::string_view ReductionName(Reduction reduction);

/// Whether AllReduce can reduce `parts` over `size` ranks. A size that is no power of two is an error. Others
/// name the index of a part: it has an unknown reduction, or a type that the reduction does not take. It has no input
/// or no output, or both overlap without being equal. All are INVALID_ARGUMENT.
absl::Status CheckAllReduce(absl::Span<const ReducedPart> parts, int size);

/// As CheckAllReduce for one part. Its elements must divide by `size`. `output` has elements / size of them.
absl::Status CheckReduceScatter(const ReducedPart& part, int size);

/// Errors (INVALID_ARGUMENT): a null operand of more than 0 bytes.
absl::Status CheckAllGather(const void* input, const void* output, std::size_t bytes);

/// Errors (INVALID_ARGUMENT): null data of more than 0 bytes, or a root that is no rank.
absl::Status CheckBroadcast(const void* data, std::size_t bytes, int root, int size);

}  // namespace mpc::distributed
