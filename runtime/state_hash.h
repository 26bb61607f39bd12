// The 64-bit hash of a step's state: equal bits give equal hashes, whatever the threads and blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mpc::runtime {

/// The key of the entry of this name, for HashBytes. Entries of one content and two names have different hashes.
std::uint64_t HashKey(std::string_view name);

/// The part of an entry's hash that the `size` bytes from its byte `offset` on make. `offset` is a multiple of 8. The
/// last word is filled up with zeros. Parts of an entry, and entries, are added modulo 2^64 in any order.
/// Each word goes through a permutation of 64 bits, so a difference in one word always changes the sum.
std::uint64_t HashBytes(std::uint64_t key, const void* bytes, std::size_t size, std::size_t offset = 0);

}  // namespace mpc::runtime
