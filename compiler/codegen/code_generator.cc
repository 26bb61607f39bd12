#include "compiler/codegen/code_generator.h"

#include "compiler/codegen/code_cache.h"
#include "compiler/codegen/jit_loader.h"
#include "compiler/codegen/ptx.h"
#include "compiler/codegen/region_key.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/step_signature.h"
#include "runtime/stopwatch.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Path.h"

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>

using namespace mlir;

namespace mpc::codegen {

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

/// The regions with one key, which share one code.
struct CodeGenerator::Region {
  explicit Region(llvm::StringRef Key) : Key(Key) {}

  std::string Key;
  std::unique_ptr<llvm::LLVMContext> Context;
  std::unique_ptr<llvm::Module> Emitted; ///< null before, and once it is assembled
  CompiledRegion Compiled;               ///< without bytes before
  bool IsPlanned = false;
  bool IsComplete = false;
  bool FromCache = false;
  std::string Where;   ///< it was traced, for messages
  std::string Problem; ///< the problem that generating it met; empty for none
  std::string CacheTrouble;
  unsigned Instructions = 0; ///< LLVM instructions that were emitted
  double EmitSeconds = 0;
  AssemblyTimes Times;

  /// Functions are called `<name>_<stage>`.
  std::string name() const { return "r" + Key; }
  void emit(FusionOp Fusion, const CodeTarget &Target);
  void assemble(const CodeTarget &Target, const CodeCache &Cache);
};

/// Operations of one function that one code serves.
struct CodeGenerator::Group {
  Region *Code;
  SmallVector<FusionOp> Calls;
};

namespace {

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

static llvm::Expected<std::vector<std::uint8_t>> toMachineCode(llvm::Module &Module, const CodeTarget &Target,
                                                               AssemblyTimes &Times) {
  if (Target.backend != Backend::Nvptx)
    return toObject(Module, Target, Times);
  llvm::Expected<std::string> Ptx = toPtx(Module, Target, Times);
  if (!Ptx)
    return Ptx.takeError();
  return std::vector<std::uint8_t>(Ptx->begin(), Ptx->end());
}

/// Where the region was traced, for messages: "mpc.fusion in lenet5/conv1".
static std::string describe(FusionOp Fusion) {
  for (Operation &Op : Fusion.getBody().front())
    if (ScopeAttr Scope = scopeOf(&Op))
      return "mpc.fusion in " + Scope.getPath().str();
  return "mpc.fusion";
}

void CodeGenerator::Region::emit(FusionOp Fusion, const CodeTarget &Target) {
  runtime::Stopwatch Emitting;
  IsPlanned = true;
  Where = describe(Fusion);
  Context = std::make_unique<llvm::LLVMContext>();
  Emitted = std::make_unique<llvm::Module>(name(), *Context);
  llvm::Expected<RegionCode> Code = emitRegion(Fusion, name(), Target, *Emitted);
  Instructions = Emitted->getInstructionCount();
  EmitSeconds = Emitting.seconds();
  if (Code)
    Compiled.code = *std::move(Code);
  else
    Problem = Where + ": " + llvm::toString(Code.takeError());
}

void CodeGenerator::Region::assemble(const CodeTarget &Target, const CodeCache &Cache) {
  llvm::Expected<std::vector<std::uint8_t>> Bytes = toMachineCode(*Emitted, Target, Times);
  IsComplete = true;
  Emitted.reset();
  Context.reset();
  if (!Bytes) {
    Problem = Where + ": " + llvm::toString(Bytes.takeError());
    return;
  }
  Compiled.bytes = *std::move(Bytes);
  CacheTrouble = Cache.store(Key, Compiled);
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

CodeGenerator::CodeGenerator(CodeTarget Target, CodeOptions Options)
    : Target(std::move(Target)), Options(std::move(Options)) {
  registerObjectLoader();
}

CodeGenerator::~CodeGenerator() = default;

std::vector<CodeGenerator::Group> CodeGenerator::groupRegions(func::FuncOp Function) {
  std::vector<Group> Groups;
  llvm::DenseMap<Region *, size_t> Positions;
  auto Add = [&](FusionOp Fusion) {
    std::string Key = regionKey(Fusion, Target);
    std::unique_ptr<Region> &Code = Known[Key];
    if (!Code)
      Code = std::make_unique<Region>(Key);
    auto [Position, New] = Positions.try_emplace(Code.get(), Groups.size());
    if (New)
      Groups.push_back({Code.get(), {}});
    Groups[Position->second].Calls.push_back(Fusion);
  };
  for (func::FuncOp Each : withCalled(Function))
    Each.walk(Add);
  return Groups;
}

llvm::Expected<std::vector<CodeGenerator::Group>> CodeGenerator::obtain(func::FuncOp Function, bool WithCode) {
  std::vector<Group> Groups = groupRegions(Function);
  if (Groups.empty())
    return Groups;
  std::vector<Group *> Missing;
  for (Group &Each : Groups)
    if (!Each.Code->IsPlanned || (WithCode && !Each.Code->IsComplete))
      Missing.push_back(&Each);
  size_t Threads = Options.threads != 0 ? Options.threads : std::max(1u, std::thread::hardware_concurrency());
  Threads = std::min(Threads, Missing.size());
  CodeCache Cache(Options.cache_dir);
  {
    SharedContext Shared(Groups.front().Calls.front()->getContext(), Threads > 1);
    forEach(Missing.size(), Threads, [&](size_t I) {
      Region &Code = *Missing[I]->Code;
      if (!Code.IsPlanned) {
        if (std::optional<CompiledRegion> Found = Cache.find(Code.Key)) {
          Code.Compiled = *std::move(Found);
          Code.IsPlanned = Code.IsComplete = Code.FromCache = true;
          return;
        }
        Code.emit(Missing[I]->Calls.front(), Target);
      }
      if (WithCode && Code.Problem.empty())
        Code.assemble(Target, Cache);
    });
  }
  for (const Group &Each : Groups)
    if (!Each.Code->Problem.empty())
      return llvm::createStringError(Each.Code->Problem);
  return Groups;
}

GeneratedCode CodeGenerator::callsOf(const std::vector<Group> &Groups) const {
  GeneratedCode Result;
  if (Target.backend == Backend::Host && !Groups.empty())
    Result.required_cpu_features = requiredCpuFeatures(Target);
  for (const Group &Each : Groups) {
    const RegionCode &Code = Each.Code->Compiled.code;
    for (FusionOp Fusion : Each.Calls)
      Result.calls[Fusion] = {"generated." + Each.Code->name(), Code.stages, Code.workspace_bytes};
    Result.statistics.regions += Each.Calls.size();
    ++Result.statistics.distinct;
    Result.statistics.instructions += Each.Code->Instructions;
  }
  return Result;
}

llvm::Expected<GeneratedCode> CodeGenerator::plan(func::FuncOp Function) {
  llvm::Expected<std::vector<Group>> Groups = obtain(Function, /*WithCode=*/false);
  if (!Groups)
    return Groups.takeError();
  return callsOf(*Groups);
}

llvm::Expected<GeneratedCode> CodeGenerator::generate(func::FuncOp Function) {
  llvm::Expected<std::vector<Group>> Groups = obtain(Function, /*WithCode=*/true);
  if (!Groups)
    return Groups.takeError();
  GeneratedCode Result = callsOf(*Groups);
  for (const Group &Each : *Groups) {
    const Region &Code = *Each.Code;
    if (!Code.CacheTrouble.empty() && isFirstTrouble(Options.cache_dir))
      Result.remarks.push_back("generated code is not kept for the next run: " + Code.CacheTrouble +
                               " (MPC_CACHE_DIR names another folder, \"off\" none)");
    runtime::CodeBlob &Blob = Result.blobs.emplace_back();
    Blob.name = Code.name();
    Blob.format = Target.backend == Backend::Nvptx ? "ptx" : "object";
    Blob.bytes = Code.Compiled.bytes;
    for (const Stage &Part : Code.Compiled.code.stages)
      Blob.kernels.push_back(Part.function);
    CodeStatistics &Statistics = Result.statistics;
    Statistics.from_cache += Code.FromCache;
    Statistics.emit_seconds += Code.EmitSeconds;
    Statistics.optimise_seconds += Code.Times.optimise;
    Statistics.assemble_seconds += Code.Times.assemble;
  }
  return Result;
}

unsigned CodeGenerator::numAssembled() const {
  return llvm::count_if(Known, [](const auto &Entry) { return Entry.second->IsComplete && !Entry.second->FromCache; });
}

llvm::Expected<GeneratedCode> generateCode(func::FuncOp Function, const CodeTarget &Target,
                                           const CodeOptions &Options) {
  return CodeGenerator(Target, Options).generate(Function);
}

} // namespace mpc::codegen
