// Moving and filling contiguous elements.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/parallel.h"
#include "kernels/words.h"

namespace mpc::cpu {

/// `count` elements from element `source` of `from` to element `target` of `to`: the bits where both have one type,
/// else rounded once.
inline void MoveElements(DType from_type, const void* from, std::int64_t source, DType to_type, void* to,
                         std::int64_t target, std::int64_t count) {
  if (from_type == to_type) {
    const auto size = static_cast<std::int64_t>(ElementSize(to_type));
    std::memcpy(static_cast<char*>(to) + target * size, static_cast<const char*>(from) + source * size,
                static_cast<std::size_t>(count * size));
    return;
  }
  BlockBuffer buffer;
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const std::int64_t size = std::min(kBlock, count - begin);
    StoreFloats(to_type, Source{from_type, from}.Load(source + begin, size, buffer.values), to, target + begin, size);
  }
}

/// Every element of a tensor of `count` becomes `value`, rounded. Integers hold it exactly.
inline void FillElements(DType dtype, void* data, std::int64_t count, float value) {
  if (!IsFloating(dtype)) {
    VisitWord(ElementSize(dtype), [&](auto word) {
      using Word = decltype(word);
      auto* words = static_cast<Word*>(data);
      ParallelBlocks(count, kBlock, [&](std::int64_t offset, std::int64_t size) {
        std::fill_n(words + offset, size, static_cast<Word>(static_cast<std::int64_t>(value)));
      });
    });
    return;
  }
  BlockBuffer buffer;
  std::fill_n(buffer.values, kBlock, value);
  ParallelBlocks(count, kBlock, [&](std::int64_t offset, std::int64_t size) {
    StoreFloats(dtype, buffer.values, data, offset, size);
  });
}

}  // namespace mpc::cpu
