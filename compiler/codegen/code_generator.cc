#include "compiler/codegen/code_generator.h"

#include "compiler/codegen/code_cache.h"
#include "compiler/codegen/jit_loader.h"
#include "compiler/codegen/ptx.h"
#include "compiler/codegen/region_key.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Path.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>

using namespace mlir;

namespace mpc::codegen {

using Clock = std::chrono::steady_clock;

static double secondsSince(Clock::time_point Start) {
  return std::chrono::duration<double>(Clock::now() - Start).count();
}

std::string defaultCacheDir() {
  auto Get = [](const char *Name) {
    const char *Value = std::getenv(Name);
    return llvm::StringRef(Value ? Value : "");
  };
  if (llvm::StringRef Chosen = Get("MPC_CACHE_DIR"); !Chosen.empty())
    return Chosen == "off" ? "" : Chosen.str();
  llvm::SmallString<128> Folder = Get("XDG_CACHE_HOME");
  if (Folder.empty() && !Get("HOME").empty())
    llvm::sys::path::append(Folder, Get("HOME"), ".cache");
  if (Folder.empty())
    return "";
  llvm::sys::path::append(Folder, "mpc");
  return std::string(Folder);
}

namespace {

/// Regions that one code serves.
struct Distinct {
  std::string Key;
  SmallVector<FusionOp> Regions;
  CompiledRegion Compiled;
  bool FromCache = false;
  std::string Problem; ///< that generating met
  std::string CacheTrouble;
  double EmitSeconds = 0;
  AssemblyTimes Times;

  /// Functions are called `<name>_<stage>`.
  std::string name() const { return "r" + Key; }
};

/// While it lives, several threads may make types and attributes in a context that is otherwise for one.
class SharedContext {
public:
  SharedContext(MLIRContext *Context, bool Shared)
      : Context(Context), Changed(Shared && !Context->isMultithreadingEnabled()) {
    if (Changed)
      Context->enableMultithreading();
  }
  ~SharedContext() {
    if (Changed)
      Context->disableMultithreading();
  }
  SharedContext(const SharedContext &) = delete;
  SharedContext &operator=(const SharedContext &) = delete;

private:
  MLIRContext *Context;
  bool Changed;
};

} // namespace

static llvm::Expected<std::vector<std::uint8_t>> assemble(llvm::Module &Module, const CodeTarget &Target,
                                                          AssemblyTimes &Times) {
  if (Target.backend != Backend::Nvptx)
    return toObject(Module, Target, Times);
  llvm::Expected<std::string> Ptx = toPtx(Module, Target, Times);
  if (!Ptx)
    return Ptx.takeError();
  return std::vector<std::uint8_t>(Ptx->begin(), Ptx->end());
}

static llvm::Error generate(Distinct &Region, const CodeTarget &Target) {
  Clock::time_point Start = Clock::now();
  llvm::LLVMContext Context;
  llvm::Module Module(Region.name(), Context);
  llvm::Expected<RegionCode> Code = emitRegion(Region.Regions.front(), Region.name(), Target, Module);
  Region.EmitSeconds = secondsSince(Start);
  if (!Code)
    return Code.takeError();
  llvm::Expected<std::vector<std::uint8_t>> Bytes = assemble(Module, Target, Region.Times);
  if (!Bytes)
    return Bytes.takeError();
  Region.Compiled = {*std::move(Code), *std::move(Bytes)};
  return llvm::Error::success();
}

/// Where the region was traced, for messages: "mpc.fusion in lenet5/conv1".
static std::string describe(FusionOp Fusion) {
  for (Operation &Op : Fusion.getBody().front())
    if (auto Where = Op.getAttrOfType<ScopeAttr>(ScopeAttrName))
      return "mpc.fusion in " + Where.getPath().str();
  return "mpc.fusion";
}

static void obtain(Distinct &Region, const CodeTarget &Target, const CodeCache &Cache) {
  if (std::optional<CompiledRegion> Found = Cache.find(Region.Key)) {
    Region.Compiled = *std::move(Found);
    Region.FromCache = true;
    return;
  }
  if (llvm::Error Failure = generate(Region, Target))
    Region.Problem = describe(Region.Regions.front()) + ": " + llvm::toString(std::move(Failure));
  else
    Region.CacheTrouble = Cache.store(Region.Key, Region.Compiled);
}

/// Calls Body(0) .. Body(Count - 1), each once, on \p Threads threads.
static void forEach(size_t Count, size_t Threads, llvm::function_ref<void(size_t)> Body) {
  std::atomic<size_t> Next{0};
  auto Work = [&] {
    for (size_t I = Next++; I < Count; I = Next++)
      Body(I);
  };
  std::vector<std::thread> Others;
  for (size_t I = 1; I < Threads; ++I)
    Others.emplace_back(Work);
  Work();
  for (std::thread &Other : Others)
    Other.join();
}

/// True the first time that it is asked for \p Folder.
static bool isFirstTrouble(llvm::StringRef Folder) {
  static std::mutex Mutex;
  static llvm::StringSet<> Known;
  std::lock_guard<std::mutex> Lock(Mutex);
  return Known.insert(Folder).second;
}

static std::vector<Distinct> groupRegions(func::FuncOp Function, const CodeTarget &Target) {
  std::vector<Distinct> Groups;
  llvm::StringMap<size_t> ByKey;
  Function.walk([&](FusionOp Fusion) {
    std::string Key = regionKey(Fusion, Target);
    auto [Position, New] = ByKey.try_emplace(Key, Groups.size());
    if (New)
      Groups.emplace_back().Key = std::move(Key);
    Groups[Position->second].Regions.push_back(Fusion);
  });
  return Groups;
}

llvm::Expected<GeneratedCode> generateCode(func::FuncOp Function, const CodeTarget &Target,
                                           const CodeOptions &Options) {
  registerObjectLoader();
  std::vector<Distinct> Groups = groupRegions(Function, Target);
  size_t Threads = Options.threads != 0 ? Options.threads : std::max(1u, std::thread::hardware_concurrency());
  Threads = std::min(Threads, Groups.size());
  CodeCache Cache(Options.cache_dir);
  {
    SharedContext Shared(Function.getContext(), Threads > 1);
    forEach(Groups.size(), Threads, [&](size_t I) { obtain(Groups[I], Target, Cache); });
  }

  GeneratedCode Result;
  if (Target.backend == Backend::Host && !Groups.empty())
    Result.required_cpu_features = requiredCpuFeatures(Target);
  for (Distinct &Group : Groups) {
    if (!Group.Problem.empty())
      return llvm::createStringError(Group.Problem);
    if (!Group.CacheTrouble.empty() && isFirstTrouble(Options.cache_dir))
      Result.remarks.push_back("generated code is not kept for the next run: " + Group.CacheTrouble +
                               " (MPC_CACHE_DIR names another folder, \"off\" none)");
    runtime::CodeBlob &Blob = Result.blobs.emplace_back();
    Blob.name = Group.name();
    Blob.format = Target.backend == Backend::Nvptx ? "ptx" : "object";
    Blob.bytes = std::move(Group.Compiled.bytes);
    for (const Stage &Each : Group.Compiled.code.stages)
      Blob.kernels.push_back(Each.function);
    for (FusionOp Fusion : Group.Regions)
      Result.calls[Fusion] = {"generated." + Group.name(), Group.Compiled.code.stages,
                              Group.Compiled.code.workspace_bytes};
    CodeStatistics &Statistics = Result.statistics;
    Statistics.regions += Group.Regions.size();
    ++Statistics.distinct;
    Statistics.from_cache += Group.FromCache;
    Statistics.emit_seconds += Group.EmitSeconds;
    Statistics.optimise_seconds += Group.Times.optimise;
    Statistics.assemble_seconds += Group.Times.assemble;
  }
  return Result;
}

} // namespace mpc::codegen
