#include "tests/cuda/emulated_streams.h"

#include <chrono>
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

absl::Status RunNext(EmulatedStream& stream) {
  const EmulatedStream::Operation operation = std::move(stream.operations.front());
  stream.operations.pop_front();
  if (operation.wait != nullptr) return RunUntilRecord(*operation.wait, operation.number);
  if (operation.record != nullptr) {
    operation.record->reached = operation.number;
    operation.record->time_ms = NowMilliseconds();
    return absl::OkStatus();
  }
  return operation.work();
}

}  // namespace

absl::Status RunAll(EmulatedStream& stream) {
  while (!stream.operations.empty()) {
    if (absl::Status status = RunNext(stream); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status RunUntil(EmulatedEvent& event) { return RunUntilRecord(event, event.recorded); }

}  // namespace mpc::emulation
