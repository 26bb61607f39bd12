#include "compiler/codegen/machine_code.h"

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"

#include <chrono>

namespace mpc::codegen {

using Clock = std::chrono::steady_clock;

static double secondsSince(Clock::time_point Start) {
  return std::chrono::duration<double>(Clock::now() - Start).count();
}

llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createStrictMachine(llvm::StringRef Name, llvm::StringRef Processor, llvm::StringRef Features,
                    std::optional<llvm::Reloc::Model> Relocation, std::optional<llvm::CodeModel::Model> Model) {
  llvm::Triple Triple(Name);
  std::string Message;
  const llvm::Target *Found = llvm::TargetRegistry::lookupTarget(Triple, Message);
  if (!Found)
    return llvm::createStringError(Message);
  llvm::TargetOptions Options;
  Options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(Found->createTargetMachine(
      Triple, Processor, Features, Options, Relocation, Model, llvm::CodeGenOptLevel::Default));
}

static void optimise(llvm::Module &Module, llvm::TargetMachine &Machine, llvm::FunctionPassManager &Passes) {
  llvm::PassBuilder Builder(&Machine);
  llvm::TargetLibraryInfoImpl Library(Machine.getTargetTriple());
  Library.disableAllFunctions();
  llvm::LoopAnalysisManager Loops;
  llvm::FunctionAnalysisManager Functions;
  llvm::CGSCCAnalysisManager Components;
  llvm::ModuleAnalysisManager Modules;
  Functions.registerPass([&] { return llvm::TargetLibraryAnalysis(Library); });
  Builder.registerModuleAnalyses(Modules);
  Builder.registerCGSCCAnalyses(Components);
  Builder.registerFunctionAnalyses(Functions);
  Builder.registerLoopAnalyses(Loops);
  Builder.crossRegisterProxies(Loops, Functions, Components, Modules);
  for (llvm::Function &Function : Module)
    if (!Function.isDeclaration())
      Passes.run(Function, Functions);
}

llvm::Expected<llvm::SmallString<0>> writeCode(llvm::Module &Module, llvm::TargetMachine &Machine,
                                               llvm::FunctionPassManager Passes, llvm::CodeGenFileType Type,
                                               const std::string &Unwritten, AssemblyTimes &Times) {
  Module.setTargetTriple(Machine.getTargetTriple());
  Module.setDataLayout(Machine.createDataLayout());
  std::string Message;
  llvm::raw_string_ostream Out(Message);
  if (llvm::verifyModule(Module, &Out))
    return llvm::createStringError("the emitted module is malformed: " + Message);

  Clock::time_point Start = Clock::now();
  optimise(Module, Machine, Passes);
  Times.optimise += secondsSince(Start);
  Start = Clock::now();
  llvm::SmallString<0> Code;
  llvm::raw_svector_ostream Stream(Code);
  llvm::legacy::PassManager Writer;
  if (Machine.addPassesToEmitFile(Writer, Stream, nullptr, Type))
    return llvm::createStringError(Unwritten);
  Writer.run(Module);
  Times.assemble += secondsSince(Start);
  return Code;
}

} // namespace mpc::codegen
