// An output that is stored around the caches although its rows begin anywhere in a cache line.
#pragma once

#include "compiler/codegen/host_function.h"

namespace mpc::codegen {

/// Takes the vectors of a row in their order and stores the aligned vectors that lie across them, each put together of
/// two. Elements before the first and after the last aligned vector of a row are stored through the caches.
class HostStream {
public:
  /// Elements of \p T (of 16 or 32 bits), 16 of which make a vector.
  HostStream(HostFunction &F, llvm::Type *T);

  /// Begins the row whose first element is at \p Address.
  void begin(llvm::Value *Address);
  /// The whole vector at \p Column, 0, 16, 32 ...
  void store(llvm::Value *Value, llvm::Value *Column);
  /// Ends the row, of which \p Columns elements have been given.
  void end(llvm::Value *Columns);

  static constexpr unsigned Lanes = 16;

private:
  llvm::Value *addressOf(llvm::Value *Column);
  void storeWhere(llvm::Value *Mask, llvm::Value *Value, llvm::Value *Address);

  HostFunction &F;
  llvm::Type *T;
  llvm::VectorType *Vector;
  llvm::AllocaInst *Previous;        ///< the vector before
  llvm::Value *Row = nullptr;        ///< address of the row
  llvm::Value *Head = nullptr;       ///< how many elements lie before the first aligned vector, in all lanes
  llvm::Constant *Numbers = nullptr; ///< the numbers of the lanes: 0, 1, ...
};

} // namespace mpc::codegen
