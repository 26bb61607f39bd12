#include "runtime/state_hash.h"

#include <cstring>

namespace mpc::runtime {
namespace {

/// A permutation of 64 bits: MurmurHash3's finalizer.
inline std::uint64_t PermuteBits(std::uint64_t word) {
  word ^= word >> 33;
  word *= 0xff51afd7ed558ccdU;
  word ^= word >> 33;
  word *= 0xc4ceb9fe1a85ec53U;
  return word ^ (word >> 33);
}

/// For one key and index a permutation of `word`.
inline std::uint64_t MixWord(std::uint64_t key, std::uint64_t word, std::uint64_t index) {
  return PermuteBits(word + PermuteBits(key + index * 0x9e3779b97f4a7c15U));
}

}  // namespace

std::uint64_t HashKey(std::string_view name) {
  return PermuteBits(HashBytes(0, name.data(), name.size()) + name.size());
}

std::uint64_t HashBytes(std::uint64_t key, const void* bytes, std::size_t size, std::size_t offset) {
  const auto* from = static_cast<const unsigned char*>(bytes);
  const std::uint64_t first = offset / sizeof(std::uint64_t);
  const std::size_t words = size / sizeof(std::uint64_t);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < words; ++i) {
    std::uint64_t word;
    std::memcpy(&word, from + i * sizeof(word), sizeof(word));
    sum += MixWord(key, word, first + i);
  }
  if (const std::size_t rest = size % sizeof(std::uint64_t); rest > 0) {
    std::uint64_t word = 0;
    std::memcpy(&word, from + words * sizeof(word), rest);
    sum += MixWord(key, word, first + words);
  }
  return sum;
}

}  // namespace mpc::runtime
