#include "tests/cuda/emulated_streams.h"

#include <chrono>
#include <thread>
#include <utility>

namespace mpc::emulation {
namespace {

double NowMilliseconds() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

absl::Status RunNext(EmulatedStream& stream);

absl::Status RunUntilRecord(EmulatedEvent& event, std::uint64_t number) {
  while (event.reached < number && event.stream != nullptr && !event.stream->operations.empty()) {
    if (absl::Status status = RunNext(*event.stream); !status.ok()) return status;
  }
  return absl::OkStatus();
}

bool IsReady(const EmulatedStream& stream) {
  const EmulatedStream::Operation& next = stream.operations.front();
  return next.work.ready == nullptr || next.work.ready();
}

absl::Status RunNext(EmulatedStream& stream) {
  while (!IsReady(stream)) std::this_thread::sleep_for(std::chrono::microseconds(50));
  const EmulatedStream::Operation operation = std::move(stream.operations.front());
  stream.operations.pop_front();
  if (operation.wait != nullptr) return RunUntilRecord(*operation.wait, operation.number);
  if (operation.record != nullptr) {
    operation.record->reached = operation.number;
    operation.record->time_ms = NowMilliseconds();
    return absl::OkStatus();
  }
  return operation.work.work();
}

}  // namespace

absl::Status RunAll(EmulatedStream& stream) {
  while (!stream.operations.empty()) {
    if (absl::Status status = RunNext(stream); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Advance(EmulatedEvent& event) {
  while (event.reached < event.recorded && event.stream != nullptr && !event.stream->operations.empty()) {
    if (!IsReady(*event.stream)) break;
    if (absl::Status status = RunNext(*event.stream); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status RunUntil(EmulatedEvent& event) { return RunUntilRecord(event, event.recorded); }

}  // namespace mpc::emulation
