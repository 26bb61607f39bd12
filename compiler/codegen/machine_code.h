// The steps from an LLVM module to code that all targets share: check, optimise, write.
#pragma once

#include "compiler/codegen/fusion_emitter.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Support/CodeGen.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"

namespace mpc::codegen {

/// Seconds that were spent.
struct AssemblyTimes {
  double optimise = 0;
  double assemble = 0;
};

/// A machine, or the reason why there is none.
using ExpectedMachine = llvm::Expected<std::unique_ptr<llvm::TargetMachine>>;

/// A machine that contracts no two operations. The triple of \p target has been initialised. Errors: LLVM
/// has no such target. Null: the target has no such processor.
ExpectedMachine createStrictMachine(const CodeTarget &target, std::optional<llvm::Reloc::Model> relocation = {},
                                    std::optional<llvm::CodeModel::Model> model = {});

/// Appends loop-invariant code motion.
void addInvariantMotion(llvm::FunctionPassManager &passes);

/// Gives \p module, which it changes, the target of \p machine, runs \p passes on every function with a body and writes
/// it. No pass may introduce a call of the C library, or know what one does. Errors: that of \p machine; a malformed
/// module; \p unwritten where the machine does not write \p type.
llvm::Expected<llvm::SmallString<0>> writeCode(llvm::Module &module, ExpectedMachine machine,
                                               llvm::FunctionPassManager passes, llvm::CodeGenFileType type,
                                               const std::string &unwritten, AssemblyTimes &times);

} // namespace mpc::codegen
