// The memory that the ranks of a "shared" group map: a header, a record of each rank, and slots for data.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/distributed/collective_call.h"
#include "runtime/distributed/process_identity.h"
#include "runtime/distributed/shared_communicator.h"

namespace mpc::distributed {

/// Where a rank stands in its life. It moves to the right.
enum class RankState : std::uint32_t { kAbsent, kJoining, kPresent, kLeft, kFailed };

/// What a rank tells the others. It alone writes here, except `waiters`.
struct alignas(64) RankRecord {
  std::atomic<std::uint32_t> arrived;  ///< the meetings that it has come to; it wraps around. Ranks sleep on it
  std::atomic<std::uint32_t> waiters;  ///< the ranks that sleep on `arrived`
  alignas(64) std::atomic<RankState> state;
  std::atomic<Collective> function;  ///< the function of its last call
  std::atomic<std::uint64_t> call;   ///< the number of its last call, from 1
  ProcessIdentity process;           ///< valid from kPresent on
  /// The last two calls, by the lowest bit of their numbers. A rank may begin its next call while others still read.
  std::array<CollectiveCall, 2> calls;
  std::array<char, 256> error;  ///< valid in kFailed: text that ends with a zero
};

struct alignas(64) MappingHeader {
  std::atomic<std::uint64_t> magic;  ///< written last
  std::uint32_t version;
  std::uint32_t size;
  std::uint64_t slot_bytes;
  std::atomic<std::uint32_t> complete;  ///< all ranks have mapped it, and its name is gone
};

static_assert(std::atomic<RankState>::is_always_lock_free && std::atomic<std::uint64_t>::is_always_lock_free,
              "processes share these without a lock");

/// Slots of each rank. A chunk of data is written before a meeting, reduced before the next, and copied out before the
/// one after that.
inline constexpr std::uint64_t kSlotsPerRank = 3;

/// A mapping of this process. Unmaps it when it goes.
class SharedMapping {
 public:
  /// Rank 0 creates the object, other ranks wait for it. Records are empty. Errors as CreateSharedCommunicator.
  static absl::StatusOr<std::unique_ptr<SharedMapping>> Open(const SharedGroup& group);

  ~SharedMapping();
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;

  MappingHeader& header() const { return *reinterpret_cast<MappingHeader*>(memory_); }
  RankRecord& record(int rank) const { return reinterpret_cast<RankRecord*>(memory_ + sizeof(MappingHeader))[rank]; }
  /// The memory of `rank` for the data of a meeting: `slot_bytes` at a cache line.
  std::byte* slot(int rank, std::uint64_t meeting) const {
    const std::uint64_t index = static_cast<std::uint64_t>(rank) * kSlotsPerRank + meeting % kSlotsPerRank;
    return memory_ + slots_begin_ + index * slot_bytes_;
  }

  /// Removes the object's name, where it is not removed yet. What is mapped stays.
  void RemoveName();

 private:
  SharedMapping(std::byte* memory, std::size_t bytes, const SharedGroup& group);
  static absl::StatusOr<std::unique_ptr<SharedMapping>> Create(const SharedGroup& group);
  static absl::StatusOr<std::unique_ptr<SharedMapping>> Find(const SharedGroup& group);

  std::byte* memory_;
  std::size_t bytes_;
  std::size_t slots_begin_;
  std::size_t slot_bytes_;
  std::string name_;
};

}  // namespace mpc::distributed
