#include "compiler/codegen/object_code.h"

#include "compiler/codegen/gpu_builtins.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

#include <mutex>

namespace mpc::codegen {

static constexpr llvm::StringRef memoryFunctions[] = {"memcpy", "memset"};
static constexpr llvm::StringRef emulationFunctions[] = {
    "memcpy", "memset", gpu_builtins::thread, gpu_builtins::barrier, gpu_builtins::shuffleXor, gpu_builtins::shared};

llvm::ArrayRef<llvm::StringRef> providedSymbols(Backend target) {
  return target == Backend::Emulated ? llvm::ArrayRef<llvm::StringRef>(emulationFunctions)
                                     : llvm::ArrayRef<llvm::StringRef>(memoryFunctions);
}

static ExpectedMachine createHostMachine(const CodeTarget &target) {
  static std::once_flag initialised;
  std::call_once(initialised, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  ExpectedMachine machine = createStrictMachine(target, llvm::Reloc::PIC_, llvm::CodeModel::Small);
  if (machine && !*machine)
    return llvm::createStringError("LLVM makes no code for '" + target.triple + "'");
  return machine;
}

// Emitted code consists of vector loops already. It computes each value once a position and keeps variables in
// registers. The passes share values between positions of one row, move invariant code out of loops, and remove
// branches that are known.
static llvm::FunctionPassManager hostPasses() {
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::EarlyCSEPass(/*useMemorySSA=*/true));
  addInvariantMotion(passes);
  passes.addPass(llvm::SimplifyCFGPass());
  return passes;
}

static llvm::Error checkUndefinedSymbols(llvm::StringRef object, Backend target) {
  llvm::Expected<std::unique_ptr<llvm::object::ObjectFile>> file =
      llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(object, "generated code"));
  if (!file)
    return file.takeError();
  llvm::SmallVector<std::string> missing;
  for (const llvm::object::SymbolRef &symbol : (*file)->symbols()) {
    llvm::Expected<std::uint32_t> flags = symbol.getFlags();
    if (!flags)
      return flags.takeError();
    llvm::Expected<llvm::StringRef> name = symbol.getName();
    if (!name)
      return name.takeError();
    bool undefined = (*flags & llvm::object::SymbolRef::SF_Undefined) && !name->empty();
    if (undefined && !llvm::is_contained(providedSymbols(target), *name))
      missing.push_back(name->str());
  }
  if (missing.empty())
    return llvm::Error::success();
  return llvm::createStringError("generated code calls " + llvm::join(missing, ", ") +
                                 ", which the runtime does not provide; it provides " +
                                 llvm::join(providedSymbols(target), ", "));
}

llvm::Expected<std::vector<std::uint8_t>> toObject(llvm::Module &module, const CodeTarget &target,
                                                   AssemblyTimes &times) {
  for (llvm::Function &function : module)
    if (!function.isDeclaration())
      function.addFnAttr("prefer-vector-width", std::to_string(target.vector_bits));
  llvm::Expected<llvm::SmallString<0>> object =
      writeCode(module, createHostMachine(target), hostPasses(), llvm::CodeGenFileType::ObjectFile,
                "LLVM writes no object for '" + target.triple + "'", times);
  if (!object)
    return object.takeError();
  if (llvm::Error failure = checkUndefinedSymbols(*object, target.backend))
    return failure;
  return std::vector<std::uint8_t>(object->begin(), object->end());
}

} // namespace mpc::codegen
