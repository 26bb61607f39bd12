// The CUDA language of kernels/cuda/device_language.h as host C++: what a kernel says becomes a call of the emulator.
// Names and types are CUDA's, so that a kernel that compiles here also compiles there.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)

namespace mpc::emulation {

struct Index {
  unsigned x = 0, y = 0, z = 0;
};

using Place = std::source_location;

/// Waits for the whole block; true if `value` is true for any of its threads.
bool WaitForBlock(bool value, const Place& place);

/// What the lanes of a warp do together.
enum class WarpAction { kSync, kShuffle, kVote };

/// Waits for the lanes in `mask`. kShuffle: the value of lane `source`. kVote: the lanes of `mask` whose value is not
/// 0.
std::uint64_t WaitForWarp(WarpAction action, unsigned mask, std::uint64_t value, unsigned source, const Place& place);

/// How many threads of the running launch have waited for earlier ones.
extern std::uint64_t threads_that_awaited;

/// Where the running block is in the order of all blocks of all launches; never 0.
extern std::uint64_t block_number;

/// The block's array for `key`: garbage when the first of its threads asks for it.
void* SharedStorage(std::size_t bytes, const Place& place);
void* DynamicSharedStorage();

/// One array for all threads of the block and for each `Key`, the type of a lambda of one place and instantiation.
template <typename T, std::size_t kCount, typename Key>
T (&SharedArray(Key, Place place = Place::current()))
[kCount] {
  static std::uint64_t block = 0;
  static void* data = nullptr;
  if (block != block_number) {
    data = SharedStorage(sizeof(T) * kCount, place);
    block = block_number;
  }
  return *static_cast<T(*)[kCount]>(data);
}

/// Lanes are 0 .. 31 of the thread's warp; threads are one-dimensional.
unsigned Lane();

template <typename T>
T Shuffle(unsigned mask, T value, unsigned source, const Place& place) {
  static_assert(std::is_arithmetic_v<T>, "CUDA shuffles int, long, float and double only");
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = WaitForWarp(WarpAction::kShuffle, mask, bits, source, place);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace mpc::emulation

// NOLINTBEGIN(readability-identifier-naming,bugprone-macro-parentheses): names are CUDA's, and macros take types.

inline mpc::emulation::Index threadIdx;
inline mpc::emulation::Index blockIdx;
inline mpc::emulation::Index blockDim;
inline mpc::emulation::Index gridDim;

inline void __syncthreads(mpc::emulation::Place place = mpc::emulation::Place::current()) {
  mpc::emulation::WaitForBlock(false, place);
}
inline int __syncthreads_or(int predicate, mpc::emulation::Place place = mpc::emulation::Place::current()) {
  return mpc::emulation::WaitForBlock(predicate != 0, place) ? 1 : 0;
}
inline void __syncwarp(unsigned mask = 0xffffffffu, mpc::emulation::Place place = mpc::emulation::Place::current()) {
  mpc::emulation::WaitForWarp(mpc::emulation::WarpAction::kSync, mask, 0, 0, place);
}

// Lanes in groups of `width`, a power of two: a source outside the lane's group is the lane itself (down), or wraps.
template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32,
              mpc::emulation::Place place = mpc::emulation::Place::current()) {
  const auto group = static_cast<unsigned>(width);
  const unsigned lane = mpc::emulation::Lane();
  return mpc::emulation::Shuffle(mask, value, lane / group * group + static_cast<unsigned>(source) % group, place);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32,
                  mpc::emulation::Place place = mpc::emulation::Place::current()) {
  const auto group = static_cast<unsigned>(width);
  const unsigned lane = mpc::emulation::Lane();
  const unsigned source = lane ^ static_cast<unsigned>(lanes);
  return mpc::emulation::Shuffle(mask, value, source / group > lane / group ? lane : source, place);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,
                   mpc::emulation::Place place = mpc::emulation::Place::current()) {
  const auto group = static_cast<unsigned>(width);
  const unsigned lane = mpc::emulation::Lane();
  return mpc::emulation::Shuffle(mask, value, lane % group + delta < group ? lane + delta : lane, place);
}

inline unsigned __ballot_sync(unsigned mask, int predicate,
                              mpc::emulation::Place place = mpc::emulation::Place::current()) {
  return static_cast<unsigned>(
      mpc::emulation::WaitForWarp(mpc::emulation::WarpAction::kVote, mask, predicate != 0 ? 1 : 0, 0, place));
}
inline int __any_sync(unsigned mask, int predicate, mpc::emulation::Place place = mpc::emulation::Place::current()) {
  return __ballot_sync(mask, predicate, place) != 0 ? 1 : 0;
}
inline int __all_sync(unsigned mask, int predicate, mpc::emulation::Place place = mpc::emulation::Place::current()) {
  return __ballot_sync(mask, predicate, place) == mask ? 1 : 0;
}

inline int __popc(unsigned bits) { return std::popcount(bits); }

// One thread runs at a time, so an atomic operation is a plain one. CUDA has none for `long`, the type of std::int64_t.
#define MPC_EMULATED_ATOMIC(name, type, result) \
  inline type name(type* address, type value) { \
    const type old = *address;                  \
    *address = result;                          \
    return old;                                 \
  }
#define MPC_EMULATED_ATOMICS(type)                                  \
  MPC_EMULATED_ATOMIC(atomicAdd, type, old + value)                 \
  MPC_EMULATED_ATOMIC(atomicOr, type, old | value)                  \
  MPC_EMULATED_ATOMIC(atomicMin, type, (value < old ? value : old)) \
  MPC_EMULATED_ATOMIC(atomicMax, type, (old < value ? value : old))
MPC_EMULATED_ATOMICS(int)
MPC_EMULATED_ATOMICS(unsigned)
MPC_EMULATED_ATOMICS(unsigned long long)
#undef MPC_EMULATED_ATOMICS
#undef MPC_EMULATED_ATOMIC

#define MPC_SHARED_ARRAY(type, name, count) \
  [[maybe_unused]] type(&name)[count] = ::mpc::emulation::SharedArray<type, (count)>([] {})

// NOLINTEND(readability-identifier-naming,bugprone-macro-parentheses)

namespace mpc::cuda {

inline void AwaitEarlierLaunches() { ++emulation::threads_that_awaited; }

template <typename T>
T* dynamic_shared() {
  return static_cast<T*>(emulation::DynamicSharedStorage());
}

}  // namespace mpc::cuda
