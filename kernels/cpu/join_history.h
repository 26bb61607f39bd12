// Records how long the ends of loops waited for other threads. Decides whether loops should do without other threads
// for a while.
#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>

namespace mpc::cpu {

/// On a busy machine a thread can lose its processor within a loop, and the caller then waits for milliseconds. An end
/// of a loop is slow where it took over 200 us and longer than the caller would have taken for what others did. Where 8
/// of the last 64 ends were slow, loops pause: they stay on their caller. The pause lasts 10 ms, or 20 times the last
/// wait where that is longer. The loop after the pause tries again and counts as the others do. So a machine that stays
/// busy costs one wait for each pause, a twentieth of the time.
class JoinHistory {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::microseconds kSlow{200};
  static constexpr int kMostSlow = 7;  ///< the most slow ends among the last 64 without a pause
  static constexpr std::chrono::milliseconds kPause{10};
  static constexpr int kPauseOfWaits = 20;

  /// The end of a loop waited for others as long as `waited`, until `now`. They `saved` the caller so much work.
  void Add(Clock::duration waited, Clock::duration saved, Clock::time_point now) {
    slow_ = slow_ << 1 | std::uint64_t{waited > kSlow && waited > saved};
    if (std::popcount(slow_) <= kMostSlow) return;
    alone_until_ = now + std::max<Clock::duration>(kPause, kPauseOfWaits * waited);
  }

  /// Whether a loop that begins at `now` stays on its caller.
  bool IsPaused(Clock::time_point now) const { return now < alone_until_; }

 private:
  std::uint64_t slow_ = 0;  ///< a bit for each of the last 64 ends, the latest one lowest
  Clock::time_point alone_until_{};
};

}  // namespace mpc::cpu
