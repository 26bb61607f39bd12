// Declares the values of a function, and numbers them as values of a Program.
#pragma once

#include "compiler/lowering/storage_assignment.h"
#include "runtime/program.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallVector.h"

namespace mpc::compiler {

/// The values of a function that becomes a sequence of a Program. A value is declared first: its record says its type
/// and its storage. It gets its number later, when the first instruction names it.
///
/// Numbers come that late because instructions take some, too. A packed weight stands behind the operands of the
/// instruction that reads it. Only the device's plan of this instruction says that there is one.
class SequenceValues {
public:
  /// The arena's values by their roots, in the order in which the roots' first values got their numbers.
  using ArenaValues = llvm::MapVector<mlir::Value, llvm::SmallVector<runtime::ValueId>>;

  /// \p storage knows the roots, and outlives this. Numbers are those of \p program.
  SequenceValues(const StorageAssignment &storage, runtime::Program &program) : storage(storage), program(program) {}

  /// Declares \p v, an argument or a constant, with its \p record.
  void declare(mlir::Value v, runtime::Value record) { records.try_emplace(v, std::move(record)); }
  /// Declares \p v, a result, if it is new: it has its own shape and the storage of its root. Arguments and constants
  /// are declared before.
  void declare(mlir::Value v);
  /// What is declared of \p v.
  const runtime::Value &recordOf(mlir::Value v) const;

  /// Says that \p argument, which is declared, is the value \p id of the caller.
  void bind(mlir::BlockArgument argument, runtime::ValueId id) { ids[argument] = id; }
  /// The number of \p v, which is declared. The first call adds its record to the Program.
  runtime::ValueId idOf(mlir::Value v);
  /// Adds a value to the Program that is none of the function's.
  runtime::ValueId add(runtime::Value record);

  /// Says that the values \p views of a called sequence lie where \p v does.
  void addViews(mlir::Value v, llvm::ArrayRef<runtime::ValueId> views);
  const ArenaValues &inArena() const { return arenaValues; }

private:
  const StorageAssignment &storage;
  runtime::Program &program;
  llvm::DenseMap<mlir::Value, runtime::Value> records;
  llvm::DenseMap<mlir::Value, runtime::ValueId> ids;
  ArenaValues arenaValues;
};

} // namespace mpc::compiler
