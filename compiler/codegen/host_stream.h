// An output that is stored around the caches although its rows begin anywhere in a cache line.
#pragma once

#include "compiler/codegen/host_function.h"

namespace mpc::codegen {

/// Takes the vectors of a row in their order and stores the aligned vectors that lie across them, each put together of
/// two. Elements before the first and after the last aligned vector of a row are stored through the caches.
class HostStream {
public:
  /// Elements of \p t (of 16 or 32 bits), 16 of which make a vector.
  HostStream(HostFunction &f, llvm::Type *t);

  /// Begins the row whose first element is at \p address.
  void begin(llvm::Value *address);
  /// The whole vector at \p column, 0, 16, 32 ...
  void store(llvm::Value *value, llvm::Value *column);
  /// Ends the row, of which \p columns elements have been given.
  void end(llvm::Value *columns);

  static constexpr unsigned lanes = 16;

private:
  llvm::Value *addressOf(llvm::Value *column);
  void storeWhere(llvm::Value *mask, llvm::Value *value, llvm::Value *address);

  HostFunction &f;
  llvm::Type *t;
  llvm::VectorType *vector;
  llvm::AllocaInst *previous;        ///< the vector before
  llvm::Value *row = nullptr;        ///< address of the row
  llvm::Value *head = nullptr;       ///< how many elements lie before the first aligned vector, in all lanes
  llvm::Constant *numbers = nullptr; ///< the numbers of the lanes: 0, 1, ...
};

} // namespace mpc::codegen
