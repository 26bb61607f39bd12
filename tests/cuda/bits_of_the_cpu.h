// The CUDA kernels in the emulation beside the CPU's: where both apply one functor and round once, the bits must be
// equal, whatever shapes and types meet.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "kernels/kernel_spec.h"

namespace mpc::test {

using Bytes = std::vector<std::uint8_t>;
using Random = std::mt19937;

inline constexpr DType kFloating[] = {DType::kF32, DType::kF16, DType::kBF16};
inline constexpr DType kStored[] = {DType::kF32, DType::kF16,  DType::kBF16, DType::kI32,
                                    DType::kI64, DType::kBool, DType::kI8};

/// Uniform in [low, high].
std::int64_t Pick(Random& random, std::int64_t low, std::int64_t high);

template <typename T, std::size_t n>
T OneOf(Random& random, const T (&choices)[n]) {
  return choices[Pick(random, 0, n - 1)];
}

/// Up to four axes, of extents that whole vectors do and do not divide.
Shape RandomShape(Random& random, std::int64_t least_rank = 0);

/// A shape that broadcasts to `result`.
Shape RandomOperand(Random& random, const Shape& result);

/// Any bits; of i1 0 and 1.
Bytes RandomBits(Random& random, const TensorSpec& spec);

/// Quarters in [-9/4, 9/4], many of them equal.
Bytes OrdinaryValues(Random& random, const TensorSpec& spec);

/// Ordinary values and, in floating tensors, now and then infinities, NaN, zeros of either sign, what overflows.
Bytes RandomValues(Random& random, const TensorSpec& spec);

/// The results of one run in the emulation; failures are reported to the test.
std::vector<Bytes> OnCuda(const KernelSpec& spec, const std::vector<Bytes>& inputs);

enum class Nan { kAnyPayload, kSamePayload };

void ExpectTheBitsOfTheCpu(const KernelSpec& spec, const std::vector<Bytes>& inputs, Nan nan = Nan::kAnyPayload);

}  // namespace mpc::test
