#include "runtime/distributed/shared_communicator.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/distributed/collective_call.h"
#include "runtime/distributed/combine_elements.h"
#include "runtime/distributed/reduction_checks.h"
#include "runtime/distributed/reduction_message.h"
#include "runtime/distributed/shared_mapping.h"
#include "runtime/distributed/shared_meeting.h"

namespace mpc::distributed {
namespace {

// Up to this every rank reduces the whole message: one meeting less, and more to compute.
constexpr std::size_t kWholeBytes = 8192;

/// The bytes of a chunk that one rank reduces.
struct Slice {
  std::size_t begin;
  std::size_t bytes;
};

/// The part of a message that is in the slots of one meeting.
struct Chunk {
  std::size_t begin;
  std::size_t bytes;
};

class SharedCommunicator : public Communicator {
 public:
  SharedCommunicator(std::unique_ptr<SharedMeeting> meeting, const SharedGroup& group)
      : meeting_(std::move(meeting)),
        rank_(group.rank),
        size_(group.size),
        slot_bytes_(group.slot_bytes),
        rows_(static_cast<std::size_t>(group.size)) {}

  std::string_view transport() const override { return "shared"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  absl::Status status() const override { return error_; }
  std::chrono::milliseconds time_limit() const override { return meeting_->time_limit(); }
  absl::Status LookForLoss() override { return error_.ok() ? meeting_->LookForLoss() : error_; }

  absl::Status AllReduce(absl::Span<const ReducedPart> parts) override {
    if (!error_.ok()) return error_;
    if (absl::Status status = CheckAllReduce(parts, size_); !status.ok()) return Keep(status);
    message_.Reset(parts);
    meeting_->Begin(ReductionCall(Collective::kAllReduce, parts));
    return Keep(message_.bytes() <= std::min(kWholeBytes, slot_bytes_) ? ReduceWhole() : ReduceInChunks());
  }

  absl::Status ReduceScatter(const ReducedPart& part) override {
    if (!error_.ok()) return error_;
    if (absl::Status status = CheckReduceScatter(part, size_); !status.ok()) return Keep(status);
    meeting_->Begin(ReductionCall(Collective::kReduceScatter, {&part, 1}));
    const std::size_t rank_bytes = part.elements / static_cast<std::size_t>(size_) * ElementSize(part.dtype);
    const std::size_t most = slot_bytes_ / static_cast<std::size_t>(size_) / kPartAlignment * kPartAlignment;
    return Keep(InChunks(rank_bytes, most, [&](Chunk chunk) { return ScatterChunk(part, rank_bytes, chunk); }));
  }

  absl::Status AllGather(const void* input, void* output, std::size_t bytes) override {
    if (!error_.ok()) return error_;
    if (absl::Status status = CheckAllGather(input, output, bytes); !status.ok()) return Keep(status);
    meeting_->Begin(CopyCall(Collective::kAllGather, bytes, 0));
    const auto* const source = static_cast<const std::byte*>(input);
    auto* const target = static_cast<std::byte*>(output);
    return Keep(InChunks(bytes, slot_bytes_, [&](Chunk chunk) {
      std::memcpy(NextSlot(), source + chunk.begin, chunk.bytes);
      if (absl::Status status = meeting_->Meet(); !status.ok()) return status;
      for (int rank = 0; rank < size_; ++rank) {
        std::memcpy(target + static_cast<std::size_t>(rank) * bytes + chunk.begin, Slot(rank), chunk.bytes);
      }
      return absl::OkStatus();
    }));
  }

  absl::Status Broadcast(void* data, std::size_t bytes, int root) override {
    if (!error_.ok()) return error_;
    if (absl::Status status = CheckBroadcast(data, bytes, root, size_); !status.ok()) return Keep(status);
    meeting_->Begin(CopyCall(Collective::kBroadcast, bytes, root));
    auto* const target = static_cast<std::byte*>(data);
    return Keep(InChunks(bytes, slot_bytes_, [&](Chunk chunk) {
      if (rank_ == root) std::memcpy(NextSlot(), target + chunk.begin, chunk.bytes);
      if (absl::Status status = meeting_->Meet(); !status.ok()) return status;
      if (rank_ != root) std::memcpy(target + chunk.begin, Slot(root), chunk.bytes);
      return absl::OkStatus();
    }));
  }

  absl::Status Barrier() override {
    if (!error_.ok()) return error_;
    meeting_->Begin(CopyCall(Collective::kBarrier, 0, 0));
    return Keep(meeting_->Meet());
  }

 private:
  absl::Status Keep(absl::Status status) {
    if (!status.ok()) error_ = meeting_->Fail(std::move(status));
    return error_;
  }

  /// Where this rank writes before the next meeting.
  std::byte* NextSlot() const { return meeting_->mapping().slot(rank_, meeting_->number() + 1); }
  /// What `rank` wrote before the last meeting.
  std::byte* Slot(int rank) const { return meeting_->mapping().slot(rank, meeting_->number()); }

  /// Calls body(Chunk) for `bytes` bytes in chunks. Where there are none it meets, since every call compares itself.
  template <typename Body>
  absl::Status InChunks(std::size_t bytes, std::size_t most, const Body& body) {
    if (bytes == 0) return meeting_->Meet();
    for (std::size_t begin = 0; begin < bytes; begin += most) {
      if (absl::Status status = body(Chunk{begin, std::min(most, bytes - begin)}); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  Slice SliceOf(const Chunk& chunk, int rank) const {
    const auto size = static_cast<std::size_t>(size_);
    const std::size_t begin = BlockBegin(chunk.bytes, static_cast<std::size_t>(rank), size);
    return {begin, BlockBegin(chunk.bytes, static_cast<std::size_t>(rank) + 1, size) - begin};
  }

  absl::Status ReduceWhole() {
    message_.ReadInputs(0, message_.bytes(), NextSlot());
    if (absl::Status status = meeting_->Meet(); !status.ok()) return status;
    message_.ForSegments(0, message_.bytes(), [&](const ReductionMessage::Segment& segment) {
      for (int rank = 0; rank < size_; ++rank) Row(rank) = Slot(rank) + segment.message_offset;
      CombineRows(segment.part->reduction, segment.part->dtype, rows_, segment.output(), segment.elements());
    });
    return absl::OkStatus();
  }

  /// Between two meetings a rank copies the results of one chunk and reduces its slice of the next one. Of the third
  /// chunk it writes what others reduce. The three are in three slots, so one meeting a chunk is enough.
  absl::Status ReduceInChunks() {
    const std::uint64_t first = meeting_->number() + 1;
    const std::size_t chunks = (message_.bytes() + slot_bytes_ - 1) / slot_bytes_;
    WriteForOthers(ChunkAt(0), first);
    for (std::size_t k = 0; k <= chunks; ++k) {
      if (absl::Status status = meeting_->Meet(); !status.ok()) return status;
      if (k > 0) CopyResults(ChunkAt(k - 1), first + k - 1);
      if (k < chunks) ReduceSlice(ChunkAt(k), first + k);
      if (k + 1 < chunks) WriteForOthers(ChunkAt(k + 1), first + k + 1);
    }
    return absl::OkStatus();
  }

  Chunk ChunkAt(std::size_t index) const {
    const std::size_t begin = index * slot_bytes_;
    return {begin, std::min(slot_bytes_, message_.bytes() - begin)};
  }

  void WriteForOthers(const Chunk& chunk, std::uint64_t meeting) {
    std::byte* const slot = meeting_->mapping().slot(rank_, meeting);
    const Slice own = SliceOf(chunk, rank_);
    const std::size_t behind = own.begin + own.bytes;
    message_.ReadInputs(chunk.begin, own.begin, slot);
    message_.ReadInputs(chunk.begin + behind, chunk.bytes - behind, slot + behind);
  }

  /// The own row is the input itself. The result goes to the output, and to the own slot for the others.
  void ReduceSlice(const Chunk& chunk, std::uint64_t meeting) {
    const Slice own = SliceOf(chunk, rank_);
    message_.ForSegments(chunk.begin + own.begin, own.bytes, [&](const ReductionMessage::Segment& segment) {
      const std::size_t place = own.begin + segment.message_offset;
      for (int rank = 0; rank < size_; ++rank) Row(rank) = meeting_->mapping().slot(rank, meeting) + place;
      Row(rank_) = segment.input();
      CombineRows(segment.part->reduction, segment.part->dtype, rows_, segment.output(), segment.elements());
      if (size_ > 1) {
        std::memcpy(meeting_->mapping().slot(rank_, meeting) + place, segment.output(), segment.bytes);
      }
    });
  }

  void CopyResults(const Chunk& chunk, std::uint64_t meeting) {
    for (int rank = 0; rank < size_; ++rank) {
      if (rank == rank_) continue;
      const Slice slice = SliceOf(chunk, rank);
      message_.WriteOutputs(chunk.begin + slice.begin, slice.bytes,
                            meeting_->mapping().slot(rank, meeting) + slice.begin);
    }
  }

  /// `chunk` is of what each rank keeps. A slot has it for every rank, one behind the other.
  absl::Status ScatterChunk(const ReducedPart& part, std::size_t rank_bytes, const Chunk& chunk) {
    const auto* const input = static_cast<const std::byte*>(part.input) + chunk.begin;
    std::byte* const slot = NextSlot();
    for (int rank = 0; rank < size_; ++rank) {
      const auto index = static_cast<std::size_t>(rank);
      if (rank != rank_) std::memcpy(slot + index * chunk.bytes, input + index * rank_bytes, chunk.bytes);
    }
    if (absl::Status status = meeting_->Meet(); !status.ok()) return status;
    for (int rank = 0; rank < size_; ++rank) Row(rank) = Slot(rank) + static_cast<std::size_t>(rank_) * chunk.bytes;
    Row(rank_) = input + static_cast<std::size_t>(rank_) * rank_bytes;
    CombineRows(part.reduction, part.dtype, rows_, static_cast<std::byte*>(part.output) + chunk.begin,
                chunk.bytes / ElementSize(part.dtype));
    return absl::OkStatus();
  }

  const void*& Row(int rank) { return rows_[static_cast<std::size_t>(rank)]; }

  std::unique_ptr<SharedMeeting> meeting_;
  int rank_;
  int size_;
  std::size_t slot_bytes_;
  ReductionMessage message_;
  std::vector<const void*> rows_;  ///< one of each rank, in the order of the tree
  absl::Status error_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> CreateSharedCommunicator(const SharedGroup& group) {
  absl::StatusOr<std::unique_ptr<SharedMapping>> mapping = SharedMapping::Open(group);
  if (!mapping.ok()) return mapping.status();
  absl::StatusOr<std::unique_ptr<SharedMeeting>> meeting = SharedMeeting::Join(*std::move(mapping), group);
  if (!meeting.ok()) return meeting.status();
  return std::make_unique<SharedCommunicator>(*std::move(meeting), group);
}

}  // namespace mpc::distributed
