// One block of a launch: its threads, what they wait for, and in which order they go on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/cuda_emulation/device_language.h"
#include "tests/cuda_emulation/fiber.h"
#include "tests/cuda_emulation/shared_memory.h"

namespace mpc::emulation {

/// Draws that decide about orders: xorshift, not for anything else. Seed 0 always draws 0.
class Chance {
 public:
  void Seed(std::uint64_t seed) { state_ = seed * 0x9E3779B97F4A7C15u; }
  /// Below `count`, which is at least 1.
  std::uint32_t Below(std::uint32_t count) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<std::uint32_t>((state_ >> 32) * count >> 32);
  }
  bool chosen() const { return state_ != 0; }

 private:
  std::uint64_t state_ = 0;
};

/// Runs blocks, one after the other. Its fibers outlive a block: a thread that never waits runs on the fiber of the
/// thread before it, and only one that waits keeps a fiber to itself.
class Block {
 public:
  using Body = void (*)(const void* entry, const void* const* arguments);

  /// A launch begins: `threads` of each block call `body(entry, arguments)`.
  void BeginLaunch(Body body, const void* entry, const void* const* arguments, unsigned threads,
                   std::size_t dynamic_bytes, std::uint64_t seed);
  /// Runs the block that blockIdx names.
  absl::Status Run();

  // Called by the running thread.
  bool WaitForBlock(bool value, const Place& place);
  std::uint64_t WaitForWarp(WarpAction action, unsigned mask, std::uint64_t value, unsigned source, const Place& place);
  [[noreturn]] void Fail(std::string problem);
  SharedMemory& shared_memory() { return shared_; }

 private:
  struct Thread {
    enum class State { kUnstarted, kReady, kAtBarrier, kAtWarp, kLeft };
    State state = State::kUnstarted;
    Fiber* fiber = nullptr;
    Place place;
    std::uint64_t value = 0;  ///< what it brings to a warp operation, then what it gets
    unsigned source = 0;
  };
  /// Lanes of a warp that wait for each other.
  struct Meeting {
    unsigned mask = 0, arrived = 0;
    WarpAction action = WarpAction::kSync;
    Place place;
  };
  using Warp = std::vector<Meeting>;

  void RunThreads();
  void Wait(Thread::State state, const Place& place);
  void Enter(Fiber& next);
  Fiber& NextFiber();
  Fiber& IdleFiber();
  void MakeReady(std::size_t thread);
  void CheckLanes(WarpAction action, unsigned mask, unsigned source, const Place& place);
  void Complete(const Meeting& meeting);
  std::string Stuck() const;

  Body body_ = nullptr;
  const void* entry_ = nullptr;
  const void* const* arguments_ = nullptr;
  std::size_t dynamic_bytes_ = 0;
  Chance chance_;
  SharedMemory shared_;

  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<std::uint16_t> order_;  ///< in which threads start
  std::size_t started_ = 0, left_ = 0;
  std::vector<std::uint16_t> ready_;  ///< threads whose rendezvous is over
  unsigned running_ = 0;

  std::size_t at_barrier_ = 0;
  Place barrier_place_;
  bool vote_ = false, vote_result_ = false;

  Fiber* host_ = nullptr;
  Fiber* on_ = nullptr;  ///< the fiber that runs
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  std::optional<std::string> problem_;
};

}  // namespace mpc::emulation
