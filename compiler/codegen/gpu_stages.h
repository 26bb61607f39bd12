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

/// Emit the kernel of sweep \p s; \p next comes after it. A sweep of one block finishes its reductions itself.
Partials emitFlatSweep(GpuFusion &region, const Sweep &s, const Sweep &next, const SweepTiling &t);
Partials emitRowSweep(GpuFusion &region, const Sweep &s, const Sweep &next, const SweepTiling &t);

/// These combine the parts of \p steps in their order, finish the steps, and store the results that \p next needs when
/// it begins. Without steps they only store.
void emitColumnCombination(GpuFusion &region, llvm::ArrayRef<const Sweep::Step *> steps, const Sweep &next,
                           const Partials &left);
void emitCombination(GpuFusion &region, llvm::ArrayRef<const Sweep::Step *> steps, const Sweep &next,
                     const Partials &left);

/// These finish \p steps from the values of their accumulators. They store what the steps keep, the steps' results and
/// the results that \p next needs when it begins. In finishColumn the threads that are \p inside store column \p
/// Column; in finishAll the block's first thread stores.
void finishColumn(GpuFunction &f, llvm::ArrayRef<const Sweep::Step *> steps, const Sweep &next, llvm::Value *column,
                  llvm::Value *inside, llvm::ArrayRef<llvm::Value *> values);
void finishAll(GpuFunction &f, llvm::ArrayRef<const Sweep::Step *> steps, const Sweep &next,
               llvm::ArrayRef<llvm::Value *> values);

/// Stores the \p values of each of \p blocks blocks for a combination, and says in \p left where.
void leaveAll(GpuFunction &f, int64_t blocks, llvm::ArrayRef<llvm::Value *> values, Partials &left);

/// Calls Use(number, term) for the terms of \p steps at the position of \p body, one an accumulator, in order.
void eachTerm(BodyEmitter &body, llvm::ArrayRef<const Sweep::Step *> steps,
              llvm::function_ref<void(unsigned, Float)> use);

/// Finishes \p steps at the position of \p body from the values of their accumulators.
void finishSteps(BodyEmitter &body, llvm::ArrayRef<const Sweep::Step *> steps, llvm::ArrayRef<llvm::Value *> values);

/// Combines the values of \p teams teams of \p lanes threads for each column, the first team's first. Each thread has
/// neighbouring columns for each accumulator, from column \p begin on. `Use(column, inside, values)` gets the scalars
/// of a column, where `inside` is true.
using UseOfColumn = llvm::function_ref<void(llvm::Value *, llvm::Value *, llvm::ArrayRef<llvm::Value *>)>;
void combineTeams(GpuFunction &f, llvm::ArrayRef<Accumulator> accumulators, llvm::ArrayRef<llvm::Value *> values,
                  unsigned lanes, unsigned teams, llvm::Value *begin, UseOfColumn use);

/// \p term as accumulator \p a takes it, with \p lanes lanes: nothing where \p mask is false.
llvm::Value *maskedTerm(const Accumulator &a, Float term, llvm::Value *mask, unsigned lanes);

} // namespace mpc::codegen
