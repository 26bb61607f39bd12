// Compiles an LLVM module of the GPU form to PTX.
#pragma once

#include "compiler/codegen/object_code.h"

#include <string>

namespace mpc::codegen {

/// Optimises \p Module, which it changes, and writes it as PTX for \p Target, an architecture such as "sm_90". Nothing
/// is contracted, subnormal numbers stay, divisions and square roots are correctly rounded: element by element the bits
/// are the host's. Errors: an architecture that LLVM does not know; a malformed module; `.extern` names.
llvm::Expected<std::string> toPtx(llvm::Module &Module, const CodeTarget &Target, AssemblyTimes &Times);

/// The names that \p Ptx leaves to others: a driver that loads it would fail, or find some function of that name.
llvm::SmallVector<std::string> externNames(llvm::StringRef Ptx);

} // namespace mpc::codegen
