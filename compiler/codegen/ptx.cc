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

static ExpectedMachine createGpuMachine(const CodeTarget &target) {
  static std::once_flag initialised;
  std::call_once(initialised, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  // Strict: `mul.rn` and `add.rn`, which neither LLVM nor ptxas makes one instruction of. Division and square root are
  // the correctly rounded ones and subnormal numbers are kept unless a function's attributes say otherwise.
  ExpectedMachine machine = createStrictMachine(target);
  if (machine && (!*machine || !(*machine)->getMCSubtargetInfo()->isCPUStringValid(target.cpu)))
    return llvm::createStringError("LLVM makes no PTX for '" + target.cpu + "'");
  return machine;
}

// ptxas optimises what it gets once more; this is what it does not: equal loads and index arithmetic over basic blocks.
static llvm::FunctionPassManager gpuPasses() {
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::EarlyCSEPass(/*useMemorySSA=*/true));
  passes.addPass(llvm::InstCombinePass());
  addInvariantMotion(passes);
  passes.addPass(llvm::EarlyCSEPass(/*useMemorySSA=*/true));
  passes.addPass(llvm::SimplifyCFGPass());
  return passes;
}

llvm::SmallVector<std::string> externNames(llvm::StringRef ptx) {
  llvm::SmallVector<std::string> names;
  for (size_t at = ptx.find(".extern"); at != llvm::StringRef::npos; at = ptx.find(".extern", at + 1)) {
    // .extern .func (.param .b32 func_retval0) name ( parameters );  .extern .global .align 4 .b32 name[];
    llvm::StringRef declaration = ptx.substr(at).take_until([](char c) { return c == ';'; });
    // The launch provides it.
    if (declaration.starts_with(".extern .shared"))
      continue;
    llvm::StringRef rest = declaration;
    if (size_t function = rest.find(".func"); function != llvm::StringRef::npos) {
      rest = rest.substr(function + 5).ltrim();
      if (rest.starts_with("("))
        rest = rest.split(')').second;
      rest = rest.take_until([](char c) { return c == '('; });
    } else {
      rest = rest.take_until([](char c) { return c == '['; });
    }
    llvm::SmallVector<llvm::StringRef> words;
    llvm::SplitString(rest, words);
    names.push_back(words.empty() ? declaration.str() : words.back().str());
  }
  return names;
}

llvm::Expected<std::string> toPtx(llvm::Module &module, const CodeTarget &target, AssemblyTimes &times) {
  llvm::Expected<llvm::SmallString<0>> ptx =
      writeCode(module, createGpuMachine(target), gpuPasses(), llvm::CodeGenFileType::AssemblyFile,
                "LLVM writes no PTX for '" + target.cpu + "'", times);
  if (!ptx)
    return ptx.takeError();
  if (llvm::SmallVector<std::string> names = externNames(*ptx); !names.empty())
    return llvm::createStringError("the PTX of " + module.getName() + " needs " + llvm::join(names, ", ") +
                                   ", which nothing provides on a GPU");
  return std::string(*ptx);
}

} // namespace mpc::codegen
