#include "tests/gpu/gpu_kernel_device.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/kernel.h"
#include "runtime/cuda/cudart_api.h"
#include "runtime/cuda/handles.h"
#include "runtime/cuda/stream_queue.h"

namespace mpc::test {
namespace {

using runtime::CudaApi;
using runtime::CudaCopy;

constexpr std::size_t kGuardBytes = 256;
constexpr std::uint8_t kGuard = 0xA5;

/// The one GPU of the test program: a stream, library handles, what kernels are created for.
struct Gpu {
  runtime::CudartApi api;
  absl::Status status;
  CudaApi::Stream stream = nullptr;
  cuda::KernelContext context;

  Gpu() { status = Open(); }

  absl::Status Open() {
    const absl::StatusOr<runtime::CudaDeviceProperties> properties = api.Properties();
    if (!properties.ok()) return properties.status();
    context.target = {properties->compute_capability, properties->multiprocessors};
    absl::StatusOr<CudaApi::Stream> made = api.CreateStream();
    if (!made.ok()) return made.status();
    stream = *made;
    absl::StatusOr<cuda::LibraryHandles> handles = api.CreateLibraryHandles();
    if (!handles.ok()) return handles.status();
    context.handles = *handles;
    return absl::OkStatus();
  }
};

Gpu& TheGpu() {
  static auto* const gpu = new Gpu;
  return *gpu;
}

/// Device memory that holds what a host buffer does, with a guard behind it.
class MirroredBuffer {
 public:
  static absl::StatusOr<MirroredBuffer> Create(const void* host, std::size_t bytes) {
    Gpu& gpu = TheGpu();
    absl::StatusOr<void*> memory = gpu.api.Malloc(bytes + kGuardBytes);
    if (!memory.ok()) return memory.status();
    MirroredBuffer buffer;
    buffer.bytes_ = bytes;
    buffer.memory_ = runtime::DeviceMemory(gpu.api, *memory);
    absl::Status status = gpu.api.Fill(buffer.AddressAt(bytes), kGuard, kGuardBytes, gpu.stream);
    if (bytes > 0 && host != nullptr) {
      status.Update(gpu.api.Copy(buffer.AddressAt(0), host, bytes, CudaCopy::kHostToDevice, gpu.stream));
    }
    if (!status.ok()) return status;
    return buffer;
  }

  void* device() const { return memory_.get(); }

  /// Copies the content to `host`. Errors (INTERNAL): the guard was overwritten.
  absl::Status Return(void* host) const {
    Gpu& gpu = TheGpu();
    std::vector<std::uint8_t> guard(kGuardBytes);
    absl::Status status =
        gpu.api.Copy(guard.data(), AddressAt(bytes_), kGuardBytes, CudaCopy::kDeviceToHost, gpu.stream);
    if (bytes_ > 0 && host != nullptr) {
      status.Update(gpu.api.Copy(host, AddressAt(0), bytes_, CudaCopy::kDeviceToHost, gpu.stream));
    }
    status.Update(gpu.api.SynchronizeStream(gpu.stream));
    if (!status.ok()) return status;
    for (const std::uint8_t byte : guard) {
      if (byte != kGuard) return absl::InternalError(absl::StrCat("a kernel writes past ", bytes_, " bytes"));
    }
    return absl::OkStatus();
  }

 private:
  std::uint8_t* AddressAt(std::size_t offset) const { return static_cast<std::uint8_t*>(memory_.get()) + offset; }

  runtime::DeviceMemory memory_;
  std::size_t bytes_ = 0;
};

class GpuKernel : public KernelDevice::Kernel {
 public:
  GpuKernel(KernelSpec spec, std::unique_ptr<cuda::Kernel> kernel)
      : spec_(std::move(spec)), kernel_(std::move(kernel)) {}

  std::size_t workspace_bytes() const override { return kernel_->workspace_bytes(); }

  absl::Status Run(const void* const* inputs, void* const* outputs, void* workspace) override {
    Gpu& gpu = TheGpu();
    std::vector<MirroredBuffer> buffers;
    std::vector<std::pair<const void*, void*>> addresses;  // host, device
    const auto mirror = [&](const void* host, std::size_t bytes) -> absl::StatusOr<void*> {
      for (const auto& [known, device] : addresses) {
        if (host != nullptr && known == host) return device;
      }
      absl::StatusOr<MirroredBuffer> buffer = MirroredBuffer::Create(host, bytes);
      if (!buffer.ok()) return buffer.status();
      buffers.push_back(*std::move(buffer));
      addresses.emplace_back(host, buffers.back().device());
      return buffers.back().device();
    };
    std::vector<const void*> device_inputs;
    std::vector<void*> device_outputs;
    for (std::size_t i = 0; i < spec_.inputs.size(); ++i) {
      absl::StatusOr<void*> device = mirror(inputs[i], spec_.inputs[i].bytes());
      if (!device.ok()) return device.status();
      device_inputs.push_back(*device);
    }
    for (std::size_t i = 0; i < spec_.outputs.size(); ++i) {
      absl::StatusOr<void*> device = nullptr;
      if (outputs[i] != nullptr) device = mirror(outputs[i], spec_.outputs[i].bytes());
      if (!device.ok()) return device.status();
      device_outputs.push_back(*device);
    }
    absl::StatusOr<void*> device_workspace = mirror(workspace, workspace_bytes());
    if (!device_workspace.ok()) return device_workspace.status();

    runtime::StreamQueue queue(gpu.api, gpu.stream);
    absl::Status status = kernel_->Enqueue({device_inputs.data(), device_outputs.data(), *device_workspace}, queue);
    status.Update(gpu.api.SynchronizeStream(gpu.stream));
    for (std::size_t i = 0; status.ok() && i < buffers.size(); ++i) {
      status.Update(buffers[i].Return(const_cast<void*>(addresses[i].first)));
    }
    return status;
  }

 private:
  KernelSpec spec_;
  std::unique_ptr<cuda::Kernel> kernel_;
};

class GpuKernelDevice : public KernelDevice {
 public:
  explicit GpuKernelDevice(bool use_libraries, std::size_t workspace_cap = cuda::KernelContext().workspace_cap,
                           std::string choice = {})
      : use_libraries_(use_libraries), workspace_cap_(workspace_cap), choice_(std::move(choice)) {}

  absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelSpec& spec) const override {
    cuda::KernelContext context = TheGpu().context;
    context.use_libraries = use_libraries_;
    context.workspace_cap = workspace_cap_;
    context.choice = choice_;
    absl::StatusOr<std::unique_ptr<cuda::Kernel>> kernel = cuda::CreateKernel(spec, context);
    if (!kernel.ok()) return kernel.status();
    return std::make_unique<GpuKernel>(spec, *std::move(kernel));
  }
  bool MayAlias(std::string_view name, std::size_t output, std::size_t input) const override {
    return cuda::MayAlias(name, output, input);
  }
  AttentionArithmetic attention() const override {
    return use_libraries_ && choice_ != "own" ? AttentionArithmetic::kFused : AttentionArithmetic::kAsWritten;
  }

 private:
  bool use_libraries_;
  std::size_t workspace_cap_;
  std::string choice_;
};

}  // namespace

const absl::Status& GpuStatus() { return TheGpu().status; }

const KernelDevice& GpuKernels(bool use_libraries) {
  static const auto* const own = new GpuKernelDevice(false);
  static const auto* const libraries = new GpuKernelDevice(true);
  return use_libraries ? *libraries : *own;
}

std::unique_ptr<KernelDevice> GpuKernelsWithin(std::size_t workspace_cap) {
  return std::make_unique<GpuKernelDevice>(true, workspace_cap);
}

absl::StatusOr<std::vector<std::string>> GpuCandidates(const KernelSpec& spec) {
  return cuda::CandidateChoices(spec, TheGpu().context);
}

std::unique_ptr<KernelDevice> GpuKernelsChosen(std::string choice) {
  return std::make_unique<GpuKernelDevice>(true, cuda::KernelContext().workspace_cap, std::move(choice));
}

}  // namespace mpc::test
