// Compiles an LLVM module of the GPU form to PTX.
#pragma once

#include "compiler/codegen/object_code.h"

#include <string>

namespace mpc::codegen {

/// Optimises \p module, which it changes, and writes it as PTX for \p target, an architecture such as "sm_90". Nothing
/// is contracted, subnormal numbers stay, divisions and square roots are correctly rounded: element by element the bits
/// are the host's. Errors: an architecture that LLVM does not know; a malformed module; `.extern` names.
llvm::Expected<std::string> toPtx(llvm::Module &module, const CodeTarget &target, AssemblyTimes &times);

/// The names that \p ptx leaves to others: a driver that loads it would fail, or find some function of that name.
llvm::SmallVector<std::string> externNames(llvm::StringRef ptx);

} // namespace mpc::codegen
