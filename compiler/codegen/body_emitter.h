// Emits the operations of a region at one element, or at a vector of neighbours in one row. Every target shares it.
#pragma once

#include "compiler/dialect/region_plan.h"
#include "compiler/element/element_context.h"

namespace mpc::codegen {

/// The position of the elements that are being computed, and access to memory. A target's loop nest implements it.
/// Numbers that it returns have the lanes of the current position; values a row or Single may be scalars.
class Position {
public:
  virtual ~Position() = default;
  /// The stored elements of an input of the region, at this position, as its extent says, of `storageType`.
  virtual llvm::Value *load(mlir::Value Input, Extent E) = 0;
  /// The elements of \p V, a value of the body, if memory has them already. It is then an output that an earlier phase
  /// stored, or a reduced result of an earlier sweep. Null: the value has to be computed.
  virtual llvm::Value *loadStored(mlir::Value V, Extent E) { return nullptr; }
  /// Value \p Index of those that \p Op kept in a sweep before this function.
  virtual Float loadKept(mlir::Operation *Op, unsigned Index) { llvm_unreachable("nothing was kept before"); }
  /// The instruction before which the code of values of extent \p E goes. It dominates every position that shares them,
  /// so that they are computed once. Null: the code goes to the position itself.
  virtual llvm::Instruction *anchor(Extent E) { return nullptr; }
  virtual Unsigned column() = 0;
  virtual Float atColumn(Unsigned Column, Float There, Float Elsewhere);
  virtual Long linearIndex() = 0;
  /// The number of \p Op that \p Compute emits, or that an earlier phase of the row kept.
  virtual Float once(mlir::Operation *Op, llvm::function_ref<Float()> Compute) { return Compute(); }
};

/// Widening and rounding between storage types and f32, a matter of the target.
class Conversion {
public:
  virtual ~Conversion() = default;
  /// The bits (i16) of an f16 or bf16 to f32, exactly.
  virtual Float widen(llvm::Value *Stored, mlir::Type StorageType);
  /// f32 to the bits (i16) of an f16 or bf16, to nearest even; NaN stays NaN.
  virtual llvm::Value *round(Float Value, mlir::Type StorageType) = 0;
  /// A scalar that many elements compute with, in the form that suits them; the same number.
  virtual Float shared(Float Value) { return Value; }

protected:
  /// Returns the bits of \p Value, which the target's own conversion rounds to the 16-bit type \p Low.
  static llvm::Value *roundByTarget(Float Value, llvm::Type *Low);
};

/// The type in memory of one element of \p V: i1 is i8; f16 and bf16 are i16, their bits.
llvm::Type *storageType(mlir::Value V);

/// Whether accumulators are f64 rather than f32.
bool isWide(Combine How);
/// `identity` is the value that changes no accumulator; `combine` makes one accumulator of two.
llvm::Constant *identity(Combine How);
llvm::Value *combine(Combine How, llvm::Value *A, llvm::Value *B);
/// A term as it is combined: widened where accumulators are, and squared for SquaresF64.
llvm::Value *accumulable(Combine How, Float Term);

/// Emits the body of one region in one function. A value is emitted once a position; `moveTo` begins another position
/// and forgets element values, while what reductions gave stays.
class BodyEmitter {
public:
  BodyEmitter(const RegionPlan &Plan, Conversion &Convert) : Plan(Plan), Convert(Convert) {}

  /// Values whose extent has an anchor in \p To stay known until `forget`.
  void moveTo(Position &To);
  /// Forgets the values of extent \p E, because the row or the column changes.
  void forget(Extent E);

  /// The stored form of \p V at the position: rounded, of `storageType`. Emits what it needs. It may be a scalar where
  /// all lanes are equal.
  llvm::Value *stored(mlir::Value V);

  /// The terms of \p Step at the position, one an accumulator; a scalar where all lanes are equal.
  llvm::SmallVector<Float, 2> terms(const RegionPlan::Step &Step);
  /// Computes what the operation keeps and its reduced results from the accumulators' values (f64 where they are wide).
  /// `stored` knows the results afterwards. Row: scalars. Column: a vector of columns. All: a scalar.
  void finish(const RegionPlan::Step &Step, llvm::ArrayRef<llvm::Value *> Accumulated);

  /// The values that the steps of \p Op finished in this function keep, in order. A Position of a later function loads
  /// them again (`loadKept`). `firstKept` says how many values earlier functions kept.
  llvm::ArrayRef<Float> kept(mlir::Operation *Op) const;
  /// Forgets what \p Op kept, before its reductions are finished again at another place.
  void forgetKept(mlir::Operation *Op) { Kept.erase(Op); }
  void setFirstKept(mlir::Operation *Op, unsigned Count) { FirstKept[Op] = Count; }
  unsigned firstKept(mlir::Operation *Op) const { return FirstKept.lookup(Op); }

private:
  class Context;
  /// A value as it is stored and as operations compute with it (f32, i64 or i1); either may not have been emitted.
  struct Element {
    llvm::Value *Stored = nullptr;
    llvm::Value *Number = nullptr;
  };

  Element evaluate(mlir::Value V);
  Element *find(mlir::Value V);
  llvm::Value *number(mlir::Value V);
  void set(mlir::Value V, llvm::Value *Number, bool IsReduced);

  const RegionPlan &Plan;
  Conversion &Convert;
  Position *Where = nullptr;
  llvm::DenseMap<mlir::Value, Element> AtPosition;
  llvm::DenseMap<mlir::Value, Element> Reduced;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<Float, 4>> Kept;
  llvm::DenseMap<mlir::Operation *, unsigned> FirstKept;
};

} // namespace mpc::codegen
