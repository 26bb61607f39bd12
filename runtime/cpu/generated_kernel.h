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
  /// Errors: those of LoadCode; a function that a blob lists and does not have; two functions of one name.
  static absl::StatusOr<HostCode> Load(const Program& program);

  /// The kernel of `instruction`. Each of its stages is a function `void f(void* const* operands, void* workspace,
  /// std::int64_t block)` that is called once a block, by several threads where the attribute "work" says that it is
  /// worth it; stages follow each other. Operands are the inputs, then the outputs. Errors (INVALID_ARGUMENT): those of
  /// StagesOf; no blob has a stage's function.
  absl::StatusOr<std::unique_ptr<cpu::Kernel>> CreateKernel(const Instruction& instruction) const;

 private:
  std::vector<std::unique_ptr<LoadedCode>> blobs_;
  std::map<std::string, void*> functions_;
};

}  // namespace mpc::runtime
