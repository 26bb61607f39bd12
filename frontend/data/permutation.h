// Random orders that depend on their arguments alone.
#pragma once

#include <cstdint>
#include <vector>

namespace mpc::data {

/// A uniformly random order of 0 .. size-1 for (seed, epoch): Fisher and Yates's shuffle driven by Philox. The same on
/// every machine and in every version.
std::vector<std::int64_t> Permutation(std::int64_t size, std::uint64_t seed, std::int64_t epoch);

}  // namespace mpc::data
