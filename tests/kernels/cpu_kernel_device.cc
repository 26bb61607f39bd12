#include "tests/kernels/cpu_kernel_device.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/kernel.h"

namespace mpc::test {
namespace {

class CpuKernel : public KernelDevice::Kernel {
 public:
  explicit CpuKernel(std::unique_ptr<cpu::Kernel> kernel) : kernel_(std::move(kernel)) {}
  std::size_t workspace_bytes() const override { return kernel_->workspace_bytes(); }
  absl::Status Run(const void* const* inputs, void* const* outputs, void* workspace) override {
    kernel_->Run({inputs, outputs, workspace});
    return absl::OkStatus();
  }

 private:
  std::unique_ptr<cpu::Kernel> kernel_;
};

class CpuKernelDevice : public KernelDevice {
 public:
  explicit CpuKernelDevice(MakeCpuKernel make) : make_(std::move(make)) {}

  absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelSpec& spec) const override {
    absl::StatusOr<std::unique_ptr<cpu::Kernel>> kernel = make_(spec);
    if (!kernel.ok()) return kernel.status();
    return std::make_unique<CpuKernel>(*std::move(kernel));
  }
  absl::StatusOr<std::unique_ptr<Kernel>> CreateGroup(absl::Span<const KernelSpec> specs) const override {
    absl::StatusOr<std::unique_ptr<cpu::Kernel>> kernel = cpu::CreateGroupKernel(specs);
    if (!kernel.ok()) return kernel.status();
    return std::make_unique<CpuKernel>(*std::move(kernel));
  }
  bool MayAlias(std::string_view name, std::size_t output, std::size_t input) const override {
    return cpu::MayAlias(name, output, input);
  }

 private:
  MakeCpuKernel make_;
};

}  // namespace

const KernelDevice& CpuKernels() {
  static const auto* const device = new CpuKernelDevice([](const KernelSpec& spec) { return cpu::CreateKernel(spec); });
  return *device;
}

std::unique_ptr<KernelDevice> CpuKernelsChosen(std::string choice) {
  return CpuKernelsMadeBy(
      [choice = std::move(choice)](const KernelSpec& spec) -> absl::StatusOr<std::unique_ptr<cpu::Kernel>> {
        absl::StatusOr<std::unique_ptr<cpu::Kernel>> kernel = cpu::CreateKernel(spec, {.choice = choice});
        if (kernel.ok() && !choice.empty() && (*kernel)->choice() != choice) {
          return absl::InternalError(absl::StrCat("asked for \"", choice, "\", got \"", (*kernel)->choice(), "\""));
        }
        return kernel;
      });
}

std::unique_ptr<KernelDevice> CpuKernelsMadeBy(MakeCpuKernel make) {
  return std::make_unique<CpuKernelDevice>(std::move(make));
}

}  // namespace mpc::test
