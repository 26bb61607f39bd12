// The context of an operation while the code of its elements is emitted.
#pragma once

#include "compiler/element/iteration_space.h"
#include "compiler/element/number.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mpc::codegen {

/// The operands, reduced values and results of one operation, at one element (or a vector of neighbours). Implemented
/// by the region emitter.
class ElementContext {
public:
  virtual ~ElementContext() = default;

  /// The element of a floating operand, widened to f32. An operand with one value a row or column gives that value.
  virtual Float operand(unsigned index) = 0;
  /// The element of an integer operand (i32 or i64), as 64 bits.
  virtual Long integerOperand(unsigned index) = 0;
  /// The element of an i1 operand.
  virtual Bool boolOperand(unsigned index) = 0;

  /// The element's position in its row, from 0. Rows have less than 2^31 elements.
  virtual Unsigned column() = 0;
  /// Returns \p there at the element in column \p column of its row, and \p elsewhere at all others. Few elements are
  /// in that column. Where a target can skip the others, \p there costs them little. A column outside of the row is
  /// nowhere.
  virtual Float atColumn(Unsigned column, Float there, Float elsewhere) = 0;
  /// The element's position in the whole iteration space in row-major order, from 0. A vector of elements begins at a
  /// multiple of its lanes in its row.
  virtual Long linearIndex() = 0;
  /// How many elements one accumulator of an \p along reduction takes in.
  virtual int64_t count(Axis along) const = 0;

  /// Returns what \p compute gives. It must be the same in every phase that asks for it, and one number for each
  /// operation. A target may keep it from the first such phase of a row to the last.
  virtual Float once(llvm::function_ref<Float()> compute) = 0;

  /// In emitTerms: adds the next accumulator's term.
  virtual void addTerm(Float term) = 0;
  /// In emitFinish: the value of accumulator \p index of the step. The second function gives the f64 value of one in
  /// f64.
  virtual Float accumulated(unsigned index) = 0;
  virtual Double accumulatedF64(unsigned index) = 0;
  /// In emitFinish: keeps a value for what follows.
  virtual void keep(Float value) = 0;
  /// The values that the emitFinish of all steps so far kept, in order.
  virtual Float kept(unsigned index) = 0;

  /// The value of result \p index: before rounding where it is floating, and an f64 value where the result is f64.
  virtual void setResult(unsigned index, Float value) = 0;
  virtual void setResult(unsigned index, Bool value) = 0;
  virtual void setResult(unsigned index, Long value) = 0;
  /// Whether anything reads result \p index.
  virtual bool isUsed(unsigned index) const = 0;
};

} // namespace mpc::codegen
