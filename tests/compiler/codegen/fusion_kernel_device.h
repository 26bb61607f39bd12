// Generated code as the kernels of a device: each operation as a region of its own.
#pragma once

#include <utility>

#include "tests/compiler/codegen/fusion_form.h"
#include "tests/kernels/kernel_device.h"

namespace mpc::test {

/// Takes operations that may be in a region, as operations and in their shapes.
class FusionKernelDevice : public KernelDevice {
 public:
  explicit FusionKernelDevice(FusionForm form) : form_(std::move(form)) {}
  absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelSpec& spec) const override;
  /// Whether Create would make a kernel.
  static bool IsFusible(const KernelSpec& spec);
  /// Answers for no shapes: false.
  bool MayAlias(std::string_view name, std::size_t output, std::size_t input) const override { return false; }

 private:
  FusionForm form_;
};

}  // namespace mpc::test
