// The CPU kernels: created once for fixed shapes, types and attributes, then run on raw pointers in every step.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/kernel_spec.h"

namespace mpc::cpu {

/// Row-major storage, 64-byte aligned. State-update kernels may be given an output equal to the matching input.
struct KernelOperands {
  const void* const* inputs;
  void* const* outputs;
  void* workspace;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Scratch memory that `Run` needs; part of the planned peak.
  virtual std::size_t workspace_bytes() const { return 0; }
  /// Allocates nothing, creates nothing, fails never.
  virtual void Run(const KernelOperands& operands) = 0;
};

/// Creates the kernel of `spec`. Errors: UNIMPLEMENTED for an operation or type without a CPU kernel, naming both;
/// INTERNAL where a oneDNN primitive would fall back to its reference loop.
absl::StatusOr<std::unique_ptr<Kernel>> CreateKernel(const KernelSpec& spec);

/// Every mnemonic that has a CPU kernel, sorted.
std::vector<std::string_view> KernelNames();

/// True if output `output` of kernel `name` may share storage with input `input` (element-wise kernels that read each
/// element before they write it, and state updates).
bool MayAlias(std::string_view name, std::size_t output, std::size_t input);

/// Threads of the parallel regions. Equal counts give equal bits. Default: the processor's cores (OMP_NUM_THREADS).
void SetNumThreads(int threads);
int NumThreads();

}  // namespace mpc::cpu
