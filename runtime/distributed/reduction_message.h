// The parts of a reduction as one message of bytes, which is cut and sent without regard to types.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "kernels/communicator.h"

namespace mpc::distributed {

/// Every part begins at a multiple of this. Cuts at multiples of it cut no element.
inline constexpr std::size_t kPartAlignment = 64;

/// The parts behind each other, with gaps that nothing reads. Memory of an earlier message is used again.
class ReductionMessage {
 public:
  /// A range of one part.
  struct Segment {
    const ReducedPart* part;
    std::size_t part_offset;     ///< in bytes
    std::size_t message_offset;  ///< in bytes, from the begin of the range that was asked for
    std::size_t bytes;

    const std::byte* input() const { return static_cast<const std::byte*>(part->input) + part_offset; }
    std::byte* output() const { return static_cast<std::byte*>(part->output) + part_offset; }
    std::size_t elements() const { return bytes / ElementSize(part->dtype); }
  };

  /// `parts` must outlive the use of this message.
  void Reset(absl::Span<const ReducedPart> parts);

  /// Up to the end of the last part.
  std::size_t bytes() const { return bytes_; }

  /// Calls body(Segment) for each part that has bytes in [begin, begin + bytes), in order.
  template <typename Body>
  void ForSegments(std::size_t begin, std::size_t bytes, const Body& body) const {
    const auto after = std::upper_bound(offsets_.begin(), offsets_.end(), begin);
    const std::size_t end = begin + bytes;
    for (std::size_t i = static_cast<std::size_t>(after - offsets_.begin()); i > 0 && i <= parts_.size(); ++i) {
      const std::size_t part_begin = offsets_[i - 1];
      if (part_begin >= end) return;
      const std::size_t from = std::max(begin, part_begin);
      const std::size_t to = std::min(end, part_begin + PartBytes(parts_[i - 1]));
      if (from < to) body(Segment{&parts_[i - 1], from - part_begin, from - begin, to - from});
    }
  }

  /// Copies bytes [begin, begin + bytes) of all inputs to `target`.
  void ReadInputs(std::size_t begin, std::size_t bytes, std::byte* target) const;
  /// Copies `source` to bytes [begin, begin + bytes) of all outputs.
  void WriteOutputs(std::size_t begin, std::size_t bytes, const std::byte* source) const;
  /// Combines bytes [begin, begin + bytes) of two messages, the lower rank's first. `output` may be one of them.
  void Combine(std::size_t begin, std::size_t bytes, const std::byte* low, const std::byte* high,
               std::byte* output) const;

 private:
  static std::size_t PartBytes(const ReducedPart& part) { return part.elements * ElementSize(part.dtype); }

  absl::Span<const ReducedPart> parts_;
  std::vector<std::size_t> offsets_;
  std::size_t bytes_ = 0;
};

/// Where block `index` of `count` begins in `bytes` bytes: at a multiple of kPartAlignment, or at the end.
inline std::size_t BlockBegin(std::size_t bytes, std::size_t index, std::size_t count) {
  const std::size_t units = (bytes + kPartAlignment - 1) / kPartAlignment;
  return std::min(bytes, units * index / count * kPartAlignment);
}

}  // namespace mpc::distributed
