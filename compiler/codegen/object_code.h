// Compiles an LLVM module to relocatable code for the host.
#pragma once

#include "compiler/codegen/fusion_emitter.h"
#include "compiler/codegen/machine_code.h"

#include <cstdint>
#include <vector>

namespace mpc::codegen {

/// Functions that code may call: memcpy and memset, which every process has; in an emulation those of gpu_builtins.h
/// too.
llvm::ArrayRef<llvm::StringRef> providedSymbols(Backend target);

/// Optimises \p module, which it changes, and makes an ELF object of it: position-independent, small code model,
/// vectors as wide as \p target says. No two operations are contracted and nothing is reordered that floating-point
/// arithmetic distinguishes. Errors: a malformed module; calls of functions that are not provided, by name.
llvm::Expected<std::vector<std::uint8_t>> toObject(llvm::Module &module, const CodeTarget &target,
                                                   AssemblyTimes &times);

} // namespace mpc::codegen
