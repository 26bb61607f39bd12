// What the host tells all ranks, and what it asks of them: bytes and whole numbers over a Communicator.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/communicator.h"

namespace mpc::distributed {

// Every rank calls the same function. Errors are those of the Communicator.

/// `bytes` of every rank becomes that of rank `root`. The sizes may differ before.
absl::Status BroadcastBytes(Communicator& communicator, std::string& bytes, int root = 0);

/// The bytes of every rank, in the order of ranks, in every rank. Their sizes may differ. The largest size times the
/// number of ranks travels.
absl::StatusOr<std::vector<std::string>> GatherBytes(Communicator& communicator, std::string_view bytes);

/// The largest of the ranks' numbers, in every rank.
absl::StatusOr<std::int64_t> AgreeOnMaximum(Communicator& communicator, std::int64_t number);

/// Each of `numbers` becomes the largest of its place in any rank, in one message. All ranks have equally many.
absl::Status AgreeOnMaxima(Communicator& communicator, absl::Span<std::int64_t> numbers);

}  // namespace mpc::distributed
