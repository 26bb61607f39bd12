#include "kernels/cpu/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <system_error>
#include <thread>

#include "kernels/cpu/join_history.h"
#include "kernels/cpu/loop_processors.h"

namespace mpc::cpu {
namespace {

/// Work (about one element each) below which starting threads costs more than it saves.
#ifdef __SANITIZE_THREAD__
// Threads share the loops over small tensors too, which tests have many of: each is checked for tasks that are not
// independent.
constexpr std::int64_t kSerialWork = 16;
#else
constexpr std::int64_t kSerialWork = 64 * 1024;
#endif

/// Pieces of a loop for each thread. A thread that comes late leaves pieces to the others.
constexpr std::int64_t kPiecesPerThread = 8;

/// How long a thread looks for the next loop, or for the last piece of this one, before it sleeps: waking it takes as
/// long.
constexpr std::chrono::microseconds kPatience{40};

/// Looks at `done` again and again; false if it was false for as long as kPatience.
template <typename Condition>
bool SpinUntil(const Condition& done) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  do {
    for (int i = 0; i < 16; ++i) {
      if (done()) return true;
      __builtin_ia32_pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

/// Neighbouring pieces of a loop. Their thread takes them from the front, others from the back.
class alignas(64) Share {
 public:
  void Reset(std::int64_t begin, std::int64_t end) { range_.store(Pack(begin, end), std::memory_order_relaxed); }

  /// A piece, or -1.
  std::int64_t TakeFirst() {
    return Take([](std::int64_t& begin, std::int64_t&) { return begin++; });
  }
  std::int64_t TakeLast() {
    return Take([](std::int64_t&, std::int64_t& end) { return --end; });
  }

 private:
  static std::uint64_t Pack(std::int64_t begin, std::int64_t end) {
    return static_cast<std::uint64_t>(begin) << 32 | static_cast<std::uint64_t>(end);
  }
  template <typename Choice>
  std::int64_t Take(const Choice& choose) {
    std::uint64_t range = range_.load(std::memory_order_relaxed);
    for (;;) {
      auto begin = static_cast<std::int64_t>(range >> 32), end = static_cast<std::int64_t>(range & 0xffffffff);
      if (begin >= end) return -1;
      const std::int64_t piece = choose(begin, end);
      if (range_.compare_exchange_weak(range, Pack(begin, end), std::memory_order_relaxed)) return piece;
    }
  }

  std::atomic<std::uint64_t> range_{0};
};

/// Where OpenMP binds its threads to processors, the thread that starts one of ours is bound too. Ours would share its
/// processor: let this one use all that OpenMP has.
void UseEveryProcessor() {
  if (!OpenMpBindsThreads()) return;
  cpu_set_t processors;
  CPU_ZERO(&processors);
  for (const int processor : LoopProcessors()) CPU_SET(static_cast<std::size_t>(processor), &processors);
  // Where the system refuses, the thread stays where it is.
  if (CPU_COUNT(&processors) > 0) sched_setaffinity(0, sizeof(processors), &processors);
}

/// Threads that wait for loops, also for those over parts of a library's primitives. OpenMP's threads are not used.
/// They either spin for milliseconds where they wait, which a busy machine has no processors for. Or they take 40 us to
/// start and to join, and a small network's kernel takes less than that to compute. One loop runs at a time, and its
/// caller works too. The caller does not wait for threads that have not begun, so that a thread that is slow to wake
/// costs nothing.
class ThreadPool {
 public:
  /// Never destroyed: its threads may wait until the process ends.
  static ThreadPool& Instance() {
    static ThreadPool& pool = *new ThreadPool;
    return pool;
  }

  /// False, and nothing was done, if a loop is running: another thread's, or one that this one is part of. So it is
  /// while ends of loops wait too long for other threads.
  /// Tasks throw nothing: another thread would have nobody to tell.
  bool TryRun(std::int64_t count, std::int64_t threads, SlotRange run) noexcept {
    if (busy_.test_and_set(std::memory_order_acquire)) return false;
    if (joins_.IsPaused(JoinHistory::Clock::now())) {
      busy_.clear(std::memory_order_release);
      return false;
    }
    threads = Start(threads);
    loop_ = {count, std::min(count, threads * kPiecesPerThread), threads, &run};
    for (std::int64_t i = 0; i < threads; ++i) {
      shares_[static_cast<std::size_t>(i)].Reset(loop_.pieces * i / threads, loop_.pieces * (i + 1) / threads);
    }
    const JoinHistory::Clock::time_point begin = JoinHistory::Clock::now();
    wanted_.store(threads, std::memory_order_relaxed);
    Open();
    const std::int64_t own = Work(0);
    Close(begin, own);
    busy_.clear(std::memory_order_release);
    return true;
  }

 private:
  struct Loop {
    std::int64_t count, pieces, threads;
    const SlotRange* run;
  };
  /// `state_` while a loop may be entered; below it the number of threads inside, without the caller.
  static constexpr std::uint32_t kOpen = 1u << 31;

  /// Returns how many of `threads` there are: the system may allow no more.
  std::int64_t Start(std::int64_t threads) {
    if (threads <= size_) return threads;
    if (size_ == most_) return size_;
    shares_ = std::make_unique<Share[]>(static_cast<std::size_t>(threads));
    try {
      for (; size_ < threads; ++size_) std::thread([this, self = size_] { Serve(self); }).detach();
    } catch (const std::system_error&) {
      most_ = size_;
    }
    return size_;
  }

  void Open() {
    state_.store(kOpen);
    news_.fetch_add(1);
    // A thread counts itself before it looks at `news_` for the last time, so it is either seen here or sees the news.
    if (sleepers_.load() > 0) news_.notify_all();
  }

  /// Waits for the threads within the loop, of whose pieces the caller did `own` since `begin`.
  void Close(JoinHistory::Clock::time_point begin, std::int64_t own) {
    const JoinHistory::Clock::time_point done = JoinHistory::Clock::now();
    std::uint32_t inside = state_.fetch_and(~kOpen, std::memory_order_acq_rel) & ~kOpen;
    const auto is_empty = [&] { return (inside = state_.load(std::memory_order_acquire)) == 0; };
    if (inside != 0 && !SpinUntil(is_empty)) {
      while (!is_empty()) state_.wait(inside, std::memory_order_acquire);
    }
    const JoinHistory::Clock::time_point end = JoinHistory::Clock::now();
    // The caller would have taken about as long for the pieces of others as for its own.
    const auto saved = own > 0 ? (done - begin) * (loop_.pieces - own) / own : JoinHistory::Clock::duration::max();
    joins_.Add(end - done, saved, end);
  }

  /// What thread `self` does until the process ends.
  void Serve(std::int64_t self) {
    UseEveryProcessor();
    for (std::uint32_t seen = 0;;) {
      const auto is_news = [&] { return news_.load(std::memory_order_acquire) != seen; };
      if (!SpinUntil(is_news)) {
        sleepers_.fetch_add(1);
        news_.wait(seen);
        sleepers_.fetch_sub(1);
      }
      seen = news_.load(std::memory_order_acquire);
      if (self >= wanted_.load(std::memory_order_relaxed) || !Enter()) continue;
      if (self < loop_.threads) Work(self);
      // The last thread out may be awaited.
      if (state_.fetch_sub(1, std::memory_order_acq_rel) == 1) state_.notify_one();
    }
  }

  bool Enter() {
    std::uint32_t state = state_.load(std::memory_order_relaxed);
    while ((state & kOpen) != 0) {
      if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acquire)) return true;
    }
    return false;
  }

  /// Own pieces first, then those that others have not begun. Returns how many this thread did.
  std::int64_t Work(std::int64_t self) {
    const auto share = [&](std::int64_t i) -> Share& { return shares_[static_cast<std::size_t>(i)]; };
    std::int64_t done = 0;
    for (std::int64_t piece; (piece = share(self).TakeFirst()) >= 0; ++done) Run(piece, self);
    for (std::int64_t i = 1; i < loop_.threads; ++i) {
      for (std::int64_t piece; (piece = share((self + i) % loop_.threads).TakeLast()) >= 0; ++done) Run(piece, self);
    }
    return done;
  }

  void Run(std::int64_t piece, std::int64_t slot) const { (*loop_.run)(Begin(piece), Begin(piece + 1), slot); }
  /// The first task of a piece.
  std::int64_t Begin(std::int64_t piece) const {
    return loop_.count / loop_.pieces * piece + loop_.count % loop_.pieces * piece / loop_.pieces;
  }

  std::atomic_flag busy_;
  std::int64_t size_ = 1;                                         ///< threads, the caller included
  std::int64_t most_ = std::numeric_limits<std::int64_t>::max();  ///< threads that the system allows
  std::unique_ptr<Share[]> shares_;
  Loop loop_{};
  JoinHistory joins_;
  std::atomic<std::uint32_t> state_{0};
  /// Threads of the loop. Others need not enter it. One that reads the number of another loop misses this one at worst.
  std::atomic<std::int64_t> wanted_{0};
  std::atomic<std::uint32_t> news_{0};  ///< loops so far
  std::atomic<std::uint32_t> sleepers_{0};
};

}  // namespace

void RunTasks(std::int64_t count, std::int64_t work, TaskRange run) {
  RunTasksInSlots(count, NumThreads(), work,
                  [run](std::int64_t begin, std::int64_t end, std::int64_t) { run(begin, end); });
}

void RunTasksInSlots(std::int64_t count, std::int64_t slots, std::int64_t work, SlotRange run) {
  const std::int64_t threads = std::min<std::int64_t>(NumThreads(), slots);
  if (count < 2 || threads < 2 || work < kSerialWork) return run(0, count, 0);
  if (!ThreadPool::Instance().TryRun(count, threads, run)) run(0, count, 0);
}

}  // namespace mpc::cpu
