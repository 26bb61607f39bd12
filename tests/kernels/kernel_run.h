// Runs a CPU kernel on the values of an operation case, with guarded buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cpu/kernel.h"
#include "kernels/reference/reference.h"
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

cpu::KernelSpec SpecOf(const op_cases::OpCase& op_case, DType dtype);

/// The bits of the results (empty where unused). Errors: those of CreateKernel; INTERNAL if a guard was overwritten.
absl::StatusOr<std::vector<std::vector<std::uint8_t>>> RunKernel(const op_cases::OpCase& op_case, DType dtype,
                                                                 const std::vector<reference::Tensor>& inputs,
                                                                 const RunOptions& options = {});

}  // namespace mpc::test
