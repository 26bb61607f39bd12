// Several tensors as one sequence of blocks: one parallel region shares them out, whatever their sizes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mpc::cpu {

/// No block holds elements of two tensors. The cut into blocks depends on the tensors alone.
class TensorBlocks {
 public:
  struct Block {
    std::size_t tensor;
    std::int64_t offset, size;  ///< elements [offset, offset + size) of the tensor
  };

  /// A block has at most `elements` elements.
  explicit TensorBlocks(std::int64_t elements) : elements_(elements) {}

  void Add(std::int64_t count) {
    counts_.push_back(count);
    total_ += count;
    first_block_.push_back(first_block_.back() + (count + elements_ - 1) / elements_);
  }

  /// Number of blocks, and of elements in all of them.
  std::int64_t count() const { return first_block_.back(); }
  std::int64_t total() const { return total_; }

  Block BlockAt(std::int64_t block) const {
    const auto after = std::upper_bound(first_block_.begin(), first_block_.end(), block);
    const auto tensor = static_cast<std::size_t>(after - first_block_.begin()) - 1;
    const std::int64_t offset = (block - first_block_[tensor]) * elements_;
    return {tensor, offset, std::min(counts_[tensor] - offset, elements_)};
  }

 private:
  std::int64_t elements_;
  std::vector<std::int64_t> counts_;
  std::vector<std::int64_t> first_block_{0};  // of each tensor, then the number of blocks
  std::int64_t total_ = 0;
};

}  // namespace mpc::cpu
