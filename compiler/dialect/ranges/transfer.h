// What an operation makes of ranges: one function for each operation of the dialect.
#pragma once

#include "compiler/dialect/ranges/range.h"
#include "kernels/attributes.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

#include <vector>

namespace mpc::ranges {

/// An operation with the ranges of what it reads. The values that it reads are finite.
struct Operands {
  mlir::Operation *op = nullptr;
  Attributes attributes;
  std::vector<Range> ranges;

  const Range &operator[](size_t operand) const { return ranges[operand]; }
  size_t size() const { return ranges.size(); }
  llvm::ArrayRef<int64_t> shape(size_t operand) const;
  llvm::ArrayRef<int64_t> resultShape(size_t result = 0) const;
  double count(size_t operand) const { return countOf(shape(operand)); }
  double resultCount(size_t result = 0) const { return countOf(resultShape(result)); }
  double extent(size_t operand, int64_t axis) const; ///< negative axes count from the last
};

/// Writes what is known of each result as real arithmetic would compute it, before it is rounded. \p results begin
/// unbounded. A result that need not be finite, such as a quotient by zero, stays unbounded. Where an operand is a
/// result of the forward operation, it is taken to be that of the other operands.
using Transfer = void (*)(const Operands &operands, llvm::MutableArrayRef<Range> results);

/// The function of operation \p name ("conv2d"); null for one that nothing is known of.
Transfer transferOf(llvm::StringRef name);

/// Whether the results of operation \p name stay unbounded on purpose. They are state, flags or counts, which no low
/// tensor is computed from. A test demands that every operation has a transfer function or is one of these.
bool isLeftUnbounded(llvm::StringRef name);

using TransferTable = llvm::StringMap<Transfer>;

// Each adds the operations of one family.
void addElementwiseTransfers(TransferTable &table);
void addGradientTransfers(TransferTable &table);
void addProductTransfers(TransferTable &table);
void addConvolutionTransfers(TransferTable &table);
void addPoolingTransfers(TransferTable &table);
void addNormTransfers(TransferTable &table);
void addSoftmaxTransfers(TransferTable &table);
void addLossTransfers(TransferTable &table);
void addMovementTransfers(TransferTable &table);
void addReductionTransfers(TransferTable &table);
void addSourceTransfers(TransferTable &table);

} // namespace mpc::ranges
