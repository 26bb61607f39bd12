// Moves casts past other operations towards fewer bytes. Casts from or to a type that nothing but casts reads (f8) stay
// where they are.
#pragma once

#include "compiler/dialect/dialect.h"

namespace mpc {

/// Floating type to another one that holds all of its values, such as low -> f32. Neither type is f8.
bool isWidening(CastOp cast);

/// Floating type to another one, all of whose values it holds, such as f32 -> low: rounds. Neither type is f8.
bool isNarrowing(CastOp cast);

/// move(ext(x)) becomes ext(move(x)): the low value moves. The cast moves past data movement and operations that keep
/// the order of values (relu, max_pool2d, ...), where fewer bytes move. These operations give the same values in either
/// type. A cast or a precision that the user chose stops it, but not at data movement. A pad with another value than 0
/// stops it too. Every floating operand must be such a cast without other users. Erases \p cast where it returns true,
/// and leaves the other operands' casts without users; else nothing changes.
bool sinkWidening(CastOp cast);

/// trunc(move(x)) becomes move(trunc(x)), past data movement alone: rounding before an operation that compares would
/// change its ties and the masks of its derivative. The operand has no other use, and fewer bytes must move. A cast
/// that the user chose moves too. Erases \p cast where it returns true; else nothing changes.
bool hoistNarrowing(CastOp cast);

/// Whether the operation could read this f32 operand in a low type with the same result. That holds for gradients that
/// step operations read, and for arithmetic, which computes in f32 and rounds its result once. For arithmetic it does
/// not hold where the user chose the precision.
bool readsAnyFloat(mlir::OpOperand &use);

/// trunc(op(x)) becomes op(x) with a low result, where nothing else reads the f32 result: arithmetic rounds once either
/// way. Nothing is folded where the user chose the cast or the precision. Calls markFolded() on the operation. Erases
/// \p cast where it returns true; else nothing changes.
bool foldNarrowing(CastOp cast);

/// Says in `mpc.precision` that a cast has been folded into the operation: it reads or writes another type than it was
/// assigned. An operation without `mpc.precision` stays as it is.
void markFolded(mlir::Operation *op);

} // namespace mpc
