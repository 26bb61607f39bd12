// Generates the code of all regions of functions in parallel. Equal regions are generated once, and code is kept on
// disk.
#pragma once

#include "compiler/codegen/fusion_emitter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/program.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace mpc::codegen {

/// How one region is called: what lowering writes into its instruction.
struct GeneratedCall {
  std::string kernel; ///< "generated.<name>", the name a hash of the region and the target
  llvm::SmallVector<Stage, 3> stages;
  size_t workspace_bytes = 0;
};

/// How long code generation took and how much came from the cache: for `--timing` and the report.
struct CodeStatistics {
  unsigned regions = 0;
  unsigned distinct = 0;
  unsigned from_cache = 0;
  unsigned instructions = 0; ///< LLVM instructions as they were emitted; code from the cache counts none
  double emit_seconds = 0, optimise_seconds = 0, assemble_seconds = 0; ///< summed over threads
};

struct GeneratedCode {
  llvm::DenseMap<mlir::Operation *, GeneratedCall> calls; ///< one for every FusionOp
  std::vector<runtime::CodeBlob> blobs;                   ///< "object" on the host, "ptx" for a GPU
  CodeStatistics statistics;
  std::vector<std::string> required_cpu_features; ///< the CPU features that host code uses
  std::vector<std::string> remarks; ///< what the user should know: a cache that cannot be written, once a process
};

struct CodeOptions {
  /// Folder of the cache; empty: none. The key of an entry is made of the region, the target and the versions of mpc
  /// and LLVM. An entry is written to another file and renamed, so that processes may share the folder. An entry whose
  /// checksum is wrong is made again.
  std::string cache_dir;
  unsigned threads = 0; ///< threads that generate code; 0: one for each of the processor's cores
};

/// MPC_CACHE_DIR where it is set ("off": none), else mpc's folder in the user's cache folder.
std::string defaultCacheDir();

/// The target of code for this processor: level x86-64-v4 where it has that, else x86-64-v3. Errors: a lower level.
llvm::Expected<CodeTarget> hostTarget();
/// The Nvptx target for "sm_80", "sm_90" or a later architecture, which takes PTX for sm_90. Errors: another one.
llvm::Expected<CodeTarget> gpuTarget(llvm::StringRef arch);
/// The processor features that host code for \p target takes, by the names of runtime/cpu/cpu_features.h.
std::vector<std::string> requiredCpuFeatures(const CodeTarget &target);

/// Makes the code of functions for one target. What has been made for one function serves the next ones: a region is
/// emitted once and assembled at most once. The functions share an MLIR context, which nobody else uses meanwhile.
class CodeGenerator {
public:
  CodeGenerator(CodeTarget target, CodeOptions options);
  ~CodeGenerator();

  /// Returns how the regions of \p function, and of what it calls, are called, and the processor features that their
  /// code takes. New regions are emitted, which gives their workspaces; nothing is assembled. Errors: a region that
  /// cannot be emitted.
  llvm::Expected<GeneratedCode> plan(mlir::func::FuncOp function);
  /// The same with the code of every region and its statistics. Errors: as plan; unresolved symbols.
  llvm::Expected<GeneratedCode> generate(mlir::func::FuncOp function);

  /// How many regions were assembled so far.
  unsigned numAssembled() const;

private:
  struct GeneratedFusion;
  struct Group;

  std::vector<Group> groupRegions(mlir::func::FuncOp function);
  /// The groups of \p function with all that they need, with or without machine code. Errors: those of the first region
  /// that has one.
  llvm::Expected<std::vector<Group>> obtain(mlir::func::FuncOp function, bool withCode);
  GeneratedCode callsOf(const std::vector<Group> &groups) const;

  CodeTarget target;
  CodeOptions options;
  llvm::StringMap<std::unique_ptr<GeneratedFusion>> known; ///< the regions generated so far, by key
};

/// Generates the code of every region of \p function. Errors: a region that cannot be emitted, unresolved symbols.
llvm::Expected<GeneratedCode> generateCode(mlir::func::FuncOp function, const CodeTarget &target,
                                           const CodeOptions &options);

} // namespace mpc::codegen
