// The targets of generated code.
#include "compiler/codegen/code_generator.h"
#include "runtime/cpu/cpu_features.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/TargetParser/Host.h"

namespace mpc::codegen {

// The features of each level that change what is emitted. Every processor that exists has the rest of the level with
// them.
static constexpr llvm::StringLiteral level3[] = {"avx2", "fma", "f16c"};
static constexpr llvm::StringLiteral level4[] = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"};

// A larger cache is shared with other processes.
static constexpr int64_t mostCacheBytes = 64 * 1024 * 1024;

llvm::Expected<CodeTarget> hostTarget() {
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  auto hasAll = [&](llvm::ArrayRef<llvm::StringLiteral> names) {
    return llvm::all_of(names, [&](llvm::StringRef name) { return features.lookup(name); });
  };
  if (!hasAll(level3))
    return llvm::createStringError("code is generated for x86-64 processors with " +
                                   llvm::join(llvm::ArrayRef(level3), ", ") + " (x86-64-v3); this one is '" +
                                   llvm::sys::getHostCPUName() + "'");
  CodeTarget target;
  target.backend = Backend::Host;
  target.triple = llvm::sys::getProcessTriple();
  // A level, not the very processor: what is generated here runs, with the same bits, on every machine of the level.
  bool wide = hasAll(level4);
  target.cpu = wide ? "x86-64-v4" : "x86-64-v3";
  target.vector_bits = wide ? 512 : 256;
  target.cache_bytes = std::min<int64_t>(static_cast<int64_t>(runtime::LastLevelCacheBytes()), mostCacheBytes);
  return target;
}

std::vector<std::string> requiredCpuFeatures(const CodeTarget &target) {
  std::vector<std::string> names;
  for (llvm::StringRef name : level3)
    names.push_back(name.str());
  if (target.cpu == "x86-64-v4")
    for (llvm::StringRef name : level4)
      names.push_back(name.str());
  return names;
}

// Shared memory of a multiprocessor of compute capability 12.0, which is the least of the GPUs behind 9.0. That of 10.0
// is as large as a Hopper's.
static constexpr unsigned leastSharedBytes = 100 << 10;

llvm::Expected<CodeTarget> gpuTarget(llvm::StringRef arch) {
  unsigned number = 0;
  llvm::StringRef digits = arch;
  bool isNumber = digits.consume_front("sm_") && !digits.getAsInteger(10, number);
  bool isLater = isNumber && number > 90;
  if (arch != "sm_80" && arch != "sm_90" && !isLater)
    return llvm::createStringError("'" + arch +
                                   "' is no architecture that code is generated for; known: sm_80, sm_90 and later");
  CodeTarget target;
  target.backend = Backend::Nvptx;
  target.triple = "nvptx64-nvidia-cuda";
  // The driver of a later GPU compiles PTX of sm_90 for it.
  target.cpu = isLater ? "sm_90" : arch.str();
  if (isLater && arch != "sm_100")
    target.shared_bytes = leastSharedBytes;
  target.features = "+ptx80";
  return target;
}

} // namespace mpc::codegen
