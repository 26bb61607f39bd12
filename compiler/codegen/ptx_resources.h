// The resources that kernels in PTX take of a GPU, as the assembler reports them. No GPU is needed.
#pragma once

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>

namespace mpc::codegen {

/// The resources of one kernel in machine code.
struct KernelResources {
  std::int64_t registers = 0;    ///< a thread
  std::int64_t stack_bytes = 0;  ///< a thread: spilled registers and arrays that are indexed at run time
  std::int64_t spill_bytes = 0;  ///< a thread: stored and loaded again, each counted
  std::int64_t shared_bytes = 0; ///< a block, static
};

/// The path of ptxas: MPC_PTXAS where it is set, else the one of the PATH, of CUDA_PATH or of /usr/local/cuda. Errors:
/// there is none; where it was looked for.
llvm::Expected<std::string> findPtxas();

/// Assembles \p ptx for \p architecture ("sm_90") with \p ptxas and returns what `ptxas -v` says of each kernel.
/// Errors: what ptxas says; a temporary file that cannot be written.
llvm::Expected<llvm::StringMap<KernelResources>> assembledResources(llvm::StringRef ptx, llvm::StringRef architecture,
                                                                    llvm::StringRef ptxas);

/// Parses the log that `ptxas -v` wrote. The result is keyed by kernel.
llvm::StringMap<KernelResources> parsePtxasLog(llvm::StringRef log);

/// The number of instructions of each kernel in \p ptx. Instructions of a loop count once.
llvm::StringMap<std::int64_t> instructionCounts(llvm::StringRef ptx);

} // namespace mpc::codegen
