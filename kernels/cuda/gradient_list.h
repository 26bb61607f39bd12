// The gradients of one operation, which few launches read as if they were one tensor.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/multi_tensor.h"

namespace mpc::cuda {

/// A gradient, or what is known of one, in sixteen bytes: a launch takes 191.
struct Gradient {
  const void* data;
  std::uint64_t count : 40, dtype : 4, is_sum : 1, position : 19;  ///< is_sum: its sum of squares

  __device__ Source source() const { return {data, static_cast<DType>(dtype)}; }
};

/// The gradients of an operation, shared out over blocks. Empty ones have none.
class Gradients {
 public:
  /// The last `sums` are sums of squares.
  explicit Gradients(absl::Span<const TensorSpec> specs, std::size_t sums = 0) {
    std::int64_t elements = 0;
    for (const TensorSpec& spec : specs) elements += spec.num_elements();
    const SegmentPlan plan = SegmentPlan::For(elements);
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const std::int64_t count = specs[i].num_elements();
      if (count == 0) continue;
      if (launches_.empty() || launches_.back().table.count == Table::kCapacity) launches_.push_back({{}, 0, blocks_});
      Launch& launch = launches_.back();
      Gradient& gradient = launch.table.segments[launch.table.count];
      gradient.count = static_cast<std::uint64_t>(count);
      gradient.dtype = static_cast<std::uint64_t>(specs[i].dtype);
      gradient.is_sum = i + sums >= specs.size() ? 1 : 0;
      gradient.position = i;
      launch.blocks += plan.BlocksOf(count);
      blocks_ += plan.BlocksOf(count);
      launch.table.end_block[launch.table.count++] = launch.blocks;
    }
  }

  /// Blocks of all launches: what `Run` leaves.
  std::int64_t blocks() const { return blocks_; }

  /// `body(of_block)` makes a launch's body, which fills its part of `of_block`. data[i] is gradient i.
  template <typename Value, typename MakeBody>
  absl::Status Run(LaunchQueue& queue, const void* const* data, Value* of_block, const MakeBody& body) const {
    for (const Launch& launch : launches_) {
      Table table = launch.table;
      for (int i = 0; i < table.count; ++i) table.segments[i].data = data[table.segments[i].position];
      const absl::Status status = LaunchSegments(queue, table, launch.blocks, body(of_block + launch.first_block));
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  using Table = SegmentTable<Gradient>;
  struct Launch {
    Table table;
    unsigned blocks;
    std::int64_t first_block;  ///< in the order of all launches
  };
  std::vector<Launch> launches_;
  std::int64_t blocks_ = 0;
};

}  // namespace mpc::cuda
