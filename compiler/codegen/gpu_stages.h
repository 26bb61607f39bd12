// The kernels that a region becomes on a GPU: one for each sweep, and those that combine what the blocks of a sweep
// leave.
#pragma once

#include "compiler/codegen/gpu_position.h"

namespace mpc::codegen {

/// What the blocks of a sweep leave in the workspace: an array for each accumulator. A column accumulator has [parts,
/// columns], one of everything has [parts]. No parts: nothing is left to combine.
struct Partials {
  llvm::SmallVector<size_t> columns, all;
  int64_t columnParts = 0, allParts = 0;
};

/// Emit the kernel of sweep \p S; \p Next comes after it. A sweep of one block finishes its reductions itself.
Partials emitFlatSweep(GpuRegion &Region, const Sweep &S, const Sweep &Next, const SweepTiling &T);
Partials emitRowSweep(GpuRegion &Region, const Sweep &S, const Sweep &Next, const SweepTiling &T);

/// These combine the parts of \p Steps in their order, finish the steps, and store the results that \p Next needs when
/// it begins. Without steps they only store.
void emitColumnCombination(GpuRegion &Region, llvm::ArrayRef<const Sweep::Step *> Steps, const Sweep &Next,
                           const Partials &Left);
void emitCombination(GpuRegion &Region, llvm::ArrayRef<const Sweep::Step *> Steps, const Sweep &Next,
                     const Partials &Left);

/// These finish \p Steps from the values of their accumulators. They store what the steps keep, the steps' results and
/// the results that \p Next needs when it begins. In finishColumn the threads that are \p Inside store column \p
/// Column; in finishAll the block's first thread stores.
void finishColumn(GpuFunction &F, llvm::ArrayRef<const Sweep::Step *> Steps, const Sweep &Next, llvm::Value *Column,
                  llvm::Value *Inside, llvm::ArrayRef<llvm::Value *> Values);
void finishAll(GpuFunction &F, llvm::ArrayRef<const Sweep::Step *> Steps, const Sweep &Next,
               llvm::ArrayRef<llvm::Value *> Values);

/// Stores the \p Values of each of \p Blocks blocks for a combination, and says in \p Left where.
void leaveAll(GpuFunction &F, int64_t Blocks, llvm::ArrayRef<llvm::Value *> Values, Partials &Left);

/// Calls Use(number, term) for the terms of \p Steps at the position of \p Body, one an accumulator, in order.
void eachTerm(BodyEmitter &Body, llvm::ArrayRef<const Sweep::Step *> Steps,
              llvm::function_ref<void(unsigned, Float)> Use);

/// Finishes \p Steps at the position of \p Body from the values of their accumulators.
void finishSteps(BodyEmitter &Body, llvm::ArrayRef<const Sweep::Step *> Steps, llvm::ArrayRef<llvm::Value *> Values);

/// Combines the values of \p Teams teams of \p Lanes threads for each column, the first team's first. Each thread has
/// neighbouring columns for each accumulator, from column \p Begin on. `Use(column, inside, values)` gets the scalars
/// of a column, where `inside` is true.
using UseOfColumn = llvm::function_ref<void(llvm::Value *, llvm::Value *, llvm::ArrayRef<llvm::Value *>)>;
void combineTeams(GpuFunction &F, llvm::ArrayRef<Accumulator> Accumulators, llvm::ArrayRef<llvm::Value *> Values,
                  unsigned Lanes, unsigned Teams, llvm::Value *Begin, UseOfColumn Use);

/// \p Term as accumulator \p A takes it, with \p Lanes lanes: nothing where \p Mask is false.
llvm::Value *maskedTerm(const Accumulator &A, Float Term, llvm::Value *Mask, unsigned Lanes);

} // namespace mpc::codegen
