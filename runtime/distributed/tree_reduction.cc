#include "runtime/distributed/tree_reduction.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "runtime/distributed/combine_elements.h"
#include "runtime/distributed/reduction_checks.h"
#include "runtime/distributed/reduction_message.h"
#include "runtime/distributed/tree_rounds.h"

namespace mpc::distributed {
namespace {

// Messages up to this are exchanged whole: half the rounds, and more bytes than halving sends.
constexpr std::size_t kWholeTreeBytes = 4096;

/// The bytes between two blocks.
struct Range {
  std::size_t begin = 0;
  std::size_t bytes = 0;
};

/// Where a chunk lies while it is reduced. The first round reads `source`, later ones `work`: they are equal, or do not
/// overlap.
struct ChunkPlace {
  const std::byte* source;
  std::byte* work;
};

}  // namespace

/// The rounds of each function. Operands are checked.
class TreeCollectives::Rounds {
 public:
  Rounds(PeerExchange* exchange, std::size_t chunk_bytes)
      : exchange_(*exchange),
        rank_(exchange->rank()),
        size_(exchange->size()),
        halving_(HalvingRounds(rank_, size_)),
        gathering_(GatheringRounds(rank_, size_)),
        chunk_bytes_(std::max(chunk_bytes / kPartAlignment, static_cast<std::size_t>(size_)) * kPartAlignment) {}

  int size() const { return size_; }

  absl::Status AllReduce(absl::Span<const ReducedPart> parts) {
    message_.Reset(parts);
    for (std::size_t begin = 0; begin < message_.bytes(); begin += chunk_bytes_) {
      absl::Status status = ReduceChunk(begin, std::min(chunk_bytes_, message_.bytes() - begin));
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status ReduceScatter(const ReducedPart& part) {
    const std::size_t element_size = ElementSize(part.dtype);
    const auto* input = static_cast<const std::byte*>(part.input);
    auto* output = static_cast<std::byte*>(part.output);
    const std::size_t rank_bytes = part.elements / static_cast<std::size_t>(size_) * element_size;
    // The part of a chunk that one rank keeps.
    const std::size_t most = chunk_bytes_ / static_cast<std::size_t>(size_) / kPartAlignment * kPartAlignment;
    for (std::size_t begin = 0; begin < rank_bytes; begin += most) {
      const std::size_t bytes = std::min(most, rank_bytes - begin);
      std::byte* const work = Memory(work_, bytes * static_cast<std::size_t>(size_));
      // The nearest rank comes first, so a rank keeps the block whose number is its own with reversed bits.
      for (int block = 0; block < size_; ++block) {
        const std::size_t owner = static_cast<std::size_t>(Reversed(block));
        std::memcpy(work + static_cast<std::size_t>(block) * bytes, input + owner * rank_bytes + begin, bytes);
      }
      const auto range = [bytes](BlockRange blocks) {
        return Range{static_cast<std::size_t>(blocks.first) * bytes, static_cast<std::size_t>(blocks.count) * bytes};
      };
      const auto combine = [&](Range kept, const std::byte* low, const std::byte* high, std::byte* sum) {
        CombineElements(part.reduction, part.dtype, low, high, sum, kept.bytes / element_size);
      };
      absl::Status status = Halve({work, work}, range, combine);
      if (!status.ok()) return status;
      std::memcpy(output + begin, work + static_cast<std::size_t>(Reversed(rank_)) * bytes, bytes);
    }
    return absl::OkStatus();
  }

  absl::Status AllGather(const void* input, void* output, std::size_t bytes) {
    auto* const target = static_cast<std::byte*>(output);
    if (bytes == 0) return absl::OkStatus();
    std::memmove(target + static_cast<std::size_t>(rank_) * bytes, input, bytes);
    if (!std::has_single_bit(static_cast<unsigned>(size_))) return GatherByBroadcasts(target, bytes);
    for (int distance = 1; distance < size_; distance *= 2) {
      const auto own = static_cast<std::size_t>(rank_ / distance * distance) * bytes;
      const auto other = static_cast<std::size_t>((rank_ / distance ^ 1) * distance) * bytes;
      const std::size_t held = static_cast<std::size_t>(distance) * bytes;
      absl::Status status = exchange_.Exchange(rank_ ^ distance, {target + own, held}, {target + other, held});
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status Broadcast(void* data, std::size_t bytes, int root) {
    auto* const target = static_cast<std::byte*>(data);
    // Chunks let a rank pass on what it has while the rest is on its way.
    for (std::size_t begin = 0; begin < bytes; begin += chunk_bytes_) {
      absl::Status status = PassOn({target + begin, std::min(chunk_bytes_, bytes - begin)}, root);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status Barrier() {
    // All ranks meet rank 0 in a tree, and hear of it along the same tree.
    std::byte token{};
    for (int distance = 1; distance < size_; distance *= 2) {
      if ((rank_ & distance) != 0) {
        absl::Status status = exchange_.Exchange(rank_ - distance, {&token, 1}, {});
        if (!status.ok()) return status;
        break;
      }
      if (rank_ + distance >= size_) continue;
      absl::Status status = exchange_.Exchange(rank_ + distance, {}, {&token, 1});
      if (!status.ok()) return status;
    }
    return PassOn({&token, 1}, 0);
  }

 private:
  /// Memory of at least `bytes` that stays until it is asked for again.
  static std::byte* Memory(std::vector<std::byte>& memory, std::size_t bytes) {
    if (memory.size() < bytes) memory.resize(bytes);
    return memory.data();
  }

  int Reversed(int rank) const {
    int reversed = 0;
    for (int bit = 1; bit < size_; bit *= 2) reversed = reversed * 2 + ((rank & bit) != 0 ? 1 : 0);
    return reversed;
  }

  /// The memory of a chunk: the operands where one part has all of it, or a copy.
  ChunkPlace Place(std::size_t begin, std::size_t bytes) {
    ChunkPlace chunk{nullptr, nullptr};
    message_.ForSegments(begin, bytes, [&](const ReductionMessage::Segment& segment) {
      if (segment.bytes == bytes) chunk = {segment.input(), segment.output()};
    });
    if (chunk.work != nullptr) return chunk;
    std::byte* const work = Memory(work_, bytes);
    message_.ReadInputs(begin, bytes, work);
    return {work, work};
  }

  absl::Status ReduceChunk(std::size_t begin, std::size_t bytes) {
    const ChunkPlace chunk = Place(begin, bytes);
    absl::Status status;
    if (size_ == 1) {
      if (chunk.source != chunk.work) std::memcpy(chunk.work, chunk.source, bytes);
    } else if (bytes <= kWholeTreeBytes) {
      status = ExchangeWhole(chunk, begin, bytes);
    } else {
      const auto range = [this, bytes](BlockRange blocks) { return Blocks(bytes, blocks); };
      const auto combine = [&](Range kept, const std::byte* low, const std::byte* high, std::byte* sum) {
        message_.Combine(begin + kept.begin, kept.bytes, low, high, sum);
      };
      status = Halve(chunk, range, combine);
      if (status.ok()) status = GatherBlocks(chunk.work, bytes);
    }
    if (status.ok() && chunk.work == work_.data()) message_.WriteOutputs(begin, bytes, chunk.work);
    return status;
  }

  Range Blocks(std::size_t bytes, BlockRange blocks) const {
    const auto size = static_cast<std::size_t>(size_);
    const auto first = static_cast<std::size_t>(blocks.first);
    const std::size_t begin = BlockBegin(bytes, first, size);
    return {begin, BlockBegin(bytes, first + static_cast<std::size_t>(blocks.count), size) - begin};
  }

  absl::Status ExchangeWhole(ChunkPlace chunk, std::size_t begin, std::size_t bytes) {
    std::byte* const received = Memory(received_, bytes);
    for (int distance = 1; distance < size_; distance *= 2) {
      absl::Status status = exchange_.Exchange(rank_ ^ distance, {chunk.source, bytes}, {received, bytes});
      if (!status.ok()) return status;
      const bool upper = (rank_ & distance) != 0;
      message_.Combine(begin, bytes, upper ? received : chunk.source, upper ? chunk.source : received, chunk.work);
      chunk.source = chunk.work;
    }
    return absl::OkStatus();
  }

  /// Recursive halving. `range(blocks)` is where blocks lie; `combine` adds such a range.
  template <typename RangeOf, typename Combine>
  absl::Status Halve(ChunkPlace chunk, const RangeOf& range, const Combine& combine) {
    for (const TreeRound& round : halving_) {
      const Range sent = range(round.sent);
      const Range kept = range(round.received);
      std::byte* const received = Memory(received_, kept.bytes);
      absl::Status status =
          exchange_.Exchange(round.peer, {chunk.source + sent.begin, sent.bytes}, {received, kept.bytes});
      if (!status.ok()) return status;
      const std::byte* const own = chunk.source + kept.begin;
      combine(kept, round.is_upper ? received : own, round.is_upper ? own : received, chunk.work + kept.begin);
      chunk.source = chunk.work;
    }
    return absl::OkStatus();
  }

  absl::Status GatherBlocks(std::byte* work, std::size_t bytes) {
    for (const TreeRound& round : gathering_) {
      const Range own = Blocks(bytes, round.sent);
      const Range missing = Blocks(bytes, round.received);
      absl::Status status =
          exchange_.Exchange(round.peer, {work + own.begin, own.bytes}, {work + missing.begin, missing.bytes});
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status GatherByBroadcasts(std::byte* target, std::size_t bytes) {
    for (int root = 0; root < size_; ++root) {
      absl::Status status = Broadcast(target + static_cast<std::size_t>(root) * bytes, bytes, root);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  /// A binomial tree over places, which count ranks from the root. `data` comes from the place without the lowest bit
  /// of this one. It goes on to the places with one lower bit more.
  absl::Status PassOn(absl::Span<std::byte> data, int root) {
    const int place = (rank_ - root + size_) % size_;
    int distance = 1;
    while (distance < size_ && (place & distance) == 0) distance *= 2;
    if (distance < size_) {
      absl::Status status = exchange_.Exchange((rank_ - distance + size_) % size_, {}, data);
      if (!status.ok()) return status;
    }
    for (distance /= 2; distance > 0; distance /= 2) {
      if (place + distance >= size_) continue;
      absl::Status status = exchange_.Exchange((rank_ + distance) % size_, data, {});
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  PeerExchange& exchange_;
  int rank_;
  int size_;
  std::vector<TreeRound> halving_, gathering_;
  std::size_t chunk_bytes_;
  ReductionMessage message_;
  std::vector<std::byte> work_;
  std::vector<std::byte> received_;
};

TreeCollectives::TreeCollectives(PeerExchange* exchange, std::size_t chunk_bytes)
    : rounds_(std::make_unique<Rounds>(exchange, chunk_bytes)) {}

TreeCollectives::~TreeCollectives() = default;

absl::Status TreeCollectives::AllReduce(absl::Span<const ReducedPart> parts) {
  if (error_.ok()) error_ = CheckAllReduce(parts, rounds_->size());
  if (error_.ok()) error_ = rounds_->AllReduce(parts);
  return error_;
}

absl::Status TreeCollectives::ReduceScatter(const ReducedPart& part) {
  if (error_.ok()) error_ = CheckReduceScatter(part, rounds_->size());
  if (error_.ok()) error_ = rounds_->ReduceScatter(part);
  return error_;
}

absl::Status TreeCollectives::AllGather(const void* input, void* output, std::size_t bytes) {
  if (error_.ok()) error_ = CheckAllGather(input, output, bytes);
  if (error_.ok()) error_ = rounds_->AllGather(input, output, bytes);
  return error_;
}

absl::Status TreeCollectives::Broadcast(void* data, std::size_t bytes, int root) {
  if (error_.ok()) error_ = CheckBroadcast(data, bytes, root, rounds_->size());
  if (error_.ok()) error_ = rounds_->Broadcast(data, bytes, root);
  return error_;
}

absl::Status TreeCollectives::Barrier() {
  if (error_.ok()) error_ = rounds_->Barrier();
  return error_;
}

}  // namespace mpc::distributed
