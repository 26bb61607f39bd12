// What holds for the communicator of every transport: each process of a group calls these.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "kernels/communicator.h"
#include "kernels/dtype.h"
#include "kernels/float16.h"

namespace mpc::test {

using Bytes = std::vector<std::byte>;

/// One addition or comparison of the plain tree, element by element. A sum that is not a number has one pattern.
template <typename T>
T PlainElement(Reduction reduction, T a, T b) {
  if constexpr (std::is_same_v<T, float>) {
    const float sum = a + b;
    return std::isnan(sum) ? std::numeric_limits<float>::quiet_NaN() : sum;
  } else if constexpr (std::is_integral_v<T>) {
    if (reduction == Reduction::kMax) return a < b ? b : a;
    if (reduction == Reduction::kMin) return b < a ? b : a;
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    return T(PlainElement<float>(reduction, static_cast<float>(a), static_cast<float>(b)));
  }
}

/// ((0 + 1) + (2 + 3)) + ... of element `index` of rows [first, first + count).
template <typename T>
T PlainTree(Reduction reduction, const std::vector<Bytes>& rows, std::size_t first, std::size_t count,
            std::size_t index) {
  if (count == 1) {
    T element;
    std::memcpy(&element, rows[first].data() + index * sizeof(T), sizeof(T));
    return element;
  }
  const T left = PlainTree<T>(reduction, rows, first, count / 2, index);
  const T right = PlainTree<T>(reduction, rows, first + count / 2, count / 2, index);
  return PlainElement<T>(reduction, left, right);
}

template <typename T>
Bytes PlainRows(Reduction reduction, const std::vector<Bytes>& rows) {
  Bytes result(rows[0].size());
  for (std::size_t i = 0; i < result.size() / sizeof(T); ++i) {
    const T element = PlainTree<T>(reduction, rows, 0, rows.size(), i);
    std::memcpy(result.data() + i * sizeof(T), &element, sizeof(T));
  }
  return result;
}

/// The bytes that every rank gets of `rows`, one of each rank.
inline Bytes PlainReduction(DType dtype, Reduction reduction, const std::vector<Bytes>& rows) {
  switch (dtype) {
    case DType::kF16:
      return PlainRows<Half>(reduction, rows);
    case DType::kBF16:
      return PlainRows<BFloat16>(reduction, rows);
    case DType::kI32:
      return PlainRows<std::int32_t>(reduction, rows);
    case DType::kI64:
      return PlainRows<std::int64_t>(reduction, rows);
    default:
      return PlainRows<float>(reduction, rows);
  }
}

/// Every pattern of bits is drawn: infinities, subnormals and what is not a number are among them. Half of the rows are
/// ordinary numbers of a floating type, so that sums of many round.
inline Bytes DrawnBytes(DType dtype, std::size_t elements, std::mt19937& random) {
  Bytes bytes(elements * ElementSize(dtype));
  const bool ordinary = random() % 2 == 0;
  for (std::size_t i = 0; i < elements; ++i) {
    const std::uint64_t bits = std::uint64_t{random()} << 32 | random();
    const float value = static_cast<float>(static_cast<std::int32_t>(random())) * 0x1p-30f;
    std::byte* const place = bytes.data() + i * ElementSize(dtype);
    const Half half(value);
    const BFloat16 brain(value);
    const void* source = &bits;
    if (ordinary && dtype == DType::kF32) source = &value;
    if (ordinary && dtype == DType::kF16) source = &half;
    if (ordinary && dtype == DType::kBF16) source = &brain;
    std::memcpy(place, source, ElementSize(dtype));
  }
  return bytes;
}

/// A drawn operand of all ranks, and what comes of it.
struct DrawnPart {
  DType dtype;
  Reduction reduction;
  std::vector<Bytes> inputs;  ///< one of each rank
  Bytes sum;
};

inline DrawnPart DrawPart(std::mt19937& random, int ranks, std::size_t elements) {
  constexpr std::array kTypes = {DType::kF32, DType::kF16, DType::kBF16, DType::kI32, DType::kI64};
  DrawnPart part{kTypes[random() % kTypes.size()], Reduction::kSum, {}, {}};
  if (!IsFloating(part.dtype)) part.reduction = static_cast<Reduction>(random() % 3);
  for (int rank = 0; rank < ranks; ++rank) part.inputs.push_back(DrawnBytes(part.dtype, elements, random));
  part.sum = PlainReduction(part.dtype, part.reduction, part.inputs);
  return part;
}

/// Messages of drawn parts, in place and out of place, have the bits of the plain tree. `seed` is the same in all
/// ranks.
inline void CheckAllReduceBits(Communicator& group, unsigned seed, const std::vector<std::size_t>& sizes) {
  std::mt19937 random(seed);
  const auto rank = static_cast<std::size_t>(group.rank());
  std::vector<DrawnPart> drawn;
  for (const std::size_t elements : sizes) drawn.push_back(DrawPart(random, group.size(), elements));
  std::vector<Bytes> outputs;
  std::vector<ReducedPart> parts;
  for (DrawnPart& part : drawn) {
    const bool in_place = random() % 2 == 0;
    outputs.push_back(in_place ? part.inputs[rank] : Bytes(part.sum.size()));
    const void* const input = in_place ? outputs.back().data() : part.inputs[rank].data();
    parts.push_back(
        {input, outputs.back().data(), part.sum.size() / ElementSize(part.dtype), part.dtype, part.reduction});
  }
  const absl::Status status = group.AllReduce(parts);
  ASSERT_TRUE(status.ok()) << status;
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    EXPECT_TRUE(outputs[i] == drawn[i].sum) << "rank " << rank << ", seed " << seed << ", part " << i << " of "
                                            << DTypeName(drawn[i].dtype) << ", " << sizes[i] << " elements";
  }
}

/// Rank r gets block r of what AllReduce gives.
inline void CheckReduceScatterBits(Communicator& group, unsigned seed, std::size_t elements_a_rank) {
  std::mt19937 random(seed);
  const auto rank = static_cast<std::size_t>(group.rank());
  const auto size = static_cast<std::size_t>(group.size());
  DrawnPart drawn = DrawPart(random, group.size(), elements_a_rank * size);
  const std::size_t bytes = elements_a_rank * ElementSize(drawn.dtype);
  const bool in_place = random() % 2 == 0;
  Bytes separate(bytes);
  Bytes& input = drawn.inputs[rank];
  std::byte* const output = in_place ? input.data() : separate.data();
  const absl::Status status =
      group.ReduceScatter({input.data(), output, elements_a_rank * size, drawn.dtype, drawn.reduction});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_TRUE(std::equal(output, output + bytes, drawn.sum.begin() + static_cast<std::ptrdiff_t>(rank * bytes)))
      << "rank " << rank << ", seed " << seed << ", " << elements_a_rank << " elements of " << DTypeName(drawn.dtype);
}

/// AllGather, Broadcast from every root, and Barrier.
inline void CheckCopies(Communicator& group, unsigned seed, std::size_t bytes) {
  std::mt19937 random(seed);
  const auto rank = static_cast<std::size_t>(group.rank());
  Bytes all;
  std::vector<Bytes> rows;
  for (int i = 0; i < group.size(); ++i) {
    rows.push_back(DrawnBytes(DType::kI64, (bytes + 7) / 8, random));
    rows.back().resize(bytes);
    all.insert(all.end(), rows.back().begin(), rows.back().end());
  }
  Bytes gathered(all.size());
  absl::Status status = group.AllGather(rows[rank].data(), gathered.data(), bytes);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_TRUE(gathered == all) << "all-gather of " << bytes << " bytes";
  for (int root = 0; root < group.size(); ++root) {
    Bytes data = rows[rank];
    status = group.Broadcast(data.data(), bytes, root);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_TRUE(data == rows[static_cast<std::size_t>(root)]) << "broadcast of " << bytes << " bytes from " << root;
  }
  status = group.Barrier();
  EXPECT_TRUE(status.ok()) << status;
}

/// All functions over drawn sizes. `chunk` is the bytes that the transport moves at a time: sizes lie on both sides.
inline void CheckCollectives(Communicator& group, std::size_t chunk) {
  std::mt19937 random(7);  // the same in all ranks
  for (unsigned seed = 0; seed < 12; ++seed) {
    std::vector<std::size_t> sizes;
    for (std::size_t parts = random() % 6; parts > 0; --parts) sizes.push_back(random() % (parts == 1 ? 6000 : 70));
    CheckAllReduceBits(group, seed, sizes);
  }
  for (const std::size_t elements :
       {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{255}, chunk / 4, chunk / 4 + 1, 5 * chunk + 13}) {
    CheckAllReduceBits(group, 100 + static_cast<unsigned>(elements), {elements});
    CheckReduceScatterBits(group, 200 + static_cast<unsigned>(elements), elements);
    CheckCopies(group, 300, elements);
  }
}

}  // namespace mpc::test
