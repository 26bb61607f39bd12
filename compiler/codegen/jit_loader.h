// Loads relocatable code in the process that made it.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace mpc::codegen {

/// Lets runtime::LoadCode load blobs of format "object": sections are placed and relocated, nothing is compiled.
/// Further calls change nothing.
void registerObjectLoader();

/// Lets code that is loaded from now on call \p function by \p name: the functions of gpu_builtins.h, for an emulation.
void provideFunction(llvm::StringRef name, void *function);

} // namespace mpc::codegen
