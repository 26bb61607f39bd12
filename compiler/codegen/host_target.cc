// The targets of generated code.
#include "compiler/codegen/code_generator.h"
#include "runtime/cpu/cpu_features.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/TargetParser/Host.h"

namespace mpc::codegen {

// The features of each level that change what is emitted. Every processor that exists has the rest of the level with
// them.
static constexpr llvm::StringLiteral Level3[] = {"avx2", "fma", "f16c"};
static constexpr llvm::StringLiteral Level4[] = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"};

// A larger cache is shared with other processes.
static constexpr int64_t MostCacheBytes = 64 * 1024 * 1024;

llvm::Expected<CodeTarget> hostTarget() {
  llvm::StringMap<bool> Features = llvm::sys::getHostCPUFeatures();
  auto HasAll = [&](llvm::ArrayRef<llvm::StringLiteral> Names) {
    return llvm::all_of(Names, [&](llvm::StringRef Name) { return Features.lookup(Name); });
  };
  if (!HasAll(Level3))
    return llvm::createStringError("code is generated for x86-64 processors with " +
                                   llvm::join(llvm::ArrayRef(Level3), ", ") + " (x86-64-v3); this one is '" +
                                   llvm::sys::getHostCPUName() + "'");
  CodeTarget Target;
  Target.backend = Backend::Host;
  Target.triple = llvm::sys::getProcessTriple();
  // A level, not the very processor: what is generated here runs, with the same bits, on every machine of the level.
  bool Wide = HasAll(Level4);
  Target.cpu = Wide ? "x86-64-v4" : "x86-64-v3";
  Target.vector_bits = Wide ? 512 : 256;
  Target.cache_bytes = std::min<int64_t>(static_cast<int64_t>(runtime::LastLevelCacheBytes()), MostCacheBytes);
  return Target;
}

std::vector<std::string> requiredCpuFeatures(const CodeTarget &Target) {
  std::vector<std::string> Names;
  for (llvm::StringRef Name : Level3)
    Names.push_back(Name.str());
  if (Target.cpu == "x86-64-v4")
    for (llvm::StringRef Name : Level4)
      Names.push_back(Name.str());
  return Names;
}

llvm::Expected<CodeTarget> gpuTarget(llvm::StringRef Arch) {
  if (Arch != "sm_80" && Arch != "sm_90")
    return llvm::createStringError("'" + Arch + "' is no architecture that code is generated for; known: sm_80, sm_90");
  CodeTarget Target;
  Target.backend = Backend::Nvptx;
  Target.triple = "nvptx64-nvidia-cuda";
  Target.cpu = Arch.str();
  Target.features = "+ptx80";
  return Target;
}

} // namespace mpc::codegen
