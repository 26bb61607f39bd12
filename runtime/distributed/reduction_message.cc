#include "runtime/distributed/reduction_message.h"

#include <cstring>

#include "runtime/distributed/combine_elements.h"

namespace mpc::distributed {

void ReductionMessage::Reset(absl::Span<const ReducedPart> parts) {
  parts_ = parts;
  offsets_.clear();
  std::size_t offset = 0;
  bytes_ = 0;
  for (const ReducedPart& part : parts) {
    offsets_.push_back(offset);
    if (part.elements == 0) continue;
    bytes_ = offset + PartBytes(part);
    offset = (bytes_ + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
  }
}

void ReductionMessage::ReadInputs(std::size_t begin, std::size_t bytes, std::byte* target) const {
  ForSegments(begin, bytes, [&](const Segment& segment) {
    std::memcpy(target + segment.message_offset, segment.input(), segment.bytes);
  });
}

void ReductionMessage::WriteOutputs(std::size_t begin, std::size_t bytes, const std::byte* source) const {
  ForSegments(begin, bytes, [&](const Segment& segment) {
    std::memcpy(segment.output(), source + segment.message_offset, segment.bytes);
  });
}

void ReductionMessage::Combine(std::size_t begin, std::size_t bytes, const std::byte* low, const std::byte* high,
                               std::byte* output) const {
  ForSegments(begin, bytes, [&](const Segment& segment) {
    CombineElements(segment.part->reduction, segment.part->dtype, low + segment.message_offset,
                    high + segment.message_offset, output + segment.message_offset, segment.elements());
  });
}

}  // namespace mpc::distributed
