// Several gradients as one sequence of blocks, for kernels that reduce over all of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/kernel.h"

namespace mpc::cpu {

/// The operands of a kernel from `first_operand` on, laid end to end in blocks of one or a few thousand elements. No
/// block holds elements of two gradients.
class GradientBlocks {
 public:
  static constexpr std::int64_t kElements = 4 * kBlock;

  GradientBlocks(const KernelSpec& spec, std::size_t first_operand) {
    first_block_.push_back(0);
    for (std::size_t i = first_operand; i < spec.inputs.size(); ++i) {
      const std::int64_t count = spec.inputs[i].num_elements();
      dtypes_.push_back(spec.inputs[i].dtype);
      counts_.push_back(count);
      total_ += count;
      first_block_.push_back(first_block_.back() + (count + kElements - 1) / kElements);
    }
  }

  /// Number of blocks, and of elements in all of them.
  std::int64_t count() const { return first_block_.back(); }
  std::int64_t total() const { return total_; }

  /// Which gradient a block belongs to.
  std::size_t GradientOf(std::int64_t block) const {
    const auto after = std::upper_bound(first_block_.begin(), first_block_.end(), block);
    return static_cast<std::size_t>(after - first_block_.begin()) - 1;
  }

  /// Calls visit(values, size) for the elements of a block, as f32, a kBlock at a time, until it returns false.
  template <typename Visit>
  void ForEachPart(std::int64_t block, const void* const* gradients, const Visit& visit) const {
    const std::size_t position = GradientOf(block);
    const Source gradient{dtypes_[position], gradients[position]};
    const std::int64_t begin = (block - first_block_[position]) * kElements;
    const std::int64_t end = std::min(counts_[position], begin + kElements);
    BlockBuffer buffer;
    for (std::int64_t offset = begin; offset < end; offset += kBlock) {
      const std::int64_t size = std::min(kBlock, end - offset);
      if (!visit(gradient.Load(offset, size, buffer.values), size)) return;
    }
  }

 private:
  std::vector<DType> dtypes_;
  std::vector<std::int64_t> counts_;
  std::vector<std::int64_t> first_block_;  // of each gradient, then the number of blocks
  std::int64_t total_ = 0;
};

}  // namespace mpc::cpu
