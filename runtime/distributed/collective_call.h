// What a process calls, in a form that processes compare before they exchange anything.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "kernels/communicator.h"

namespace mpc::distributed {

/// The functions of a Communicator.
enum class Collective : std::uint32_t { kNone, kAllReduce, kReduceScatter, kAllGather, kBroadcast, kBarrier };

/// "all-reduce", "barrier", ...
const char* CollectiveName(Collective function);

/// A call without its memory. It may lie in memory that processes share. Equal calls have equal hashes.
struct CollectiveCall {
  struct Part {
    std::uint64_t elements = 0;
    DType dtype = DType::kF32;
    Reduction reduction = Reduction::kSum;
  };
  static constexpr std::size_t kPartsKept = 4;

  Collective function = Collective::kNone;
  std::int32_t root = 0;
  std::uint64_t bytes = 0;                   ///< bytes of a gather or a broadcast
  std::uint64_t parts = 0;                   ///< the number of parts of a reduction
  std::array<Part, kPartsKept> first_parts;  ///< for the text: as many as there are
  std::uint64_t hash = 0;                    ///< a hash of all members above and of all parts
};

/// A call of AllReduce or ReduceScatter.
CollectiveCall ReductionCall(Collective function, absl::Span<const ReducedPart> parts);
/// A call of another function. `root` is that of a broadcast.
CollectiveCall CopyCall(Collective function, std::size_t bytes, int root);

/// "all-reduce of 100 f32 (sum), 1 i32 (max)", "broadcast of 8 bytes from rank 0".
std::string CallText(const CollectiveCall& call);

}  // namespace mpc::distributed
