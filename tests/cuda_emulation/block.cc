#include "tests/cuda_emulation/block.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mpc::emulation {
namespace {

constexpr unsigned kWarpSize = 32;

std::string Where(const Place& place) { return absl::StrCat(place.file_name(), ":", place.line()); }

bool Same(const Place& a, const Place& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         (a.file_name() == b.file_name() || std::strcmp(a.file_name(), b.file_name()) == 0);
}

// The first few of `threads`.
std::string Named(const std::vector<std::size_t>& threads) {
  constexpr std::size_t kNamed = 6;
  const auto end = threads.begin() + static_cast<std::ptrdiff_t>(std::min(threads.size(), kNamed));
  return absl::StrCat("thread", threads.size() > 1 ? "s " : " ", absl::StrJoin(threads.begin(), end, ", "),
                      threads.size() > kNamed ? ", ..." : "");
}

}  // namespace

void Block::BeginLaunch(Body body, const void* entry, const void* const* arguments, unsigned threads,
                        std::size_t dynamic_bytes, std::uint64_t seed) {
  body_ = body;
  entry_ = entry;
  arguments_ = arguments;
  dynamic_bytes_ = dynamic_bytes;
  chance_.Seed(seed);
  threads_.resize(threads);
  warps_.resize((threads + kWarpSize - 1) / kWarpSize);
  order_.resize(threads);
  std::iota(order_.begin(), order_.end(), std::uint16_t{0});
}

absl::Status Block::Run() {
  for (Thread& thread : threads_) thread.state = Thread::State::kUnstarted;
  for (Warp& warp : warps_) warp.clear();
  for (std::size_t i = order_.size(); chance_.chosen() && i > 1; --i) {
    std::swap(order_[i - 1], order_[chance_.Below(static_cast<std::uint32_t>(i))]);
  }
  started_ = left_ = at_barrier_ = 0;
  ready_.clear();
  vote_ = false;
  problem_.reset();
  shared_.Begin(dynamic_bytes_);

  Fiber host;
  host_ = on_ = &host;
  Enter(IdleFiber());
  if (!problem_ && left_ < threads_.size()) problem_ = Stuck();
  if (!problem_) problem_ = shared_.Overrun();
  if (!problem_) return absl::OkStatus();
  // Threads that still wait are given up with their stacks.
  idle_.clear();
  fibers_.clear();
  return absl::InternalError(absl::StrCat("block (", blockIdx.x, ", ", blockIdx.y, ", ", blockIdx.z, ") of ",
                                          threads_.size(), " threads: ", *problem_));
}

// A fiber runs threads until none is left to start, then rests until it is needed again.
void Block::RunThreads() {
  for (;;) {
    while (started_ < order_.size()) {
      running_ = order_[started_++];
      threadIdx.x = running_;
      body_(entry_, arguments_);
      threads_[running_].state = Thread::State::kLeft;
      ++left_;
    }
    idle_.push_back(on_);
    Enter(NextFiber());
  }
}

void Block::Enter(Fiber& next) {
  Fiber& self = *on_;
  on_ = &next;
  self.SwitchTo(next);
}

Fiber& Block::NextFiber() {
  const bool more = started_ < order_.size();
  if (more && (ready_.empty() || chance_.Below(2) == 0)) return IdleFiber();
  if (ready_.empty()) return *host_;
  std::swap(ready_[chance_.Below(static_cast<std::uint32_t>(ready_.size()))], ready_.back());
  Thread& thread = threads_[ready_.back()];
  ready_.pop_back();
  return *thread.fiber;
}

Fiber& Block::IdleFiber() {
  if (idle_.empty()) {
    fibers_.push_back(
        std::make_unique<Fiber>([](void* block) { static_cast<Block*>(block)->RunThreads(); }, this, fibers_.size()));
    return *fibers_.back();
  }
  Fiber& fiber = *idle_.back();
  idle_.pop_back();
  return fiber;
}

void Block::Wait(Thread::State state, const Place& place) {
  const unsigned self = running_;
  Thread& thread = threads_[self];
  thread.state = state;
  thread.place = place;
  thread.fiber = on_;
  Enter(NextFiber());
  running_ = self;
  threadIdx.x = self;
}

void Block::MakeReady(std::size_t thread) {
  threads_[thread].state = Thread::State::kReady;
  ready_.push_back(static_cast<std::uint16_t>(thread));
}

void Block::Fail(std::string problem) {
  problem_ = std::move(problem);
  Enter(*host_);
  std::abort();  // a block that failed is not entered again, so its callers keep no temporaries that need destruction
}

bool Block::WaitForBlock(bool value, const Place& place) {
  if (at_barrier_ == 0) barrier_place_ = place;
  if (!Same(place, barrier_place_)) {
    std::string problem = absl::StrCat("thread ", running_, " waits at ", Where(place), ", another at ",
                                       Where(barrier_place_), ": different barriers");
    Fail(std::move(problem));
  }
  vote_ = vote_ || value;
  if (++at_barrier_ < threads_.size()) {
    Wait(Thread::State::kAtBarrier, place);
    return vote_result_;
  }
  at_barrier_ = 0;
  vote_result_ = std::exchange(vote_, false);
  for (std::size_t thread = 0; thread < threads_.size(); ++thread) {
    if (threads_[thread].state == Thread::State::kAtBarrier) MakeReady(thread);
  }
  return vote_result_;
}

void Block::CheckLanes(WarpAction action, unsigned mask, unsigned source, const Place& place) {
  const std::size_t first = running_ / kWarpSize * kWarpSize;
  const auto lanes = static_cast<unsigned>(std::min<std::size_t>(kWarpSize, threads_.size() - first));
  const auto has = [](unsigned lanes_mask, unsigned lane) {
    return lane < kWarpSize && (lanes_mask >> lane & 1u) != 0;
  };
  if (!has(mask, running_ % kWarpSize)) {
    std::string problem = absl::StrCat("thread ", running_, " is not in the mask ", absl::Hex(mask),
                                       " of its warp operation at ", Where(place));
    Fail(std::move(problem));
  }
  if (lanes < kWarpSize && (mask >> lanes) != 0) {
    std::string problem = absl::StrCat("the mask ", absl::Hex(mask), " at ", Where(place),
                                       " names lanes that the warp of thread ", running_, " lacks: it has ", lanes);
    Fail(std::move(problem));
  }
  if (action == WarpAction::kShuffle && !has(mask, source)) {
    std::string problem = absl::StrCat("thread ", running_, " reads lane ", source, " at ", Where(place),
                                       ", which is not in the mask ", absl::Hex(mask));
    Fail(std::move(problem));
  }
}

std::uint64_t Block::WaitForWarp(WarpAction action, unsigned mask, std::uint64_t value, unsigned source,
                                 const Place& place) {
  CheckLanes(action, mask, source, place);
  Thread& thread = threads_[running_];
  thread.value = value;
  thread.source = source;
  Warp& warp = warps_[running_ / kWarpSize];
  auto meeting = std::find_if(warp.begin(), warp.end(), [mask](const Meeting& other) { return other.mask == mask; });
  if (meeting == warp.end()) meeting = warp.insert(warp.end(), {mask, 0, action, place});
  if (meeting->action != action || !Same(meeting->place, place)) {
    std::string problem = absl::StrCat("thread ", running_, " waits for its warp at ", Where(place),
                                       ", another lane at ", Where(meeting->place), ": different warp operations");
    Fail(std::move(problem));
  }
  meeting->arrived |= 1u << running_ % kWarpSize;
  if (meeting->arrived != mask) {
    Wait(Thread::State::kAtWarp, place);
    return thread.value;
  }
  const Meeting complete = *meeting;
  warp.erase(meeting);
  Complete(complete);
  return thread.value;
}

void Block::Complete(const Meeting& meeting) {
  const std::size_t first = running_ / kWarpSize * kWarpSize;
  std::array<std::uint64_t, kWarpSize> values{};
  std::uint64_t votes = 0;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    if ((meeting.mask >> lane & 1u) == 0) continue;
    values[lane] = threads_[first + lane].value;
    if (values[lane] != 0) votes |= std::uint64_t{1} << lane;
  }
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    if ((meeting.mask >> lane & 1u) == 0) continue;
    Thread& thread = threads_[first + lane];
    thread.value = meeting.action == WarpAction::kVote ? votes : values[thread.source];
    if (first + lane != running_) MakeReady(first + lane);
  }
}

std::string Block::Stuck() const {
  std::map<std::string, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    const Thread& thread = threads_[i];
    if (thread.state == Thread::State::kLeft) {
      groups["has left"].push_back(i);
    } else {
      const bool warp = thread.state == Thread::State::kAtWarp;
      groups[absl::StrCat("waits for its ", warp ? "warp" : "block", " at ", Where(thread.place))].push_back(i);
    }
  }
  return absl::StrJoin(groups, "; ", [](std::string* out, const auto& group) {
    absl::StrAppend(out, group.second.size(), " x ", group.first, " (", Named(group.second), ")");
  });
}

}  // namespace mpc::emulation
