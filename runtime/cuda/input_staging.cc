#include "runtime/cuda/input_staging.h"

#include <cassert>
#include <cstring>

namespace mpc::runtime {
namespace {

constexpr std::size_t kInputAlignment = 256;

std::size_t Padded(std::size_t bytes) { return (bytes + kInputAlignment - 1) / kInputAlignment * kInputAlignment; }

}  // namespace

std::size_t InputStaging::DeviceBytes(const Program& program, std::size_t steps) {
  std::size_t bytes = 0;
  for (const NamedValue& input : program.inputs) bytes += Padded(program.values[input.value].spec.bytes());
  return kLaunchesInFlight * steps * bytes;
}

absl::Status InputStaging::Create(CudaApi& api, const Program& program, const DeviceAddresses& addresses,
                                  std::size_t steps) {
  steps_ = steps;
  for (const NamedValue& input : program.inputs) {
    offsets_.push_back(stride_);
    stride_ += Padded(program.values[input.value].spec.bytes());
  }
  to_arena_.resize(kLaunchesInFlight * steps);
  if (empty()) return absl::OkStatus();
  for (std::size_t index = 0; index < kLaunchesInFlight; ++index) {
    StagingBuffers& own = buffers_[index];
    if (absl::Status status = Allocate(api, stride_ * steps, own.pinned); !status.ok()) return status;
    if (absl::Status status = Allocate(api, stride_ * steps, own.device); !status.ok()) return status;
    if (absl::Status status = Keep(api, api.CreateEvent(false), own.uploaded); !status.ok()) return status;
    for (std::size_t step = 0; step < steps; ++step) {
      const std::byte* place = static_cast<const std::byte*>(own.device.get()) + step * stride_;
      for (std::size_t i = 0; i < program.inputs.size(); ++i) {
        const Value& input = program.values[program.inputs[i].value];
        to_arena_[index * steps + step].push_back(
            {addresses.AddressOf(input), place + offsets_[i], input.spec.bytes()});
      }
    }
  }
  return absl::OkStatus();
}

void InputStaging::Write(std::size_t buffer, std::size_t step, StepInputs inputs) {
  assert(buffer < kLaunchesInFlight && step < steps_ && "a launch in flight has this step");
  assert(inputs.size() <= offsets_.size() && "CheckInputs has counted the inputs");
  std::byte* place = static_cast<std::byte*>(buffers_[buffer].pinned.get()) + step * stride_;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].empty()) std::memcpy(place + offsets_[i], inputs[i].data(), inputs[i].size());
  }
}

absl::Status InputStaging::Upload(CudaContext& context, std::size_t buffer, std::size_t steps,
                                  CudaApi::Event buffer_free) {
  if (empty()) return absl::OkStatus();
  assert(buffer < kLaunchesInFlight && steps <= steps_ && "the staging memory holds these steps");
  CudaApi& api = context.api();
  const StagingBuffers& used = buffers_[buffer];
  if (buffer_free != nullptr) {
    if (absl::Status status = api.WaitEvent(context.upload_stream(), buffer_free); !status.ok()) return status;
  }
  absl::Status status =
      api.Copy(used.device.get(), used.pinned.get(), steps * stride_, CudaCopy::kHostToDevice, context.upload_stream());
  if (status.ok()) status = api.RecordEvent(used.uploaded.get(), context.upload_stream());
  if (status.ok()) status = api.WaitEvent(context.compute_stream(), used.uploaded.get());
  return status;
}

}  // namespace mpc::runtime
