// Kernels that a Program carries as machine code: instructions called "generated.<name>".
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/kernel.h"
#include "runtime/cuda/cuda_api.h"
#include "runtime/cuda/handles.h"
#include "runtime/program.h"

namespace mpc::runtime {

/// True for instructions whose kernel is in a code blob.
bool IsGenerated(std::string_view kernel);

/// The code blobs of one Program, loaded.
class GeneratedCode {
 public:
  /// Errors: INVALID_ARGUMENT for a format other than "cubin" and "ptx", or two kernels of one name; what CudaApi gives
  /// for code that it cannot load, with the blob's name.
  static absl::StatusOr<GeneratedCode> Load(CudaApi& api, const Program& program);

  /// The kernel of `instruction`: its parameters are the addresses of its inputs, of its used outputs and, where there
  /// is one, of its workspace; the grid comes from the attributes "blocks" and "threads", dynamic shared memory from
  /// "shared_bytes" (default 0). Errors (INVALID_ARGUMENT): no blob has the kernel, no positive grid.
  absl::StatusOr<std::unique_ptr<cuda::Kernel>> CreateKernel(const Instruction& instruction) const;

 private:
  std::vector<OwnedCode> libraries_;
  std::map<std::string, cuda::KernelFunction, std::less<>> kernels_;
};

}  // namespace mpc::runtime
