// The resources that the generated kernels of a step take of a GPU: registers, spills, shared memory.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/module/graph_builder.h"

namespace mpc::compiler {

/// One region for one architecture. Its kernels run one after the other.
struct FusionResources {
  std::size_t region = 0;   ///< its number, from 1 in program order
  std::string architecture; ///< "sm_90"
  std::int64_t kernels = 0;
  std::int64_t instructions = 0; ///< static, in the PTX of all of them
  /// What ptxas reported, where it was found.
  struct Assembled {
    std::int64_t registers = 0;    ///< a thread, of the kernel that takes most
    std::int64_t spill_bytes = 0;  ///< a thread, stored and loaded, of all kernels
    std::int64_t stack_bytes = 0;  ///< a thread, of the kernel that takes most
    std::int64_t shared_bytes = 0; ///< a block, of the kernel that takes most
  };
  std::optional<Assembled> assembled;
};

struct GpuResources {
  std::vector<FusionResources> rows; ///< by region
  std::string no_ptxas;              ///< why nothing is assembled; empty where it is
  /// The message of ptxas on the first region that it could not assemble, by architecture.
  std::map<std::string, std::string> not_assembled;
};

/// Generates the regions of function `function` for `architecture`, such as "sm_90", and
/// assembles them with ptxas where it is installed. Needs no GPU. Errors: NOT_FOUND where the module has no such
/// function with a body; INTERNAL for a region that cannot be generated, and for an unknown architecture. A region that
/// ptxas refuses, for example because it is too old for the architecture, has a row all the same.
absl::StatusOr<GpuResources> TabulateGpuResources(const Module &module, const std::string &function,
                                                  const std::string &architecture);

} // namespace mpc::compiler
