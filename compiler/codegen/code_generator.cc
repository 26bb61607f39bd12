#include "compiler/codegen/code_generator.h"

#include "compiler/codegen/code_cache.h"
#include "compiler/codegen/fusion_key.h"
#include "compiler/codegen/jit_loader.h"
#include "compiler/codegen/ptx.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/step_signature.h"
#include "runtime/cache_folder.h"
#include "runtime/stopwatch.h"
#include "llvm/ADT/StringSet.h"

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>

using namespace mlir;

namespace mpc::codegen {

std::string defaultCacheDir() {
  const char *chosen = std::getenv("MPC_CACHE_DIR");
  if (!chosen || !*chosen)
    return runtime::UserCacheFolder();
  return llvm::StringRef(chosen) == "off" ? "" : chosen;
}

/// The regions with one key, which share one code.
struct CodeGenerator::GeneratedFusion {
  explicit GeneratedFusion(llvm::StringRef key) : key(key) {}

  std::string key;
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> emitted; ///< null before, and once it is assembled
  CompiledFusion compiled;               ///< without bytes before
  bool isPlanned = false;
  bool isComplete = false;
  bool fromCache = false;
  std::string where;   ///< it was traced, for messages
  std::string problem; ///< the problem that generating it met; empty for none
  std::string cacheTrouble;
  unsigned instructions = 0; ///< LLVM instructions that were emitted
  double emitSeconds = 0;
  AssemblyTimes times;

  /// Functions are called `<name>_<stage>`.
  std::string name() const { return "r" + key; }
  void emit(FusionOp fusion, const CodeTarget &target);
  void assemble(const CodeTarget &target, const CodeCache &cache);
};

/// Operations of one function that one code serves.
struct CodeGenerator::Group {
  GeneratedFusion *code;
  SmallVector<FusionOp> calls;
};

namespace {

/// While it lives, several threads may make types and attributes in a context that is otherwise for one.
class SharedContext {
public:
  SharedContext(MLIRContext *context, bool shared)
      : context(context), changed(shared && !context->isMultithreadingEnabled()) {
    if (changed)
      context->enableMultithreading();
  }
  ~SharedContext() {
    if (changed)
      context->disableMultithreading();
  }
  SharedContext(const SharedContext &) = delete;
  SharedContext &operator=(const SharedContext &) = delete;

private:
  MLIRContext *context;
  bool changed;
};

} // namespace

static llvm::Expected<std::vector<std::uint8_t>> toMachineCode(llvm::Module &module, const CodeTarget &target,
                                                               AssemblyTimes &times) {
  if (target.backend != Backend::Nvptx)
    return toObject(module, target, times);
  llvm::Expected<std::string> ptx = toPtx(module, target, times);
  if (!ptx)
    return ptx.takeError();
  return std::vector<std::uint8_t>(ptx->begin(), ptx->end());
}

/// Where the region was traced, for messages: "mpc.fusion in lenet5/conv1".
static std::string describe(FusionOp fusion) {
  for (Operation &op : fusion.getBody().front())
    if (ScopeAttr scope = scopeOf(&op))
      return "mpc.fusion in " + scope.getPath().str();
  return "mpc.fusion";
}

void CodeGenerator::GeneratedFusion::emit(FusionOp fusion, const CodeTarget &target) {
  runtime::Stopwatch emitting;
  isPlanned = true;
  where = describe(fusion);
  context = std::make_unique<llvm::LLVMContext>();
  emitted = std::make_unique<llvm::Module>(name(), *context);
  llvm::Expected<FusionCode> code = emitFusion(fusion, name(), target, *emitted);
  instructions = emitted->getInstructionCount();
  emitSeconds = emitting.seconds();
  if (code)
    compiled.code = *std::move(code);
  else
    problem = where + ": " + llvm::toString(code.takeError());
}

void CodeGenerator::GeneratedFusion::assemble(const CodeTarget &target, const CodeCache &cache) {
  llvm::Expected<std::vector<std::uint8_t>> bytes = toMachineCode(*emitted, target, times);
  isComplete = true;
  emitted.reset();
  context.reset();
  if (!bytes) {
    problem = where + ": " + llvm::toString(bytes.takeError());
    return;
  }
  compiled.bytes = *std::move(bytes);
  cacheTrouble = cache.store(key, compiled);
}

/// Calls Body(0) .. Body(Count - 1), each once, on \p threads threads.
static void forEach(size_t count, size_t threads, llvm::function_ref<void(size_t)> body) {
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i = next++; i < count; i = next++)
      body(i);
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < threads; ++i)
    others.emplace_back(work);
  work();
  for (std::thread &other : others)
    other.join();
}

/// True the first time that it is asked for \p folder.
static bool isFirstTrouble(llvm::StringRef folder) {
  static std::mutex mutex;
  static llvm::StringSet<> known;
  std::lock_guard<std::mutex> lock(mutex);
  return known.insert(folder).second;
}

CodeGenerator::CodeGenerator(CodeTarget target, CodeOptions options)
    : target(std::move(target)), options(std::move(options)) {
  registerObjectLoader();
}

CodeGenerator::~CodeGenerator() = default;

std::vector<CodeGenerator::Group> CodeGenerator::groupRegions(func::FuncOp function) {
  std::vector<Group> groups;
  llvm::DenseMap<GeneratedFusion *, size_t> positions;
  auto add = [&](FusionOp fusion) {
    std::string key = fusionKey(fusion, target);
    std::unique_ptr<GeneratedFusion> &code = known[key];
    if (!code)
      code = std::make_unique<GeneratedFusion>(key);
    auto [position, isNew] = positions.try_emplace(code.get(), groups.size());
    if (isNew)
      groups.push_back({code.get(), {}});
    groups[position->second].calls.push_back(fusion);
  };
  for (func::FuncOp each : withCalled(function))
    each.walk(add);
  return groups;
}

llvm::Expected<std::vector<CodeGenerator::Group>> CodeGenerator::obtain(func::FuncOp function, bool withCode) {
  std::vector<Group> groups = groupRegions(function);
  if (groups.empty())
    return groups;
  std::vector<Group *> missing;
  for (Group &each : groups)
    if (!each.code->isPlanned || (withCode && !each.code->isComplete))
      missing.push_back(&each);
  size_t threads = options.threads != 0 ? options.threads : std::max(1u, std::thread::hardware_concurrency());
  threads = std::min(threads, missing.size());
  CodeCache cache(options.cache_dir);
  {
    SharedContext shared(groups.front().calls.front()->getContext(), threads > 1);
    forEach(missing.size(), threads, [&](size_t i) {
      GeneratedFusion &code = *missing[i]->code;
      if (!code.isPlanned) {
        if (std::optional<CompiledFusion> found = cache.find(code.key)) {
          code.compiled = *std::move(found);
          code.isPlanned = code.isComplete = code.fromCache = true;
          return;
        }
        code.emit(missing[i]->calls.front(), target);
      }
      if (withCode && code.problem.empty())
        code.assemble(target, cache);
    });
  }
  for (const Group &each : groups)
    if (!each.code->problem.empty())
      return llvm::createStringError(each.code->problem);
  return groups;
}

GeneratedCode CodeGenerator::callsOf(const std::vector<Group> &groups) const {
  GeneratedCode result;
  if (target.backend == Backend::Host && !groups.empty())
    result.required_cpu_features = requiredCpuFeatures(target);
  for (const Group &each : groups) {
    const FusionCode &code = each.code->compiled.code;
    for (FusionOp fusion : each.calls)
      result.calls[fusion] = {"generated." + each.code->name(), code.stages, code.workspace_bytes};
    result.statistics.regions += each.calls.size();
    ++result.statistics.distinct;
    result.statistics.instructions += each.code->instructions;
  }
  return result;
}

llvm::Expected<GeneratedCode> CodeGenerator::plan(func::FuncOp function) {
  llvm::Expected<std::vector<Group>> groups = obtain(function, /*withCode=*/false);
  if (!groups)
    return groups.takeError();
  return callsOf(*groups);
}

llvm::Expected<GeneratedCode> CodeGenerator::generate(func::FuncOp function) {
  llvm::Expected<std::vector<Group>> groups = obtain(function, /*withCode=*/true);
  if (!groups)
    return groups.takeError();
  GeneratedCode result = callsOf(*groups);
  for (const Group &each : *groups) {
    const GeneratedFusion &code = *each.code;
    if (!code.cacheTrouble.empty() && isFirstTrouble(options.cache_dir))
      result.remarks.push_back("generated code is not kept for the next run: " + code.cacheTrouble +
                               " (MPC_CACHE_DIR names another folder, \"off\" none)");
    runtime::CodeBlob &blob = result.blobs.emplace_back();
    blob.name = code.name();
    blob.format = target.backend == Backend::Nvptx ? "ptx" : "object";
    blob.bytes = code.compiled.bytes;
    for (const Stage &part : code.compiled.code.stages)
      blob.kernels.push_back(part.function);
    CodeStatistics &statistics = result.statistics;
    statistics.from_cache += code.fromCache;
    statistics.emit_seconds += code.emitSeconds;
    statistics.optimise_seconds += code.times.optimise;
    statistics.assemble_seconds += code.times.assemble;
  }
  return result;
}

unsigned CodeGenerator::numAssembled() const {
  return llvm::count_if(known, [](const auto &entry) { return entry.second->isComplete && !entry.second->fromCache; });
}

llvm::Expected<GeneratedCode> generateCode(func::FuncOp function, const CodeTarget &target,
                                           const CodeOptions &options) {
  return CodeGenerator(target, options).generate(function);
}

} // namespace mpc::codegen
