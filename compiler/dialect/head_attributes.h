// Discardable attributes of a language model's head that is computed in chunks of rows.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace mpc {

/// On a function: how many chunks its heads are computed in (mpc-chunk-head), and the bytes of their logits as a whole.
inline constexpr llvm::StringLiteral HeadChunksAttrName = "mpc.head_chunks";

/// On an addition to what earlier chunks have left: a region of its own, if any. One that several chunks join through
/// it would need all of their logits at once.
inline constexpr llvm::StringLiteral ChainAttrName = "mpc.chain";

} // namespace mpc
