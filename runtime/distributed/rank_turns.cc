#include "runtime/distributed/rank_turns.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/distributed/collective_call.h"
#include "runtime/distributed/combine_elements.h"
#include "runtime/distributed/reduction_checks.h"

namespace mpc::distributed {
namespace {

/// The memory of a call. Which members it has depends on the function.
struct TurnOperands {
  absl::Span<const ReducedPart> parts;
  const void* input = nullptr;
  void* output = nullptr;
};

void CopyOut(const std::vector<std::byte>& from, std::size_t offset, std::size_t bytes, void* to) {
  if (bytes > 0) std::memcpy(to, from.data() + offset, bytes);
}

/// What the ranks share. Members but for `mutex_` and `changed_` are guarded by them.
class TurnGroup {
 public:
  explicit TurnGroup(int size) : ranks_(static_cast<std::size_t>(size)) {}

  int size() const { return static_cast<int>(ranks_.size()); }

  /// Waits for the first turn of `rank`.
  void Begin(int rank) {
    std::unique_lock<std::mutex> lock(mutex_);
    Await(rank, lock);
  }

  /// Waits until every rank has called it, and the call is made. Errors stay, for all ranks.
  absl::Status Meet(int rank, const CollectiveCall& call, const TurnOperands& operands) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!failed_.ok()) return failed_;
    Rank& own = At(rank);
    own.call = call;
    own.operands = operands;
    PassOn(rank);
    Await(rank, lock);
    return failed_;
  }

  void End(int rank) {
    const std::lock_guard<std::mutex> lock(mutex_);
    At(rank).has_ended = true;
    PassOn(rank);
  }

 private:
  struct Rank {
    CollectiveCall call;
    TurnOperands operands;
    bool has_ended = false;
  };

  Rank& At(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  void Await(int rank, std::unique_lock<std::mutex>& lock) {
    changed_.wait(lock, [&] { return turn_ == rank; });
  }

  /// Gives the turn to the next rank. Behind the last one the call that all have come to is made.
  void PassOn(int rank) {
    const auto next_from = [this](int first) {
      while (first < size() && At(first).has_ended) ++first;
      return first;
    };
    turn_ = next_from(rank + 1);
    if (turn_ == size()) {
      turn_ = next_from(0);
      if (turn_ < size() && failed_.ok()) {
        failed_ = Judge(turn_);
        if (failed_.ok()) Make();
      }
    }
    changed_.notify_all();
  }

  /// Errors: a rank has ended while `waiting` waits for it, or ranks call different functions.
  absl::Status Judge(int waiting) {
    ++calls_;
    const CollectiveCall& first = At(waiting).call;
    for (int rank = 0; rank < size(); ++rank) {
      const Rank& other = At(rank);
      if (other.has_ended) {
        return absl::UnavailableError(absl::StrCat("rank ", rank, " has ended: rank ", waiting, " waited for it in ",
                                                   CollectiveName(first.function), ", its call ", calls_));
      }
      if (other.call.hash == first.hash) continue;
      return absl::InvalidArgumentError(absl::StrCat("ranks differ in their call ", calls_, ": rank ", waiting,
                                                     " calls ", CallText(first), ", and rank ", rank, " calls ",
                                                     CallText(other.call)));
    }
    return absl::OkStatus();
  }

  /// Makes the call of all ranks.
  void Make() {
    const CollectiveCall& call = ranks_.front().call;
    switch (call.function) {
      case Collective::kAllReduce:
        for (std::size_t i = 0; i < call.parts; ++i) Reduce(i, false);
        return;
      case Collective::kReduceScatter:
        return Reduce(0, true);
      case Collective::kAllGather:
        return Gather(call.bytes);
      case Collective::kBroadcast:
        for (Rank& rank : ranks_) {
          void* const to = rank.operands.output;
          const void* const from = At(call.root).operands.input;
          if (to != from && call.bytes > 0) std::memcpy(to, from, call.bytes);
        }
        return;
      default:
        return;
    }
  }

  /// Part `index` of a reduction. `scatters`: each rank keeps its share.
  void Reduce(std::size_t index, bool scatters) {
    const ReducedPart& part = ranks_.front().operands.parts[index];
    std::vector<const void*> rows;
    for (const Rank& rank : ranks_) rows.push_back(rank.operands.parts[index].input);
    const std::size_t bytes = part.elements * ElementSize(part.dtype);
    std::vector<std::byte> reduced(bytes);
    CombineRows(part.reduction, part.dtype, rows, reduced.data(), part.elements);
    const std::size_t share = scatters ? bytes / ranks_.size() : bytes;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      CopyOut(reduced, scatters ? rank * share : 0, share, ranks_[rank].operands.parts[index].output);
    }
  }

  void Gather(std::size_t bytes) {
    std::vector<std::byte> all(bytes * ranks_.size());
    for (std::size_t rank = 0; rank < ranks_.size() && bytes > 0; ++rank) {
      std::memcpy(all.data() + rank * bytes, ranks_[rank].operands.input, bytes);
    }
    for (Rank& rank : ranks_) CopyOut(all, 0, all.size(), rank.operands.output);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Rank> ranks_;
  int turn_ = 0;
  std::uint64_t calls_ = 0;  ///< for messages
  absl::Status failed_;
};

class TurnCommunicator final : public Communicator {
 public:
  TurnCommunicator(TurnGroup& group, int rank) : group_(group), rank_(rank) {}

  std::string_view transport() const override { return "turns"; }
  int rank() const override { return rank_; }
  int size() const override { return group_.size(); }
  absl::Status status() const override { return error_; }

  absl::Status AllReduce(absl::Span<const ReducedPart> parts) override {
    return Call(CheckAllReduce(parts, size()), ReductionCall(Collective::kAllReduce, parts), {.parts = parts});
  }
  absl::Status ReduceScatter(const ReducedPart& part) override {
    const absl::Span<const ReducedPart> parts(&part, 1);
    return Call(CheckReduceScatter(part, size()), ReductionCall(Collective::kReduceScatter, parts), {.parts = parts});
  }
  absl::Status AllGather(const void* input, void* output, std::size_t bytes) override {
    return Call(CheckAllGather(input, output, bytes), CopyCall(Collective::kAllGather, bytes, 0),
                {.input = input, .output = output});
  }
  absl::Status Broadcast(void* data, std::size_t bytes, int root) override {
    return Call(CheckBroadcast(data, bytes, root, size()), CopyCall(Collective::kBroadcast, bytes, root),
                {.input = data, .output = data});
  }
  absl::Status Barrier() override { return Call(absl::OkStatus(), CopyCall(Collective::kBarrier, 0, 0), {}); }

 private:
  absl::Status Call(absl::Status checked, const CollectiveCall& call, const TurnOperands& operands) {
    if (error_.ok()) error_ = checked.ok() ? group_.Meet(rank_, call, operands) : std::move(checked);
    return error_;
  }

  TurnGroup& group_;
  int rank_;
  absl::Status error_;
};

}  // namespace

absl::Status RunInTurns(int size, const RankBody& body) {
  TurnGroup group(size);
  std::vector<absl::Status> ends(static_cast<std::size_t>(size));
  std::vector<absl::Status> errors(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const auto communicator = std::make_shared<TurnCommunicator>(group, rank);
      group.Begin(rank);
      ends[static_cast<std::size_t>(rank)] = body(rank, communicator);
      errors[static_cast<std::size_t>(rank)] = communicator->status();
      group.End(rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
  // Behind a rank that has failed by itself the others fail for its sake.
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    if (!ends[rank].ok() && errors[rank].ok()) return ends[rank];
  }
  const auto failed = std::find_if(ends.begin(), ends.end(), [](const absl::Status& end) { return !end.ok(); });
  return failed == ends.end() ? absl::OkStatus() : *failed;
}

}  // namespace mpc::distributed
