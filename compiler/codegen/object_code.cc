#include "compiler/codegen/object_code.h"

#include "compiler/codegen/gpu_builtins.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

#include <mutex>

namespace mpc::codegen {

static constexpr llvm::StringRef MemoryFunctions[] = {"memcpy", "memset"};
static constexpr llvm::StringRef EmulationFunctions[] = {
    "memcpy", "memset", gpu_builtins::Thread, gpu_builtins::Barrier, gpu_builtins::ShuffleXor, gpu_builtins::Shared};

llvm::ArrayRef<llvm::StringRef> providedSymbols(Backend Target) {
  return Target == Backend::Emulated ? llvm::ArrayRef<llvm::StringRef>(EmulationFunctions)
                                     : llvm::ArrayRef<llvm::StringRef>(MemoryFunctions);
}

static ExpectedMachine createHostMachine(const CodeTarget &Target) {
  static std::once_flag Initialised;
  std::call_once(Initialised, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  ExpectedMachine Machine = createStrictMachine(Target, llvm::Reloc::PIC_, llvm::CodeModel::Small);
  if (Machine && !*Machine)
    return llvm::createStringError("LLVM makes no code for '" + Target.triple + "'");
  return Machine;
}

// Emitted code consists of vector loops already. It computes each value once a position and keeps variables in
// registers. The passes share values between positions of one row, move invariant code out of loops, and remove
// branches that are known.
static llvm::FunctionPassManager hostPasses() {
  llvm::FunctionPassManager Passes;
  Passes.addPass(llvm::SimplifyCFGPass());
  Passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  addInvariantMotion(Passes);
  Passes.addPass(llvm::SimplifyCFGPass());
  return Passes;
}

static llvm::Error checkUndefinedSymbols(llvm::StringRef Object, Backend Target) {
  llvm::Expected<std::unique_ptr<llvm::object::ObjectFile>> File =
      llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(Object, "generated code"));
  if (!File)
    return File.takeError();
  llvm::SmallVector<std::string> Missing;
  for (const llvm::object::SymbolRef &Symbol : (*File)->symbols()) {
    llvm::Expected<std::uint32_t> Flags = Symbol.getFlags();
    if (!Flags)
      return Flags.takeError();
    llvm::Expected<llvm::StringRef> Name = Symbol.getName();
    if (!Name)
      return Name.takeError();
    bool Undefined = (*Flags & llvm::object::SymbolRef::SF_Undefined) && !Name->empty();
    if (Undefined && !llvm::is_contained(providedSymbols(Target), *Name))
      Missing.push_back(Name->str());
  }
  if (Missing.empty())
    return llvm::Error::success();
  return llvm::createStringError("generated code calls " + llvm::join(Missing, ", ") +
                                 ", which the runtime does not provide; it provides " +
                                 llvm::join(providedSymbols(Target), ", "));
}

llvm::Expected<std::vector<std::uint8_t>> toObject(llvm::Module &Module, const CodeTarget &Target,
                                                   AssemblyTimes &Times) {
  for (llvm::Function &Function : Module)
    if (!Function.isDeclaration())
      Function.addFnAttr("prefer-vector-width", std::to_string(Target.vector_bits));
  llvm::Expected<llvm::SmallString<0>> Object =
      writeCode(Module, createHostMachine(Target), hostPasses(), llvm::CodeGenFileType::ObjectFile,
                "LLVM writes no object for '" + Target.triple + "'", Times);
  if (!Object)
    return Object.takeError();
  if (llvm::Error Failure = checkUndefinedSymbols(*Object, Target.backend))
    return Failure;
  return std::vector<std::uint8_t>(Object->begin(), Object->end());
}

} // namespace mpc::codegen
