// The CPU kernels: created once for fixed shapes, types and attributes, then run on raw pointers in every step.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/attributes.h"
#include "kernels/tensor_spec.h"

namespace mpc::cpu {

/// What an instruction computes. Mnemonic, operands and attributes are those of the IR operation; a result that nothing
/// uses has no storage (`output_used` is false): its spec is empty and its pointer null.
struct KernelSpec {
  std::string name;
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  std::vector<bool> output_used;  ///< empty means all are used
  Attributes attributes;
  bool uses(std::size_t output) const { return output_used.empty() || output_used[output]; }
};

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
