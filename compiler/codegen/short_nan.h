// Finds out which NaN a value in generated code can be.
#pragma once

#include "llvm/IR/Value.h"

namespace mpc::codegen {

/// Whether rounding \p v to bf16 needs no care for NaN. The payload of any NaN that it may be must lie in the upper 16
/// bits. Then adding to the lower bits leaves it a NaN. This holds for bf16 values that were widened, and for what
/// arithmetic makes of them. A processor's NaN are those of its operands, or have one bit of payload.
bool hasShortNan(llvm::Value *v);

/// Returns \p v with LLVM's quiet NaN in place of every NaN. That NaN is short: its payload has only upper bits.
llvm::Value *withShortNan(llvm::Value *v);

} // namespace mpc::codegen
