#include "runtime/cuda/output_ring.h"

#include <cstring>

#include "runtime/cuda/stream_queue.h"

namespace mpc::runtime {
namespace {

constexpr std::size_t kOutputAlignment = 64;
/// One kernel writes all small outputs (a loss, flags) to the host. A larger output is worth a copy of its own.
constexpr std::size_t kSmallOutput = std::size_t{16} << 10;

}  // namespace

absl::Status OutputRing::Create(CudaApi& api, const Program& program, const DeviceAddresses& addresses,
                                std::size_t steps) {
  steps_ = steps;
  for (const NamedValue& output : program.outputs) {
    offsets_.push_back(stride_);
    bytes_.push_back(program.values[output.value].spec.bytes());
    stride_ += (bytes_.back() + kOutputAlignment - 1) / kOutputAlignment * kOutputAlignment;
  }
  // With one step per launch the buffers hold all outputs that are kept.
  if (steps > 1) saved_.resize(kLaunchesInFlight * steps * stride_);
  if (absl::Status status = Allocate(api, kLaunchesInFlight * steps * stride_, pinned_); !status.ok()) return status;
  copies_.resize(kLaunchesInFlight * steps);
  for (std::size_t place = 0; place < copies_.size(); ++place) {
    for (std::size_t i = 0; i < program.outputs.size(); ++i) {
      std::byte* to = static_cast<std::byte*>(pinned_.get()) + place * stride_ + offsets_[i];
      const CopyRange copy{to, addresses.AddressOf(program.values[program.outputs[i].value]), bytes_[i]};
      (copy.bytes <= kSmallOutput ? copies_[place].small : copies_[place].large).push_back(copy);
    }
  }
  return absl::OkStatus();
}

absl::Status OutputRing::Enqueue(CudaApi& api, std::size_t buffer, std::size_t step, CudaApi::Stream stream) const {
  const Copies& copies = copies_[buffer * steps_ + step];
  for (const CopyRange& copy : copies.large) {
    absl::Status status = api.Copy(copy.to, copy.from, copy.bytes, CudaCopy::kDeviceToHost, stream);
    if (!status.ok()) return status;
  }
  StreamQueue queue(api, stream);
  return cuda::EnqueueCopies(copies.small, queue);
}

void OutputRing::Save(std::size_t buffer, std::size_t step, std::uint64_t number) {
  if (stride_ == 0) return;
  std::byte* place = saved_.data() + number % (kLaunchesInFlight * steps_) * stride_;
  std::memcpy(place, Place(buffer, step), stride_);
}

absl::Span<const std::uint8_t> OutputRing::Saved(std::uint64_t number, std::size_t index) const {
  return OutputAt(saved_.data() + number % (kLaunchesInFlight * steps_) * stride_, index);
}

}  // namespace mpc::runtime
