// Several gradients as one sequence of blocks, for kernels that reduce over all of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/tensor_blocks.h"

namespace mpc::cpu {

/// The operands of a kernel from `first_operand` on, before `end_operand`, laid end to end. A block has at most
/// 4 * kBlock elements, all of one gradient. Gradients and blocks are counted from 0.
class GradientBlocks {
 public:
  GradientBlocks(const KernelSpec& spec, std::size_t first_operand, std::size_t end_operand) : blocks_(4 * kBlock) {
    for (std::size_t i = first_operand; i < end_operand; ++i) {
      dtypes_.push_back(spec.inputs[i].dtype);
      blocks_.Add(spec.inputs[i].num_elements());
    }
  }

  /// Number of blocks, and of elements in all of them.
  std::int64_t count() const { return blocks_.count(); }
  std::int64_t total() const { return blocks_.total(); }

  /// The gradient of a block (`tensor`, 0 for `first_operand`) and the block's elements in it.
  TensorBlocks::Block BlockAt(std::int64_t block) const { return blocks_.BlockAt(block); }
  /// The storage type of a gradient.
  DType dtype(std::size_t gradient) const { return dtypes_[gradient]; }

  /// Calls visit(values, size) for the elements of a block, as f32, a kBlock at a time, until it returns false.
  /// `gradients` are the addresses of the operands from `first_operand` on. `values` hold until visit returns.
  template <typename Visit>
  void ForEachPart(std::int64_t block, const void* const* gradients, const Visit& visit) const {
    const TensorBlocks::Block part = BlockAt(block);
    const Source gradient{dtypes_[part.tensor], gradients[part.tensor]};
    const std::int64_t end = part.offset + part.size;
    BlockBuffer buffer;
    for (std::int64_t offset = part.offset; offset < end; offset += kBlock) {
      const std::int64_t size = std::min(kBlock, end - offset);
      if (!visit(gradient.Load(offset, size, buffer.values), size)) return;
    }
  }

 private:
  std::vector<DType> dtypes_;
  TensorBlocks blocks_;
};

}  // namespace mpc::cpu
