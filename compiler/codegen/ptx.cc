#include "compiler/codegen/ptx.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

#include <mutex>

namespace mpc::codegen {

static ExpectedMachine createGpuMachine(const CodeTarget &Target) {
  static std::once_flag Initialised;
  std::call_once(Initialised, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  // Strict: `mul.rn` and `add.rn`, which neither LLVM nor ptxas makes one instruction of. Division and square root are
  // the correctly rounded ones and subnormal numbers are kept unless a function's attributes say otherwise.
  ExpectedMachine Machine = createStrictMachine(Target);
  if (Machine && (!*Machine || !(*Machine)->getMCSubtargetInfo()->isCPUStringValid(Target.cpu)))
    return llvm::createStringError("LLVM makes no PTX for '" + Target.cpu + "'");
  return Machine;
}

// ptxas optimises what it gets once more; this is what it does not: equal loads and index arithmetic over basic blocks.
static llvm::FunctionPassManager gpuPasses() {
  llvm::FunctionPassManager Passes;
  Passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  Passes.addPass(llvm::InstCombinePass());
  addInvariantMotion(Passes);
  Passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  Passes.addPass(llvm::SimplifyCFGPass());
  return Passes;
}

llvm::SmallVector<std::string> externNames(llvm::StringRef Ptx) {
  llvm::SmallVector<std::string> Names;
  for (size_t At = Ptx.find(".extern"); At != llvm::StringRef::npos; At = Ptx.find(".extern", At + 1)) {
    // .extern .func (.param .b32 func_retval0) name ( parameters );  .extern .global .align 4 .b32 name[];
    llvm::StringRef Declaration = Ptx.substr(At).take_until([](char C) { return C == ';'; });
    llvm::StringRef Rest = Declaration;
    if (size_t Function = Rest.find(".func"); Function != llvm::StringRef::npos) {
      Rest = Rest.substr(Function + 5).ltrim();
      if (Rest.starts_with("("))
        Rest = Rest.split(')').second;
      Rest = Rest.take_until([](char C) { return C == '('; });
    } else {
      Rest = Rest.take_until([](char C) { return C == '['; });
    }
    llvm::SmallVector<llvm::StringRef> Words;
    llvm::SplitString(Rest, Words);
    Names.push_back(Words.empty() ? Declaration.str() : Words.back().str());
  }
  return Names;
}

llvm::Expected<std::string> toPtx(llvm::Module &Module, const CodeTarget &Target, AssemblyTimes &Times) {
  llvm::Expected<llvm::SmallString<0>> Ptx =
      writeCode(Module, createGpuMachine(Target), gpuPasses(), llvm::CodeGenFileType::AssemblyFile,
                "LLVM writes no PTX for '" + Target.cpu + "'", Times);
  if (!Ptx)
    return Ptx.takeError();
  if (llvm::SmallVector<std::string> Names = externNames(*Ptx); !Names.empty())
    return llvm::createStringError("the PTX of " + Module.getName() + " needs " + llvm::join(Names, ", ") +
                                   ", which nothing provides on a GPU");
  return std::string(*Ptx);
}

} // namespace mpc::codegen
