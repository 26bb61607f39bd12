// The multi-tensor skeleton: one launch for many tensors, as far as the table of them fits into a launch's parameters.
// Blocks are shared out over the tensors by size; each block finds its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "absl/types/span.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/storage.h"

namespace mpc::cuda {

inline constexpr int kTensorThreads = 256;

/// The operands and results of one tensor; null where absent. All have `count` elements, or the body knows better.
template <int kInputs, int kOutputs>
struct TensorSegment {
  const void* inputs[kInputs];
  void* outputs[kOutputs];
  std::int64_t count;
};

/// The segments that one launch works on. `end_block[i]` is the first block behind those of segment i.
template <typename Segment>
struct SegmentTable {
  /// The most bytes that the body may take of a launch's parameters.
  static constexpr std::size_t kBodyBytes = 256;
  static constexpr int kCapacity =
      static_cast<int>((kMaxArgumentBytes - kBodyBytes - 16) / (sizeof(Segment) + sizeof(unsigned)));
  Segment segments[kCapacity];
  unsigned end_block[kCapacity];
  int count;
};

/// Which part of a segment a block takes: it is block `block` of `blocks`; `first_block` is their first in the grid.
struct SegmentShare {
  unsigned first_block, block, blocks;
};

/// This thread's share of `count` elements: visit(width, index) for kVector neighbours, then for single elements;
/// `width` is an std::integral_constant.
template <typename Visit>
__device__ __forceinline__ void ForEachInShare(const SegmentShare& share, std::int64_t count, const Visit& visit) {
  const std::int64_t thread = static_cast<std::int64_t>(share.block) * blockDim.x + threadIdx.x;
  const std::int64_t threads = static_cast<std::int64_t>(share.blocks) * blockDim.x;
  const std::int64_t vectors = count / kVector;
  for (std::int64_t i = thread; i < vectors; i += threads) visit(std::integral_constant<int, kVector>(), i * kVector);
  for (std::int64_t i = vectors * kVector + thread; i < count; i += threads) {
    visit(std::integral_constant<int, 1>(), i);
  }
}

/// `body(segment, share)` for each block. `Body::Segment` is a TensorSegment.
template <typename Body>
__global__ void __launch_bounds__(kTensorThreads) SegmentKernel(SegmentTable<typename Body::Segment> table, Body body) {
  AwaitEarlierLaunches();
  static_assert(sizeof(Body) <= SegmentTable<typename Body::Segment>::kBodyBytes);
  int low = 0, high = table.count - 1;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (blockIdx.x < table.end_block[middle]) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  const unsigned first = low == 0 ? 0 : table.end_block[low - 1];
  body(table.segments[low], SegmentShare{first, blockIdx.x - first, table.end_block[low] - first});
}

/// How tensors are cut: the elements of a block, and the most blocks of a tensor.
struct SegmentPlan {
  std::int64_t elements_per_block = kTensorThreads * kVector;
  std::int64_t most_blocks = 65536;

  /// The plan for `elements` elements in all. Where there is enough work, a thread takes several vectors, which pay for
  /// what it does once.
  static SegmentPlan For(std::int64_t elements) {
    constexpr std::int64_t kRounds = 4, kBlocksOfAFullDevice = 1024;
    SegmentPlan plan;
    const std::int64_t rounds = elements / (plan.elements_per_block * kBlocksOfAFullDevice);
    plan.elements_per_block *= std::clamp<std::int64_t>(rounds, 1, kRounds);
    return plan;
  }
  unsigned BlocksOf(std::int64_t count) const {
    return static_cast<unsigned>(
        std::clamp<std::int64_t>((count + elements_per_block - 1) / elements_per_block, 1, most_blocks));
  }
};

template <typename Body>
absl::Status LaunchSegments(LaunchQueue& queue, const SegmentTable<typename Body::Segment>& table, unsigned blocks,
                            const Body& body) {
  LaunchShape shape;
  shape.threads = kTensorThreads;
  shape.blocks_x = blocks;
  return launch(queue, &SegmentKernel<Body>, shape, table, body);
}

/// The kernel of one instruction, or of several that agree in everything but their shapes. `Update` has
///   kTensors     The number of operands that are tensors. Those behind them are scalars in device memory.
///                Instructions that read the same scalars share launches.
///   Segment      What it keeps of an instruction: SegmentOf(operands, count).
///   Start(queue, table, blocks, operands of an instruction of the table) -> status.
///   Plan(elements)   How tensors are cut that have `elements` together. A plan that results depend on must not depend
///                    on `elements`.
///   WorkspaceBytes(blocks)
template <typename Update>
class MultiTensorKernel : public Kernel {
 public:
  explicit MultiTensorKernel(absl::Span<const KernelSpec> specs)
      : update_(specs[0]), inputs_(specs[0].inputs.size()), outputs_(specs[0].outputs.size()) {
    std::int64_t elements = 0;
    for (const KernelSpec& spec : specs) {
      counts_.push_back(spec.inputs[0].num_elements());
      elements += counts_.back();
    }
    plan_ = Update::Plan(elements);
    unsigned blocks = 0;
    for (std::int64_t count : counts_) blocks += plan_.BlocksOf(count);
    workspace_bytes_ = Update::WorkspaceBytes(blocks);
  }
  std::size_t workspace_bytes() const override { return workspace_bytes_; }

  absl::Status Enqueue(const KernelOperands& operands, LaunchQueue& queue) override {
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      bool started = false;
      for (std::size_t j = 0; j < i && !started; ++j) started = SameScalars(operands, i, j);
      if (started) continue;
      if (absl::Status status = EnqueuePeers(operands, i, queue); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  using Table = SegmentTable<typename Update::Segment>;

  KernelOperands OperandsOf(const KernelOperands& operands, std::size_t instruction) const {
    return {operands.inputs + instruction * inputs_, operands.outputs + instruction * outputs_, operands.workspace};
  }
  bool SameScalars(const KernelOperands& operands, std::size_t a, std::size_t b) const {
    return std::equal(operands.inputs + a * inputs_ + Update::kTensors, operands.inputs + (a + 1) * inputs_,
                      operands.inputs + b * inputs_ + Update::kTensors);
  }

  /// Instruction `first` and those behind it with the same scalars, in as few launches as the tables allow.
  absl::Status EnqueuePeers(const KernelOperands& operands, std::size_t first, LaunchQueue& queue) const {
    Table table{};
    unsigned blocks = 0;
    const auto flush = [&] {
      if (table.count == 0) return absl::OkStatus();
      const absl::Status status = update_.Start(queue, table, blocks, OperandsOf(operands, first));
      table.count = 0;
      blocks = 0;
      return status;
    };
    for (std::size_t i = first; i < counts_.size(); ++i) {
      if (counts_[i] == 0 || !SameScalars(operands, first, i)) continue;
      blocks += plan_.BlocksOf(counts_[i]);
      table.segments[table.count] = update_.SegmentOf(OperandsOf(operands, i), counts_[i]);
      table.end_block[table.count] = blocks;
      if (++table.count < Table::kCapacity) continue;
      if (absl::Status status = flush(); !status.ok()) return status;
    }
    return flush();
  }

  Update update_;
  std::size_t inputs_, outputs_;
  std::vector<std::int64_t> counts_;
  SegmentPlan plan_;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace mpc::cuda
