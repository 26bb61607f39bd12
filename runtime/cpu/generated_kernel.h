// Kernels that a Program carries as host code: instructions called "generated.<name>".
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cpu/kernel.h"
#include "runtime/code_loader.h"
#include "runtime/program.h"

namespace mpc::runtime {

/// The code blobs of one Program, loaded.
class HostCode {
 public:
  /// Errors: those of LoadCode; a blob that lists a function but does not have it; two functions of one name.
  static absl::StatusOr<HostCode> Load(const Program& program);

  /// The kernel of `instruction`. Its stages run one after the other. A stage is a function `void f(void* const*
  /// operands, void* workspace, std::int64_t block)` that is called once for each block. Several threads call it where
  /// the attribute "work" says that this is worth it. Operands are the inputs, then the outputs. Errors
  /// (INVALID_ARGUMENT): those of StagesOf; no blob has a stage's function.
  absl::StatusOr<std::unique_ptr<cpu::Kernel>> CreateKernel(const Instruction& instruction) const;

 private:
  std::vector<std::unique_ptr<LoadedCode>> blobs_;
  std::map<std::string, void*> functions_;
};

}  // namespace mpc::runtime
