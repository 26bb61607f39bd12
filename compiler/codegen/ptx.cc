#include "compiler/codegen/ptx.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

#include <chrono>
#include <mutex>

namespace mpc::codegen {

using Clock = std::chrono::steady_clock;

static double secondsSince(Clock::time_point Start) {
  return std::chrono::duration<double>(Clock::now() - Start).count();
}

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>> createTargetMachine(const CodeTarget &Target) {
  static std::once_flag Initialised;
  std::call_once(Initialised, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  llvm::Triple Triple(Target.triple);
  std::string Message;
  const llvm::Target *Found = llvm::TargetRegistry::lookupTarget(Triple, Message);
  if (!Found)
    return llvm::createStringError(Message);
  // Strict: `mul.rn` and `add.rn`, which neither LLVM nor ptxas makes one instruction of. Division and square root are
  // the correctly rounded ones and subnormal numbers are kept unless a function's attributes say otherwise.
  llvm::TargetOptions Options;
  Options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  std::unique_ptr<llvm::TargetMachine> Machine(Found->createTargetMachine(
      Triple, Target.cpu, Target.features, Options, std::nullopt, std::nullopt, llvm::CodeGenOptLevel::Default));
  if (!Machine || !Machine->getMCSubtargetInfo()->isCPUStringValid(Target.cpu))
    return llvm::createStringError("LLVM makes no PTX for '" + Target.cpu + "'");
  return Machine;
}

// ptxas optimises what it gets once more; this is what it does not: equal loads and index arithmetic over basic blocks.
static void optimise(llvm::Module &Module, llvm::TargetMachine &Machine) {
  llvm::PassBuilder Builder(&Machine);
  llvm::LoopAnalysisManager Loops;
  llvm::FunctionAnalysisManager Functions;
  llvm::CGSCCAnalysisManager Components;
  llvm::ModuleAnalysisManager Modules;
  Builder.registerModuleAnalyses(Modules);
  Builder.registerCGSCCAnalyses(Components);
  Builder.registerFunctionAnalyses(Functions);
  Builder.registerLoopAnalyses(Loops);
  Builder.crossRegisterProxies(Loops, Functions, Components, Modules);
  llvm::FunctionPassManager Passes;
  Passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  Passes.addPass(llvm::InstCombinePass());
  Passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), /*UseMemorySSA=*/true));
  Passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  Passes.addPass(llvm::SimplifyCFGPass());
  llvm::ModulePassManager All;
  All.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(Passes)));
  All.run(Module, Modules);
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
  llvm::Expected<std::unique_ptr<llvm::TargetMachine>> Machine = createTargetMachine(Target);
  if (!Machine)
    return Machine.takeError();
  Module.setTargetTriple((*Machine)->getTargetTriple());
  Module.setDataLayout((*Machine)->createDataLayout());
  std::string Message;
  llvm::raw_string_ostream Out(Message);
  if (llvm::verifyModule(Module, &Out))
    return llvm::createStringError("the emitted module is malformed: " + Message);

  Clock::time_point Start = Clock::now();
  optimise(Module, **Machine);
  Times.optimise += secondsSince(Start);
  Start = Clock::now();
  llvm::SmallString<0> Ptx;
  llvm::raw_svector_ostream Stream(Ptx);
  llvm::legacy::PassManager Passes;
  if ((*Machine)->addPassesToEmitFile(Passes, Stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return llvm::createStringError("LLVM writes no PTX for '" + Target.cpu + "'");
  Passes.run(Module);
  Times.assemble += secondsSince(Start);
  if (llvm::SmallVector<std::string> Names = externNames(Ptx); !Names.empty())
    return llvm::createStringError("the PTX of " + Module.getName() + " needs " + llvm::join(Names, ", ") +
                                   ", which nothing provides on a GPU");
  return std::string(Ptx);
}

} // namespace mpc::codegen
