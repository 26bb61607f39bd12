// Random orders that depend on their arguments alone.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace mpc::data {

/// A uniformly random order of 0 .. size-1 for (seed, epoch): Fisher and Yates's shuffle driven by Philox. The same on
/// every machine and in every version.
std::vector<std::int64_t> Permutation(std::int64_t size, std::uint64_t seed, std::int64_t epoch);

/// The result of `order`, which takes memory for the indices of `rows` rows. Errors (RESOURCE_EXHAUSTED), which begin
/// with `whose`: this machine does not have it. `order` is not called then.
absl::StatusOr<std::vector<std::int64_t>> OrderInMemory(std::string_view whose, std::int64_t rows,
                                                        const std::function<std::vector<std::int64_t>()>& order);

}  // namespace mpc::data
