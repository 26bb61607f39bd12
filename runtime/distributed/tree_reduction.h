// The functions of a Communicator over a transport that moves bytes between two processes.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/communicator.h"

namespace mpc::distributed {

/// What a transport gives: bytes between this process and one other.
class PeerExchange {
 public:
  virtual ~PeerExchange() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Sends `send` to rank `peer` and receives `receive` from it, both at once. The peer calls Exchange with this rank,
  /// with the sizes the other way round. An empty span moves nothing in its direction, and no message. Messages between
  /// two ranks arrive in order. A span may be larger than 2 GiB. `send` and `receive` do not overlap, and `peer` is not
  /// this rank. Returns when `receive` is filled and `send` may be changed.
  virtual absl::Status Exchange(int peer, absl::Span<const std::byte> send, absl::Span<std::byte> receive) = 0;
};

/// The bytes of a reduction that travel at a time, by default. Two buffers of this size are kept.
inline constexpr std::size_t kDefaultChunkBytes = std::size_t{4} << 20;

/// Collectives over pairs of processes. Every function means what it means in Communicator, and checks its operands
/// with the checks that all transports share.
///
/// Reductions are recursive halving with the nearest rank first, so that the bits are those of the balanced tree over
/// ranks. A gather in the reverse order follows. They send 2 (N - 1) / N of a message in 2 log2(N) rounds a chunk.
///
/// The first error is kept, and every later call returns it.
class TreeCollectives {
 public:
  /// `exchange` must outlive this. A chunk has at least a cache line for each rank.
  explicit TreeCollectives(PeerExchange* exchange, std::size_t chunk_bytes = kDefaultChunkBytes);
  ~TreeCollectives();
  TreeCollectives(const TreeCollectives&) = delete;
  TreeCollectives& operator=(const TreeCollectives&) = delete;

  /// The first error, which every later call returns.
  const absl::Status& status() const { return error_; }

  absl::Status AllReduce(absl::Span<const ReducedPart> parts);
  absl::Status ReduceScatter(const ReducedPart& part);
  /// `input` may be where it belongs in `output`.
  absl::Status AllGather(const void* input, void* output, std::size_t bytes);
  absl::Status Broadcast(void* data, std::size_t bytes, int root);
  absl::Status Barrier();

 private:
  class Rounds;
  std::unique_ptr<Rounds> rounds_;
  absl::Status error_;
};

}  // namespace mpc::distributed
