// Where the NaN of a value in generated code can come from.
#pragma once

#include "llvm/IR/Value.h"

namespace mpc::codegen {

/// Whether rounding \p V to bf16 needs no care for NaN: the payload of any that it may be lies in the upper 16 bits, so
/// that adding to the lower ones leaves it a NaN. So it is with bf16 values that were widened and with what arithmetic
/// makes of them, for a processor's NaN are those of its operands or have one bit of payload.
bool hasShortNan(llvm::Value *V);

/// \p V, with a short NaN in place of any.
llvm::Value *withShortNan(llvm::Value *V);

} // namespace mpc::codegen
