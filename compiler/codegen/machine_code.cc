#include "compiler/codegen/machine_code.h"

#include "runtime/stopwatch.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"

namespace mpc::codegen {

ExpectedMachine createStrictMachine(const CodeTarget &Target, std::optional<llvm::Reloc::Model> Relocation,
                                    std::optional<llvm::CodeModel::Model> Model) {
  llvm::Triple Triple(Target.triple);
  std::string Message;
  const llvm::Target *Found = llvm::TargetRegistry::lookupTarget(Triple, Message);
  if (!Found)
    return llvm::createStringError(Message);
  llvm::TargetOptions Options;
  Options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(Found->createTargetMachine(
      Triple, Target.cpu, Target.features, Options, Relocation, Model, llvm::CodeGenOptLevel::Default));
}

void addInvariantMotion(llvm::FunctionPassManager &Passes) {
  Passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), /*UseMemorySSA=*/true));
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

llvm::Expected<llvm::SmallString<0>> writeCode(llvm::Module &Module, ExpectedMachine Machine,
                                               llvm::FunctionPassManager Passes, llvm::CodeGenFileType Type,
                                               const std::string &Unwritten, AssemblyTimes &Times) {
  if (!Machine)
    return Machine.takeError();
  Module.setTargetTriple((*Machine)->getTargetTriple());
  Module.setDataLayout((*Machine)->createDataLayout());
  std::string Message;
  llvm::raw_string_ostream Out(Message);
  if (llvm::verifyModule(Module, &Out))
    return llvm::createStringError("the emitted module is malformed: " + Message);

  runtime::Stopwatch Optimising;
  optimise(Module, **Machine, Passes);
  Times.optimise += Optimising.seconds();
  runtime::Stopwatch Assembling;
  llvm::SmallString<0> Code;
  llvm::raw_svector_ostream Stream(Code);
  llvm::legacy::PassManager Writer;
  if ((*Machine)->addPassesToEmitFile(Writer, Stream, nullptr, Type))
    return llvm::createStringError(Unwritten);
  Writer.run(Module);
  Times.assemble += Assembling.seconds();
  return Code;
}

} // namespace mpc::codegen
