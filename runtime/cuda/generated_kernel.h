// Kernels that a Program carries as machine code: instructions called "generated.<name>".
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/kernel.h"
#include "runtime/cuda/cuda_api.h"
#include "runtime/cuda/handles.h"
#include "runtime/program.h"

namespace mpc::runtime {

/// The code blobs of one Program, loaded.
class GeneratedCode {
 public:
  /// Errors: INVALID_ARGUMENT for a format other than "cubin" and "ptx"; CudaApi's error for code that it cannot load,
  /// with the blob's name.
  static absl::StatusOr<GeneratedCode> Load(CudaApi& api, const Program& program);

  /// The kernel of `instruction`, with one launch for each stage. The parameters of a launch are the addresses of the
  /// inputs, then of the used outputs, then of the workspace if there is one. Errors (INVALID_ARGUMENT): those of
  /// StagesOf; no blob has a stage's function.
  absl::StatusOr<std::unique_ptr<cuda::Kernel>> CreateKernel(const Instruction& instruction) const;

 private:
  std::vector<OwnedCode> libraries_;
  std::map<std::string, cuda::KernelFunction, std::less<>> kernels_;
};

}  // namespace mpc::runtime
