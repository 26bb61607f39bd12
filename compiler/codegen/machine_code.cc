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

ExpectedMachine createStrictMachine(const CodeTarget &target, std::optional<llvm::Reloc::Model> relocation,
                                    std::optional<llvm::CodeModel::Model> model) {
  llvm::Triple triple(target.triple);
  std::string message;
  const llvm::Target *found = llvm::TargetRegistry::lookupTarget(triple, message);
  if (!found)
    return llvm::createStringError(message);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(found->createTargetMachine(
      triple, target.cpu, target.features, options, relocation, model, llvm::CodeGenOptLevel::Default));
}

void addInvariantMotion(llvm::FunctionPassManager &passes) {
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), /*useMemorySSA=*/true));
}

static void optimise(llvm::Module &module, llvm::TargetMachine &machine, llvm::FunctionPassManager &passes) {
  llvm::PassBuilder builder(&machine);
  llvm::TargetLibraryInfoImpl library(machine.getTargetTriple());
  library.disableAllFunctions();
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  for (llvm::Function &function : module)
    if (!function.isDeclaration())
      passes.run(function, functions);
}

llvm::Expected<llvm::SmallString<0>> writeCode(llvm::Module &module, ExpectedMachine machine,
                                               llvm::FunctionPassManager passes, llvm::CodeGenFileType type,
                                               const std::string &unwritten, AssemblyTimes &times) {
  if (!machine)
    return machine.takeError();
  module.setTargetTriple((*machine)->getTargetTriple());
  module.setDataLayout((*machine)->createDataLayout());
  std::string message;
  llvm::raw_string_ostream out(message);
  if (llvm::verifyModule(module, &out))
    return llvm::createStringError("the emitted module is malformed: " + message);

  runtime::Stopwatch optimising;
  optimise(module, **machine, passes);
  times.optimise += optimising.seconds();
  runtime::Stopwatch assembling;
  llvm::SmallString<0> code;
  llvm::raw_svector_ostream stream(code);
  llvm::legacy::PassManager writer;
  if ((*machine)->addPassesToEmitFile(writer, stream, nullptr, type))
    return llvm::createStringError(unwritten);
  writer.run(module);
  times.assemble += assembling.seconds();
  return code;
}

} // namespace mpc::codegen
