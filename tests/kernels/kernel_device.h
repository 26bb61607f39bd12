// The kernels of one device as tests run them, on buffers in host memory.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/kernel_spec.h"
#include "tests/kernels/attention_error_bounds.h"

namespace mpc::test {

class KernelDevice {
 public:
  /// A kernel of one spec.
  class Kernel {
   public:
    virtual ~Kernel() = default;
    virtual std::size_t workspace_bytes() const = 0;
    /// Operands as every device's kernels take them: null for an unused output; an output may be an input's storage.
    virtual absl::Status Run(const void* const* inputs, void* const* outputs, void* workspace) = 0;
  };

  virtual ~KernelDevice() = default;
  /// Errors: those of the device's CreateKernel.
  virtual absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelSpec& spec) const = 0;
  /// One kernel for several specs, its operands theirs one after another. Errors: those of the device's
  /// CreateGroupKernel; UNIMPLEMENTED where tests have none.
  virtual absl::StatusOr<std::unique_ptr<Kernel>> CreateGroup(absl::Span<const KernelSpec> specs) const {
    return absl::UnimplementedError("tests run no groups on this device");
  }
  virtual bool MayAlias(std::string_view name, std::size_t output, std::size_t input) const = 0;
  virtual AttentionArithmetic attention() const { return AttentionArithmetic::kAsWritten; }
};

}  // namespace mpc::test
