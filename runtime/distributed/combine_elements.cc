#include "runtime/distributed/combine_elements.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/cpu/convert.h"
#include "kernels/float16.h"

namespace mpc::distributed {
namespace {

// Elements that a loop holds in the nearest cache.
constexpr std::size_t kBlockBytes = 4096;
constexpr std::size_t kBlockFloats = kBlockBytes / sizeof(float);

inline float AddFloats(float a, float b) {
  const float sum = a + b;
  return sum == sum ? sum : std::numeric_limits<float>::quiet_NaN();
}

void AddRow(const float* a, const float* b, float* output, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) output[i] = AddFloats(a[i], b[i]);
}

/// Half and BFloat16: a block of both is widened, added, and rounded once.
template <typename T>
void AddLowRow(const T* a, const T* b, T* output, std::size_t elements) {
  alignas(64) std::array<float, kBlockFloats> wide_a;
  alignas(64) std::array<float, kBlockFloats> wide_b;
  for (std::size_t begin = 0; begin < elements; begin += kBlockFloats) {
    const std::size_t count = std::min(kBlockFloats, elements - begin);
    cpu::ConvertToFloat(a + begin, wide_a.data(), static_cast<std::int64_t>(count));
    cpu::ConvertToFloat(b + begin, wide_b.data(), static_cast<std::int64_t>(count));
    AddRow(wide_a.data(), wide_b.data(), wide_a.data(), count);
    cpu::ConvertFromFloat(wide_a.data(), output + begin, static_cast<std::int64_t>(count));
  }
}

template <typename T>
void CombineWholeNumbers(Reduction reduction, const T* a, const T* b, T* output, std::size_t elements) {
  using Unsigned = std::make_unsigned_t<T>;  // a sum wraps around
  switch (reduction) {
    case Reduction::kSum:
      for (std::size_t i = 0; i < elements; ++i) {
        output[i] = static_cast<T>(static_cast<Unsigned>(a[i]) + static_cast<Unsigned>(b[i]));
      }
      return;
    case Reduction::kMax:
      for (std::size_t i = 0; i < elements; ++i) output[i] = std::max(a[i], b[i]);
      return;
    case Reduction::kMin:
      for (std::size_t i = 0; i < elements; ++i) output[i] = std::min(a[i], b[i]);
      return;
  }
}

const std::byte* Advance(const void* row, std::size_t bytes) { return static_cast<const std::byte*>(row) + bytes; }

/// One block of CombineRows, from byte `offset` of every row. A half of the rows is combined in memory of its own, so
/// that the output may be any of the rows.
void CombineBlock(Reduction reduction, DType dtype, absl::Span<const void* const> rows, std::size_t offset,
                  void* output, std::size_t elements) {
  if (rows.size() == 2) {
    return CombineElements(reduction, dtype, Advance(rows[0], offset), Advance(rows[1], offset), output, elements);
  }
  alignas(64) std::array<std::byte, kBlockBytes> left;
  alignas(64) std::array<std::byte, kBlockBytes> right;
  const std::size_t half = rows.size() / 2;
  CombineBlock(reduction, dtype, rows.first(half), offset, left.data(), elements);
  CombineBlock(reduction, dtype, rows.subspan(half), offset, right.data(), elements);
  CombineElements(reduction, dtype, left.data(), right.data(), output, elements);
}

}  // namespace

void CombineElements(Reduction reduction, DType dtype, const void* a, const void* b, void* output,
                     std::size_t elements) {
  switch (dtype) {
    case DType::kF32:
      return AddRow(static_cast<const float*>(a), static_cast<const float*>(b), static_cast<float*>(output), elements);
    case DType::kF16:
      return AddLowRow(static_cast<const Half*>(a), static_cast<const Half*>(b), static_cast<Half*>(output), elements);
    case DType::kBF16:
      return AddLowRow(static_cast<const BFloat16*>(a), static_cast<const BFloat16*>(b), static_cast<BFloat16*>(output),
                       elements);
    case DType::kI32:
      return CombineWholeNumbers(reduction, static_cast<const std::int32_t*>(a), static_cast<const std::int32_t*>(b),
                                 static_cast<std::int32_t*>(output), elements);
    case DType::kI64:
      return CombineWholeNumbers(reduction, static_cast<const std::int64_t*>(a), static_cast<const std::int64_t*>(b),
                                 static_cast<std::int64_t*>(output), elements);
    default:
      return;  // CheckAllReduce has refused it
  }
}

void CombineRows(Reduction reduction, DType dtype, absl::Span<const void* const> rows, void* output,
                 std::size_t elements) {
  const std::size_t size = ElementSize(dtype);
  if (elements == 0 || rows.empty()) return;
  if (rows.size() == 1) {
    std::memmove(output, rows[0], elements * size);
    return;
  }
  // Two rows need no memory between, and so no blocks.
  const std::size_t block = rows.size() == 2 ? elements : kBlockBytes / size;
  for (std::size_t begin = 0; begin < elements; begin += block) {
    CombineBlock(reduction, dtype, rows, begin * size, static_cast<std::byte*>(output) + begin * size,
                 std::min(block, elements - begin));
  }
}

}  // namespace mpc::distributed
