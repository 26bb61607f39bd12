// Emits the operations of a region at one element, or at a vector of neighbours in one row. Every target shares it.
#pragma once

#include "compiler/dialect/fusion_plan.h"
#include "compiler/element/element_context.h"

namespace mpc::codegen {

/// The position of the elements that are being computed, and access to memory. A target's loop nest implements it.
/// Numbers that it returns have the lanes of the current position; values a row or Single may be scalars.
class Position {
public:
  virtual ~Position() = default;
  /// The stored elements of an input of the region, at this position, as its extent says, of `storageType`.
  virtual llvm::Value *load(mlir::Value input, Extent e) = 0;
  /// The elements of \p v, a value of the body, if memory has them already. It is then an output that an earlier phase
  /// stored, or a reduced result of an earlier sweep. Null: the value has to be computed.
  virtual llvm::Value *loadStored(mlir::Value v, Extent e) { return nullptr; }
  /// Value \p index of those that \p op kept in a sweep before this function.
  virtual Float loadKept(mlir::Operation *op, unsigned index) { llvm_unreachable("nothing was kept before"); }
  /// The instruction before which the code of values of extent \p e goes. It dominates every position that shares them,
  /// so that they are computed once. Null: the code goes to the position itself.
  virtual llvm::Instruction *anchor(Extent e) { return nullptr; }
  /// The column of each lane.
  virtual Unsigned column() = 0;
  /// \p there in the lanes whose column is \p column, \p elsewhere in the others.
  virtual Float atColumn(Unsigned column, Float there, Float elsewhere);
  /// The row-major index of each lane's element in the iteration space.
  virtual Long linearIndex() = 0;
  /// The number of \p op that \p compute emits, or that an earlier phase of the row kept.
  virtual Float once(mlir::Operation *op, llvm::function_ref<Float()> compute) { return compute(); }
};

/// Widening and rounding between storage types and f32, a matter of the target.
class Conversion {
public:
  virtual ~Conversion() = default;
  /// The bits (i16) of an f16 or bf16 to f32, exactly.
  virtual Float widen(llvm::Value *stored, mlir::Type storageType);
  /// f32 to the bits (i16) of an f16 or bf16, to nearest even; NaN stays NaN.
  virtual llvm::Value *round(Float value, mlir::Type storageType) = 0;
  /// A scalar that many elements compute with, in the form that suits them; the same number.
  virtual Float shared(Float value) { return value; }

protected:
  /// Returns the bits of \p value, which the target's own conversion rounds to the 16-bit type \p low.
  static llvm::Value *roundByTarget(Float value, llvm::Type *low);
};

/// The type in memory of one element of \p v: i1 is i8; f16 and bf16 are i16, their bits.
llvm::Type *storageType(mlir::Value v);

/// Whether accumulators are f64 rather than f32.
bool isWide(Combine how);
/// `identity` is the value that changes no accumulator; `combine` makes one accumulator of two.
llvm::Constant *identity(Combine how);
llvm::Value *combine(Combine how, llvm::Value *a, llvm::Value *b);
/// A term as it is combined: widened where accumulators are, and squared for SquaresF64.
llvm::Value *accumulable(Combine how, Float term);

/// Emits the body of one region in one function. A value is emitted once a position; `moveTo` begins another position
/// and forgets element values, while what reductions gave stays.
class BodyEmitter {
public:
  BodyEmitter(const FusionPlan &plan, Conversion &convert) : plan(plan), convert(convert) {}

  /// Values whose extent has an anchor in \p to stay known until `forget`.
  void moveTo(Position &to);
  /// Forgets the values of extent \p e, because the row or the column changes.
  void forget(Extent e);

  /// The stored form of \p v at the position: rounded, of `storageType`. Emits what it needs. It may be a scalar where
  /// all lanes are equal.
  llvm::Value *stored(mlir::Value v);

  /// The terms of \p step at the position, one an accumulator; a scalar where all lanes are equal.
  llvm::SmallVector<Float, 2> terms(const FusionPlan::Step &step);
  /// Computes what the operation keeps and its reduced results from the accumulators' values (f64 where they are wide).
  /// `stored` knows the results afterwards. Row: scalars. Column: a vector of columns. All: a scalar.
  void finish(const FusionPlan::Step &step, llvm::ArrayRef<llvm::Value *> accumulated);

  /// The values that the steps of \p op finished in this function keep, in order. A Position of a later function loads
  /// them again (`loadKept`). `firstKept` says how many values earlier functions kept.
  llvm::ArrayRef<Float> kept(mlir::Operation *op) const;
  /// Forgets what \p op kept, before its reductions are finished again at another place.
  void forgetKept(mlir::Operation *op) { keptValues.erase(op); }
  /// Says that functions before this one kept \p count values of \p op, which are loaded again.
  void setFirstKept(mlir::Operation *op, unsigned count) { firstKeptIndices[op] = count; }
  unsigned firstKept(mlir::Operation *op) const { return firstKeptIndices.lookup(op); }

private:
  class Context;
  /// A value as it is stored and as operations compute with it (f32, i64 or i1); either may not have been emitted.
  struct Element {
    llvm::Value *stored = nullptr;
    llvm::Value *number = nullptr;
  };

  Element evaluate(mlir::Value v);
  Element *find(mlir::Value v);
  llvm::Value *number(mlir::Value v);
  void set(mlir::Value v, llvm::Value *number, bool isReduced);

  const FusionPlan &plan;
  Conversion &convert;
  Position *where = nullptr;
  llvm::DenseMap<mlir::Value, Element> atPosition;
  llvm::DenseMap<mlir::Value, Element> reduced;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<Float, 4>> keptValues;
  llvm::DenseMap<mlir::Operation *, unsigned> firstKeptIndices;
};

} // namespace mpc::codegen
