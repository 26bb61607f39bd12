// A 64-bit hash of bytes: equal bits give equal hashes, whatever the threads, the blocks and the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "absl/status/status.h"
#include "kernels/host_device.h"
#include "kernels/kernel_spec.h"

namespace mpc {

/// The kernel of an instruction that hashes all of its inputs, and its attribute: the key of each, an integer. Its
/// result is one i64 with the bits of the hash.
inline constexpr char kStateHash[] = "state_hash";
inline constexpr char kHashKeys[] = "keys";

/// Errors (INVALID_ARGUMENT): other than one i64 for a result, or than one key for each input.
absl::Status CheckStateHash(const KernelSpec& spec);

/// The part of a hash that word number `index` of an entry makes. For one key and index it is a permutation of `word`:
/// the finalizer of MurmurHash3.
MPC_HOST_DEVICE inline std::uint64_t HashWord(std::uint64_t key, std::uint64_t word, std::uint64_t index) {
  word ^= key + index * 0x9e3779b97f4a7c15U;
  word ^= word >> 33;
  word *= 0xff51afd7ed558ccdU;
  word ^= word >> 33;
  word *= 0xc4ceb9fe1a85ec53U;
  return word ^ (word >> 33);
}

/// The last `size` bytes of an entry, fewer than 8, as a word that zeros fill up.
MPC_HOST_DEVICE inline std::uint64_t LastWord(const unsigned char* bytes, std::size_t size) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < size; ++i) word |= std::uint64_t{bytes[i]} << (8 * i);
  return word;
}

/// The part of an entry's hash that the `size` bytes from its byte `offset` on make. `offset` is a multiple of 8.
/// Parts of an entry, and entries, are added modulo 2^64 in any order. So a difference in one word always changes the
/// sum.
inline std::uint64_t HashBytes(std::uint64_t key, const void* bytes, std::size_t size, std::size_t offset = 0) {
  const auto* from = static_cast<const unsigned char*>(bytes);
  const std::uint64_t first = offset / sizeof(std::uint64_t);
  const std::size_t words = size / sizeof(std::uint64_t);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < words; ++i) {
    std::uint64_t word;
    std::memcpy(&word, from + i * sizeof(word), sizeof(word));
    sum += HashWord(key, word, first + i);
  }
  const std::size_t rest = size % sizeof(std::uint64_t);
  if (rest > 0) sum += HashWord(key, LastWord(from + size - rest, rest), first + words);
  return sum;
}

/// The key of the entry of this name, for HashBytes. Entries of one content and two names have different hashes.
inline std::uint64_t HashKey(std::string_view name) {
  return HashWord(0, HashBytes(0, name.data(), name.size()) + name.size(), 0);
}

}  // namespace mpc
