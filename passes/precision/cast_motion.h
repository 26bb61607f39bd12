// Casts that move past other operations towards fewer bytes.
#pragma once

#include "compiler/dialect/dialect.h"

namespace mpc {

/// low -> f32: every value of the operand is a value of the result.
bool isWidening(CastOp Cast);

/// f32 -> low: rounds.
bool isNarrowing(CastOp Cast);

/// move(ext(x)) becomes ext(move(x)): the low value moves. Past data movement and operations that keep the order of
/// values (relu, max_pool2d, ...), which give the same values in either type, where fewer bytes move; not past an
/// operation whose precision the user chose. The casts have no other users. Erases \p Cast where it returns true.
bool sinkWidening(CastOp Cast);

/// trunc(move(x)) becomes move(trunc(x)), past data movement alone: rounding before an operation that compares would
/// change its ties and the masks of its derivative. Erases \p Cast where it returns true.
bool hoistNarrowing(CastOp Cast);

/// Whether the operation reads this f32 operand exactly as well where it is low: gradients that step operations read,
/// and arithmetic, which computes in f32 and rounds its result once. Not where the user chose the precision.
bool readsAnyFloat(mlir::OpOperand &Use);

/// trunc(op(x)) becomes op(x) with a low result, where nothing else reads the f32 result: arithmetic rounds once either
/// way. Erases \p Cast where it returns true.
bool foldNarrowing(CastOp Cast);

/// Says in `mpc.precision` that a cast has been folded into the operation: it reads or writes another type than it was
/// assigned.
void markFolded(mlir::Operation *Op);

} // namespace mpc
