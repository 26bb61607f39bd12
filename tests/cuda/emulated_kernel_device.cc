#include "tests/cuda/emulated_kernel_device.h"

#include <memory>
#include <utility>

#include "tests/cuda_emulation/emulator.h"

namespace mpc::test {
namespace {

class EmulatedKernel : public KernelDevice::Kernel {
 public:
  explicit EmulatedKernel(std::unique_ptr<cuda::Kernel> kernel) : kernel_(std::move(kernel)) {}
  std::size_t workspace_bytes() const override { return kernel_->workspace_bytes(); }
  absl::Status Run(const void* const* inputs, void* const* outputs, void* workspace) override {
    emulation::Queue queue;
    return kernel_->Enqueue({inputs, outputs, workspace}, queue);
  }

 private:
  std::unique_ptr<cuda::Kernel> kernel_;
};

class EmulatedKernelDevice : public KernelDevice {
 public:
  explicit EmulatedKernelDevice(cuda::KernelContext context) : context_(std::move(context)) {}
  absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelSpec& spec) const override {
    absl::StatusOr<std::unique_ptr<cuda::Kernel>> kernel = cuda::CreateKernel(spec, context_);
    if (!kernel.ok()) return kernel.status();
    return std::make_unique<EmulatedKernel>(*std::move(kernel));
  }
  absl::StatusOr<std::unique_ptr<Kernel>> CreateGroup(absl::Span<const KernelSpec> specs) const override {
    absl::StatusOr<std::unique_ptr<cuda::Kernel>> kernel = cuda::CreateGroupKernel(specs, context_);
    if (!kernel.ok()) return kernel.status();
    return std::make_unique<EmulatedKernel>(*std::move(kernel));
  }
  bool MayAlias(std::string_view name, std::size_t output, std::size_t input) const override {
    return cuda::MayAlias(name, output, input);
  }

 private:
  cuda::KernelContext context_;
};

}  // namespace

const KernelDevice& EmulatedKernels() {
  static const auto* const device = new EmulatedKernelDevice(EmulatedContext());
  return *device;
}

std::unique_ptr<KernelDevice> EmulatedKernelsIn(const cuda::KernelContext& context) {
  return std::make_unique<EmulatedKernelDevice>(context);
}

cuda::KernelContext EmulatedContext() {
  cuda::KernelContext context;
  context.use_libraries = false;
  return context;
}

}  // namespace mpc::test
