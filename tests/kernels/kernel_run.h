// Runs a kernel of any device on the values of an operation case, with guarded buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/reference/reference.h"
#include "tests/kernels/kernel_device.h"
#include "tests/op_cases/op_case.h"

namespace mpc::test {

/// 64-byte aligned storage followed by guard bytes that nothing may write.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(std::size_t bytes);
  void* data() { return storage_.get(); }
  const void* data() const { return storage_.get(); }
  std::size_t bytes() const { return bytes_; }
  bool GuardIntact() const;
  std::vector<std::uint8_t> Bits() const;

 private:
  struct Free {
    void operator()(std::uint8_t* data) const { ::operator delete[](data, std::align_val_t{64}); }
  };
  std::size_t bytes_;
  std::unique_ptr<std::uint8_t[], Free> storage_;
};

/// What to vary about a run.
struct RunOptions {
  /// For each result the operand whose buffer it is given, or nothing.
  std::vector<std::optional<std::size_t>> aliases;
  std::vector<bool> output_used;  ///< as in KernelSpec
};

KernelSpec SpecOf(const op_cases::OpCase& op_case, DType dtype);

/// The bits of one run's results, empty where unused.
using ResultBits = std::vector<std::vector<std::uint8_t>>;

/// Errors: those of creating and running the kernel; INTERNAL if a guard was overwritten, or an operand that no
/// result shares.
absl::StatusOr<ResultBits> RunKernel(const KernelDevice& device, const op_cases::OpCase& op_case, DType dtype,
                                     const std::vector<reference::Tensor>& inputs, const RunOptions& options = {});

}  // namespace mpc::test
