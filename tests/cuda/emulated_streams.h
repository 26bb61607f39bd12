// Streams and events of an emulated GPU: queues of work that run in the order they were filled.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"

namespace mpc::emulation {

using Work = std::function<absl::Status()>;

/// Work that may have to wait for another GPU.
struct StreamWork {
  Work work;
  std::function<bool()> ready = nullptr;  ///< asked when the work's turn has come; null: it waits for nobody
};

struct EmulatedStream;

struct EmulatedEvent {
  bool timing = false;
  std::uint64_t recorded = 0;        ///< records that were enqueued
  std::uint64_t reached = 0;         ///< records that the device has passed
  EmulatedStream* stream = nullptr;  ///< of the last record
  double time_ms = 0;                ///< when the device passed it
  bool in_capture = false;           ///< the last record belongs to the capture under way
  std::vector<std::size_t> behind;   ///< nodes of the capture that it comes behind
};

struct EmulatedStream {
  /// Work, or the record of an event, or the wait for record `number` of one.
  struct Operation {
    StreamWork work;
    EmulatedEvent* record = nullptr;
    EmulatedEvent* wait = nullptr;
    std::uint64_t number = 0;
  };
  std::deque<Operation> operations;
  bool capturing = false;
  std::vector<std::size_t> behind;  ///< nodes of the capture that its next one comes behind
};

/// Runs everything on `stream`, and of other streams what it waits for. The first error ends it.
absl::Status RunAll(EmulatedStream& stream);

/// Runs until the device has passed the last record of `event`, and nothing more than that takes.
absl::Status RunUntil(EmulatedEvent& event);

/// As RunUntil, but ends where the device would wait for another GPU.
absl::Status Advance(EmulatedEvent& event);

}  // namespace mpc::emulation
