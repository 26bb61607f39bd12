// Links objects to one shared object, for a Program that is saved.
#pragma once

#include "runtime/program.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

namespace mpc::codegen {

/// Links blobs of format "object" with the system's linker to one of format "elf" called \p name. It needs no library
/// and has all their functions. Equal objects give equal bytes. Errors: no linker, with the names that were looked for;
/// what the linker says; a temporary file that cannot be written.
llvm::Expected<runtime::CodeBlob> linkSharedObject(llvm::ArrayRef<runtime::CodeBlob> objects, llvm::StringRef name);

} // namespace mpc::codegen
